/**
 * What people see of a project that several machines share. The stories that need no second folder are told of files
 * too: there, all machines are commands in one folder.
 */
import assert from "node:assert/strict";
import { call, type Reply, say, startBackend, usage } from "../support/backend.ts";
import { inProcess } from "../support/io.ts";
import { filePostgres } from "../support/postgres.ts";
import type { Ended } from "../support/program.ts";
import { type Project, project } from "../support/project.ts";
import { withTables } from "./support.ts";

const { needed, server } = await filePostgres();
const backend = startBackend({ replies: [], default: say("Noted.") });
Deno.test.afterAll(() => backend.close());

/** A command line in a folder and a home. */
class Machine implements AsyncDisposable {
  constructor(readonly place: Project, readonly home: Project, readonly store: string) {}

  svc(...args: string[]): Promise<Ended> {
    const env = { SVC_STORE: this.store };
    return inProcess(args, { cwd: this.place.path, home: this.home.path, env });
  }

  /** The output of a command that ends well. */
  async done(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.svc(...args);
    assert.equal(code, 0, `svc ${args.join(" ")}\n${stdout}\n${stderr}`);
    return stdout;
  }

  /** The document of a session, from the file that an export has brought up to date. */
  // deno-lint-ignore no-explicit-any
  async session(name: string): Promise<any> {
    await this.done("export", name, "--out", "-");
    return JSON.parse(await this.place.read(`.svc/sessions/${name}.json`));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.place[Symbol.asyncDispose]();
    await this.home[Symbol.asyncDispose]();
  }
}

async function machineOn(
  store: string,
  { url = backend.url, config = {} }: { url?: string; config?: Record<string, unknown> } = {},
): Promise<Machine> {
  const settings = { base_url: url, model: "test", plugins: [], "memory.job": false, ...config };
  const files = { ".svc/config.json": JSON.stringify({ project: "site", ...settings }) };
  return new Machine(await project(files), await project(), store);
}

/** Tells a story of machines that share a project, by files and by PostgreSQL. */
function story(
  name: string,
  tell: (
    machine: (url?: string, config?: Record<string, unknown>) => Promise<Machine>,
  ) => Promise<void>,
): void {
  Deno.test(`${name}, in files`, async () => {
    let folder: Machine | undefined;
    try {
      await tell(async (url, config) => {
        folder ??= await machineOn("", { url, config });
        return folder;
      });
    } finally {
      await folder?.[Symbol.asyncDispose]();
    }
  });
  Deno.test({
    name: `${name}, on PostgreSQL`,
    ...needed,
    fn: async () => {
      const store = await server.database(withTables);
      await using stack = new AsyncDisposableStack();
      await tell(async (url, config) => stack.use(await machineOn(store, { url, config })));
    },
  });
}

story("a session that one machine began is continued and exported by another", async (machine) => {
  await using model = startBackend([say("One."), say("Two."), say("Three.")]);
  const one = await machine(model.url);
  const other = await machine(model.url);
  await one.done("run", "--session-id", "long", "first");
  await other.done("run", "--session-id", "long", "second");
  await one.done("run", "--session-id", "long", "third");
  const sent = model.chats.at(-1).messages.map(({ content }: { content: string }) => content);
  assert.deepEqual(sent.slice(-5), ["first", "One.", "second", "Two.", "third"]);
  const documents = [];
  for (const each of [one, other]) {
    assert.match(await each.done("sessions"), /long/);
    documents.push(await each.session("long"));
  }
  assert.equal(documents[0].turns.length, 3);
  assert.deepEqual(documents[0], documents[1]);
});

story(
  "what one machine attached to a prompt, and a result that the log leaves out, another sends as they were",
  async (machine) => {
    await using model = startBackend([
      call("file_read", { path: "port.txt" }),
      say("One."),
      say("Two."),
      say("Three."),
    ]);
    const config = { noise_tools: ["file_read"] };
    const one = await machine(model.url, config);
    const other = await machine(model.url, config);
    await one.place.write("note.txt", "It is the 9090.");
    await one.place.write("port.txt", "Or the 8080.");
    await one.done("run", "--session-id", "long", "--attach", "note.txt", "first");
    assert.doesNotMatch(JSON.stringify(await one.session("long")), /the (9090|8080)/);
    await other.done("run", "--session-id", "long", "second");
    await one.done("run", "--session-id", "long", "third");
    const [, before, second, third] = model.chats.map(({ messages }) => messages.slice(1));
    assert.match(JSON.stringify(before), /It is the 9090/);
    assert.match(JSON.stringify(before), /Or the 8080/);
    assert.deepEqual(second.slice(0, before.length), before);
    assert.deepEqual(third.slice(0, second.length), second);
  },
);

story("a job is added, approved, run and read on four machines", async (machine) => {
  const one = await machine();
  const two = await machine();
  const three = await machine();
  const four = await machine();
  await one.done("jobs", "add", "nightly", "--interval", "6h", "--prompt", "go");
  assert.match(await two.done("jobs", "approve", "nightly"), /approved/);
  assert.match(await three.done("jobs", "run", "nightly"), /ended ok/);
  const shown = JSON.parse(await four.done("jobs", "show", "nightly", "--output", "json"));
  assert.equal(shown.history.length, 1);
  const session = shown.history[0].session;
  assert.match(await one.done("export", session, "--out", "-"), /Noted\./);
  await two.done("jobs", "remove", "nightly");
  assert.doesNotMatch(await three.done("jobs"), /nightly/);
});

story("an ask of one machine is answered on another, and read on a third", async (machine) => {
  await using model = startBackend([
    call("ask", { question: "Which port?" }),
    say("It is not decided."),
    say("It is 9090."),
  ]);
  const one = await machine(model.url);
  const two = await machine(model.url);
  const three = await machine(model.url);
  await one.done(
    "jobs",
    "add",
    "port",
    "--interval",
    "6h",
    "--session",
    "port",
    "--prompt",
    "go",
  );
  await one.done("jobs", "run", "port");
  assert.match(await two.done("asks"), /#1 +pending.*Which port\?/);
  await two.done("asks", "answer", "1", "9090");
  assert.doesNotMatch(await one.done("asks"), /pending/);
  await three.done("jobs", "run", "port");
  assert.match(JSON.stringify(model.chats.at(-1)), /\[answer to parked ask #1\] 9090/);
});

story("what a role remembers of one machine is told on another, and cleared", async (machine) => {
  const as = (system: string, reply: Reply): Reply => ({ ...reply, when: { system } });
  await using model = startBackend([
    call("delegate", { role: "digger", task: "dig" }),
    as("YOU DIG", say("found coal")),
    as("You keep the memory of the role digger", say("coal lies below")),
    as("coal lies below", say("I know")),
    say("done"),
  ]);
  const one = await machine(model.url);
  const other = await machine(model.url);
  for (const { place } of [one, other]) {
    await place.write(".svc/roles.json", '{"digger": {"system_prompt": "YOU DIG"}}');
  }
  await one.done("run", "--output", "text", "go");
  assert.match(await other.done("memory"), /role +digger .*coal lies below/);
  assert.match(await other.done("run", "--role", "digger", "--output", "text", "go"), /I know/);
  await other.done("memory", "clear", "role", "digger");
  assert.doesNotMatch(await one.done("memory"), /digger/);
});

story("what all machines have spent counts for the budget of the day", async (machine) => {
  const reply = say("Noted.", usage(500, 10));
  await using model = startBackend([reply, reply]);
  const config = { "budget.day": { tokens: 1100 } };
  const one = await machine(model.url, config);
  const two = await machine(model.url, config);
  await one.done("run", "go");
  await two.done("run", "go");
  const { code, stdout } = await one.svc("run", "go");
  assert.equal(code, 3, stdout);
  assert.equal(model.chats.length, 2);
  assert.match(await two.done("usage", "--output", "json"), /"requests": 2,\s+"in": 1000/);
});

Deno.test({
  name: "a job that another machine added runs where its user has accepted it",
  ...needed,
  fn: async () => {
    const store = await server.database(withTables);
    await using one = await machineOn(store);
    await using other = await machineOn(store);
    // Those of a worktree count when its user has accepted them.
    const settings = await other.place.read(".svc/config.json");
    await other.place.write(".svc/config.json", "{}");
    await other.home.write(".config/svc/config.json", settings);
    await one.done("jobs", "add", "nightly", "--interval", "6h", "--prompt", "go");
    const doubting = (...args: string[]) =>
      inProcess(args, {
        ...{ cwd: other.place.path, home: other.home.path },
        env: { SVC_STORE: store, SVC_TRUST: "" },
      });
    assert.match((await doubting("jobs")).stdout, /nightly .*not trusted/);
    const refused = await doubting("jobs", "run", "nightly");
    assert.match(refused.stderr, /is not trusted; see svc trust/);
    const accepted = await doubting("trust", "show", "--accept", "job:nightly");
    assert.equal(accepted.code, 0, accepted.stderr);
    assert.match((await doubting("jobs", "run", "nightly")).stdout, /ended ok/);
    const shown = JSON.parse(await one.done("jobs", "show", "nightly", "--output", "json"));
    assert.equal(shown.history.length, 1);
  },
});

Deno.test({
  name: "two projects in one database see nothing of each other",
  ...needed,
  fn: async () => {
    const store = await server.database(withTables);
    await using site = await machineOn(store);
    await using shop = await machineOn(store, { config: { project: "shop" } });
    await site.done("run", "--session-id", "mine", "go");
    await site.done("jobs", "add", "nightly", "--interval", "6h", "--prompt", "go");
    assert.doesNotMatch(await shop.done("sessions"), /mine/);
    assert.doesNotMatch(await shop.done("jobs"), /nightly/);
    assert.notEqual((await shop.svc("export", "mine")).code, 0);
  },
});

Deno.test({
  name:
    "a store that is not there or asks for a password is told with its host, and never with the password",
  ...needed,
  fn: async () => {
    const tables = "postgres://svc:s3cret@127.0.0.1:1/svc";
    await using machine = await machineOn(tables);
    const { code, stderr, stdout } = await machine.svc("jobs");
    assert.equal(code, 2, stderr);
    assert.match(stderr, /127\.0\.0\.1:1/);
    assert.doesNotMatch(stderr + stdout, /s3cret/);
  },
});

Deno.test({
  name: "a store with newer tables is refused",
  ...needed,
  fn: async () => {
    const store = await server.database(withTables);
    const name = new URL(store).pathname.slice(1);
    await server.query("UPDATE svc.store SET version = version + 1", [], name);
    await using machine = await machineOn(store);
    for (const args of [["jobs"], ["run", "go"]]) {
      const { code, stderr } = await machine.svc(...args);
      assert.deepEqual([code, /newer/.test(stderr)], [2, true], stderr);
    }
  },
});
