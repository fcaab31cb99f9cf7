import assert from "node:assert/strict";
import { join } from "node:path";
import { RunStore } from "../../src/engine/run_store.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { call, say, startBackend } from "../support/backend.ts";
import { inProcess } from "../support/io.ts";
import { filePostgres } from "../support/postgres.ts";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";

const PASSWORD = "gehe:im/%&";
const { needed, server } = await filePostgres({ password: PASSWORD });

/** All files below a folder with their texts, but locks and what `svc` makes anew. */
function files(folder: string, below = ""): Record<string, string> {
  const found: Record<string, string> = {};
  for (const { name, isDirectory } of Deno.readDirSync(join(folder, below))) {
    const path = join(below, name);
    if (isDirectory) Object.assign(found, files(folder, path));
    else if (!/\.lock$|\.ids/.test(path)) {
      found[path] = Deno.readTextFileSync(join(folder, path)).trimEnd();
    }
  }
  return found;
}

Deno.test({
  ...needed,
  name: "svc store moves a worktree's files into PostgreSQL and out again without loss",
  async fn() {
    await using place = await project();
    const replies = [
      call("ask", { question: "Which port?" }),
      say("waiting"),
      call("file_read", { path: "port.txt" }),
      say("It is 9090."),
    ];
    await using backend = startBackend({ replies, default: say("Swept.") });
    const [work, copy] = [join(place.path, "work"), join(place.path, "copy")];
    await Deno.mkdir(work);
    const options = { cwd: work, home: place.path };
    const done = async (...args: string[]) => {
      const ended = await inProcess(args, options);
      assert.equal(ended.code, 0, args.join(" ") + ended.stderr);
      return ended;
    };
    const base = ["--base-url", backend.url, "--model", "test"];
    await done("run", ...base, "--unattended", "-p", "serve it");
    for (const [key, value] of [["base_url", backend.url], ["model", "test"]]) {
      await done("config", "set", key!, value!);
    }
    await Deno.writeTextFile(join(work, "port.txt"), "9090\n");
    await done("config", "set", "noise_tools", '["file_read"]');
    await done("run", "--session-id", "port", "--attach", "port.txt", "-p", "which port?");
    await done("jobs", "add", "nightly", "--interval", "3600", "--prompt", "Sweep.");
    await done("jobs", "run", "nightly");
    await done("jobs", "run", "nightly");
    const runs = new RunStore({
      state: join(work, ".svc"),
      user: join(place.path, ".config/svc"),
      clock: systemClock,
      warn: (text) => assert.fail(text),
    });
    const request = { prompt: "go", role: "", task: {}, confirmed: false, webhook: "" };
    await runs.accept({ request, body: "b" }, "a key");
    await Deno.mkdir(join(work, ".svc/memory/roles"), { recursive: true });
    await Deno.writeTextFile(join(work, ".svc/memory/roles/tester.md"), "likes tests\n");
    const before = files(join(work, ".svc"));
    const kept = Object.keys(before).join("\n");
    assert.match(kept, /port\.attached[^]*port\.results|port\.results[^]*port\.attached/);

    const url = await server.database();
    await done("config", "set", "store", url);
    const early = await inProcess(["asks"], options);
    assert.equal(early.code, 2);
    assert.match(early.stderr, /asks for a password[^]*svc store password/);
    const stored = await inProcess(["store", "password"], { ...options, stdin: `${PASSWORD}\n` });
    assert.equal(stored.code, 0, stored.stderr);
    const path = join(place.path, ".config/svc/stores.json");
    assert.equal((await Deno.stat(path)).mode! & 0o777, 0o600);
    await place.write("secret", `${PASSWORD}\n`);
    for (const [name, answer] of [["secret", /has no tables of svc yet/], ["none", /os error 2/]]) {
      await Deno.rename(path, `${path}.kept`);
      const env = { PGPASSWORD_FILE: join(place.path, `${name}`) };
      const given = await inProcess(["asks"], { ...options, env });
      await Deno.rename(`${path}.kept`, path);
      assert.equal(given.code, 2);
      assert.match(given.stderr, answer as RegExp);
    }
    const bare = await inProcess(["asks"], options);
    assert.match(bare.stderr, /has no tables of svc yet[^]*svc store migrate/);
    await done("store", "migrate");
    const mixed = await inProcess(["asks"], options);
    assert.match(mixed.stderr, /of its own[^]*svc store import/);
    const imported = await done("store", "import");
    assert.match(imported.stderr, /4 sessions, 1 job, 1 ask, 1 run, 2 memories, 8 requests/);
    const again = await inProcess(["store", "import"], options);
    assert.match(again.stderr, /has a project work already/);
    const { stdout } = await svc(["store", "check", "--output", "json"], options);
    assert.equal(JSON.parse(stdout).sessions, 4);
    assert.match((await done("asks")).stdout, /Which port/);

    await done("store", "export", copy);
    const { "config.json": _, ...expected } = before;
    assert.deepEqual(files(join(copy, ".svc")), expected);
    await done("config", "set", "store", url, "--path", copy);
    const back = await done("store", "import", "--path", copy);
    assert.match(back.stderr, /4 sessions, 1 job, 1 ask, 1 run, 2 memories, 8 requests/);
    const both = [await done("asks", "--path", copy), await done("asks")];
    assert.equal(both[0]!.stdout, both[1]!.stdout);
    await done("config", "unset", "store");
    const local = await done("asks");
    assert.equal(local.stdout, both[1]!.stdout);
    assert.match(local.stderr, /copy of the project work in a store, and no store is set/);

    const shown = await done("config");
    for (const ended of [early, stored, bare, imported, again, shown]) {
      assert.doesNotMatch(ended.stdout + ended.stderr, /gehe/);
    }
  },
});

Deno.test("a password is not taken into the settings, and a worktree cannot name a store by itself", async () => {
  await using place = await project({
    "clone/.svc/config.json": '{"store": "postgres://svc@127.0.0.1:1/svc"}',
  });
  const options = { cwd: join(place.path, "clone"), home: place.path, env: { SVC_TRUST: "" } };
  const secret = "postgres://svc:geheim@127.0.0.1:1/svc";
  for (const given of [secret, "postgres://svc@127.0.0.1:1/svc?password=geheim"]) {
    const set = await inProcess(["config", "set", "store", given], options);
    assert.equal(set.code, 2);
    assert.match(set.stderr, /must have no password: keep it with svc store password/);
    assert.doesNotMatch(set.stderr + set.stdout, /geheim/);
  }
  const wrong = await inProcess(["config", "set", "store", "db.example.org"], options);
  assert.match(wrong.stderr, /must be an address such as postgres:/);
  const asks = await inProcess(["asks"], options);
  assert.equal(asks.code, 0, asks.stderr);
  assert.match((await inProcess(["trust"], options)).stdout, /sets store to/);
  const env = { SVC_TRUST: "", SVC_STORE: secret };
  const unreachable = await inProcess(["asks"], { ...options, env });
  assert.equal(unreachable.code, 2);
  assert.match(unreachable.stderr, /postgres:\/\/svc@127\.0\.0\.1:1\/svc cannot be reached/);
  assert.doesNotMatch(unreachable.stderr, /geheim/);
});
