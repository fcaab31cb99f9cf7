import assert from "node:assert/strict";
import type { SessionDocument } from "../../src/sessions/schema.ts";
import { withTables } from "../store/support.ts";
import { call, hang, say, startBackend, type TestBackend } from "../support/backend.ts";
import { filePostgres } from "../support/postgres.ts";
import { startSvc, svc } from "../support/program.ts";
import { type Project, project } from "../support/project.ts";

const { needed, server } = await filePostgres();

/** A folder that is a machine of the project, and its commands. */
class Machine {
  readonly place: Project;
  readonly #options: { cwd: string; env: Record<string, string> };

  constructor(place: Project, store: string) {
    this.place = place;
    this.#options = { cwd: place.path, env: { SVC_STORE: store } };
  }

  async run(backend: TestBackend, prompt: string) {
    const { code, stdout, stderr } = await svc(turn(backend, prompt), this.#options);
    return { code, stderr, ...stdout === "" ? {} : JSON.parse(stdout) };
  }

  start(backend: TestBackend, prompt: string): Deno.ChildProcess {
    return startSvc(turn(backend, prompt), this.#options);
  }

  async log(): Promise<SessionDocument> {
    const shown = await svc(["sessions", "show", "x", "--output", "json"], this.#options);
    assert.equal(shown.stderr, "");
    return JSON.parse(shown.stdout);
  }

  async export(): Promise<string> {
    return (await svc(["export", "x", "--out", "-"], this.#options)).stdout;
  }
}

function turn({ url }: TestBackend, prompt: string): string[] {
  const backend = ["--base-url", url, "--model", "m"];
  return ["run", "--session-id", "x", ...backend, "--output", "json", "--yes", prompt];
}

function story(name: string, body: (one: Machine, other: Machine, store: string) => Promise<void>) {
  Deno.test({
    name,
    ...needed,
    async fn() {
      const store = await server.database(withTables);
      await using here = await project({ ".svc/config.json": '{"project": "shop"}' });
      await using there = await project({ ".svc/config.json": '{"project": "shop"}' });
      await body(new Machine(here, store), new Machine(there, store), store);
    },
  });
}

function summary({ turns }: SessionDocument) {
  return turns.map(({ status, parts }) => [
    status,
    ...parts.map((part) => part.type === "tool" ? `${part.name}: ${part.output}` : part.text),
  ]);
}

story(
  "svc run takes the turns of a session in two folders alternately [2.1]",
  async (one, other) => {
    await using backend = startBackend([say("one"), say("two"), say("three")]);
    for (const [at, prompt] of [[one, "a"], [other, "b"], [one, "c"]] as const) {
      const { code, stderr } = await at.run(backend, prompt);
      assert.deepEqual([code, stderr], [0, ""]);
    }
    const expected = [["ok", "a", "one"], ["ok", "b", "two"], ["ok", "c", "three"]];
    assert.deepEqual(summary(await other.log()), expected);
    assert.deepEqual(await other.log(), await one.log());
    assert.equal(await other.export(), await one.export());
    const asked = backend.chats[2].messages.map(({ content }: { content: string }) => content);
    assert.deepEqual(asked.slice(1), ["a", "one", "b", "two", "c"]);
  },
);

story(
  "when svc run is killed in a turn, the other machine closes it and goes on [2.2]",
  async (one, other, store) => {
    await using backend = startBackend([
      call("write_file", { path: "a.txt", content: "x" }),
      hang("half"),
      say("done"),
    ]);
    const child = one.start(backend, "a");
    await backend.arrived(2);
    child.kill("SIGKILL");
    await child.output();
    await expire(store);
    const { code, content } = await other.run(backend, "b");
    assert.deepEqual([code, content], [0, "done"]);
    const log = await one.log();
    assert.deepEqual(summary(log).map(([status]) => status), ["error", "ok"]);
    assert.match(summary(log)[0]![2]!, /^file_write: Created/);
    assert.match(log.errors[0]!.message, /The process ended before turn 1 did/);
    assert.deepEqual(await other.log(), log);
  },
);

story(
  "a process that stood still for longer than its lease ends its turn as cancelled and appends nothing [2.2]",
  async (one, other, store) => {
    let awake = () => {};
    const asked = new Promise<void>((resolve) => awake = resolve);
    await using backend = startBackend([say("late"), say("in time")], {
      onRequest: async ({ body }) => {
        if (JSON.stringify(body).includes('"first"')) await asked;
      },
    });
    const child = one.start(backend, "first");
    await backend.arrived(1);
    child.kill("SIGSTOP");
    await expire(store);
    const second = await other.run(backend, "second");
    assert.equal(second.code, 0);
    child.kill("SIGCONT");
    awake();
    const { code, stdout } = await child.output();
    const result = JSON.parse(new TextDecoder().decode(stdout));
    assert.deepEqual([code, result.status], [130, "cancelled"]);
    assert.match(result.errors[0].message, /Another process has taken over session\/x/);
    const log = await one.log();
    assert.deepEqual(summary(log).map(([status, prompt]) => [status, prompt]), [
      ["error", "first"],
      ["ok", "second"],
    ]);
    assert.deepEqual(await other.log(), log);
  },
);

/** Has all leases expire, as if their holders had not answered for too long. */
async function expire(store: string): Promise<void> {
  const sql = "UPDATE svc.leases SET expires = now() - interval '1 second'";
  await server.query(sql, [], new URL(store).pathname.slice(1));
}
