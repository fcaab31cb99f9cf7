import assert from "node:assert/strict";
import { join } from "node:path";
import { main } from "../../src/cli/main.ts";
import { httpError, say, startBackend } from "../support/backend.ts";
import { inProcess, testIo } from "../support/io.ts";
import { inTerminal, svc } from "../support/program.ts";
import { type Project, project } from "../support/project.ts";

const KEY = "sk-test-5ecretKey";

async function registry(home: Project) {
  return JSON.parse(await home.read(".config/svc/providers.json"));
}

/** Every file in a directory that contains a text. */
async function filesWith(directory: string, text: string): Promise<string[]> {
  const found: string[] = [];
  for await (const entry of Deno.readDir(directory)) {
    const path = join(directory, entry.name);
    if (entry.isDirectory) found.push(...await filesWith(path, text));
    else if ((await Deno.readTextFile(path)).includes(text)) found.push(path);
  }
  return found;
}

Deno.test("connect takes a lone model, and warns of a model that the backend does not list [4.10]", async () => {
  await using home = await project();
  await using worktree = await project();
  await using one = startBackend({ replies: [say("hi")], models: ["only"] });
  await using two = startBackend({ replies: [], models: ["a", "b"] });
  const options = { cwd: worktree.path, home: home.path };
  const first = await inProcess(["connect", one.url, "one", "--no-key"], options);
  assert.match(first.stderr, /\nModel: only, the only one on offer\n$/);
  assert.equal((await inProcess(["run", "-p", "hello"], options)).code, 0);
  const second = await inProcess(["connect", two.url, "two", "--no-key"], options);
  assert.match(second.stderr, /^Every worktree now uses two in place of one; --local switches/);
  assert.match(second.stderr, /\nModel: only\nwarning: the backend does not list only; choose one/);
  await inProcess(["connect", one.url, "one", "--no-key", "--local"], options);
  const chosen = await inProcess(["config", "get", "provider", "--show-origin"], options);
  assert.equal(JSON.parse(chosen.stdout).origin, join(worktree.path, ".svc/config.json"));
});

Deno.test("on a terminal connect asks before it switches every worktree", async () => {
  await using home = await project();
  await using worktree = await project();
  await using backend = startBackend({ replies: [], models: ["m"] });
  const io = testIo({ home: home.path, cwd: worktree.path }, {
    isTerminal: () => true,
    confirm(question) {
      io.notes.push(question);
      return Promise.resolve(false);
    },
  });
  await main(["connect", backend.url, "one", "--no-key"], io);
  await main(["connect", backend.url, "two", "--no-key"], io);
  const question = "Switch every worktree from one to two? No: this one only.";
  assert.equal(io.notes.filter((note) => note.startsWith("Switch")).join(), question);
  assert.equal(JSON.parse(await home.read(".config/svc/config.json")).provider, "one");
  assert.equal(JSON.parse(await worktree.read(".svc/config.json")).provider, "two");
});

Deno.test("disconnect removes the key and address, and the choice of the provider", async () => {
  await using home = await project();
  await using worktree = await project();
  await using backend = startBackend({ replies: [], models: ["m1"] });
  const options = { cwd: worktree.path, home: home.path };
  for (const name of ["mine", "other"]) {
    await inProcess(["connect", backend.url, name], { ...options, stdin: KEY });
  }
  const wrong = await inProcess(["disconnect", "othr"], options);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /"othr" is not connected\.\nhint: Did you mean other\?/);

  const { code, stderr } = await inProcess(["disconnect", "other"], options);
  assert.equal(code, 0);
  assert.match(stderr, /^Removed the key and the address of other\nThe global settings name no/);
  assert.deepEqual(Object.keys(await registry(home)), ["mine"]);
  assert.deepEqual((await inProcess(["config", "get", "--global"], options)).stdout, "{}\n");

  await inProcess(["provider", "mine", "--global"], options);
  assert.equal((await inProcess(["disconnect", "mine"], options)).code, 0);
  assert.deepEqual(await filesWith(home.path, KEY), []);
});

Deno.test("connect reads a key, probes, stores key and address, and sets provider and base_url; the next run uses them [4.4, 4.10]", async () => {
  await using home = await project();
  await using worktree = await project();
  await using backend = startBackend({ replies: [say("connected")], models: ["m1", "m2"] });
  const options = { cwd: worktree.path, home: home.path };
  const { code, stdout, stderr } = await svc(["connect", backend.url, "mine"], {
    ...options,
    stdin: `${KEY}\n`,
  });
  assert.equal(code, 0, stderr);
  assert.equal(stdout, "");
  assert.match(stderr, /^Connected mine /);
  const path = join(home.path, ".config/svc/providers.json");
  assert.equal((await Deno.stat(path)).mode! & 0o777, 0o600);
  assert.equal((await registry(home)).mine.api_key, KEY);
  assert.equal((await registry(home)).mine.base_url, backend.url);
  const settings = JSON.parse(await home.read(".config/svc/config.json"));
  assert.deepEqual(Object.keys(settings), ["provider", "base_url"], "the model stays as it is");

  const run = await svc(["run", "--model", "m1", "-p", "hello"], options);
  assert.equal(run.code, 0, run.stderr);
  assert.equal(JSON.parse(run.stdout).provider, "mine");
  const chat = backend.requests.find((request) => request.method === "POST");
  assert.equal(chat!.headers.authorization, `Bearer ${KEY}`);
  assert.notEqual((await registry(home)).mine.last_used, "");

  const offered = await svc(["models", "list"], options);
  assert.equal(offered.stdout, "m1\nm2\n");
  assert.deepEqual(await svc(["models", "list", "mine"], options), offered);
});

Deno.test("a failed probe saves nothing without --force", async () => {
  await using home = await project();
  await using worktree = await project();
  await using backend = startBackend({ replies: [], models: httpError(401) });
  const options = { cwd: worktree.path, home: home.path, stdin: KEY };
  const refused = await inProcess(["connect", backend.url, "mine"], options);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /401.*\nsvc: Nothing was saved\.\nhint: .*--force/s);
  assert.deepEqual([...Deno.readDirSync(home.path)], []);
  const forced = await inProcess(["connect", backend.url, "mine", "--force"], options);
  assert.equal(forced.code, 0);
  assert.equal((await registry(home)).mine.api_key, KEY);
});

Deno.test("--key-only stores a key without a probe and keeps the provider", async () => {
  await using home = await project();
  await using worktree = await project();
  const options = { cwd: worktree.path, home: home.path, stdin: KEY };
  const args = ["connect", "--key-only", "https://search.invalid", "brave"];
  const { code, stderr } = await inProcess(args, options);
  assert.equal(code, 0, stderr);
  assert.equal(stderr, "Stored the key of brave (https://search.invalid)\n");
  const { base_url, api_key } = (await registry(home)).brave;
  assert.deepEqual({ base_url, api_key }, { base_url: "https://search.invalid", api_key: KEY });
  const set = await inProcess(["config", "get", "provider", "base_url"], options);
  assert.doesNotMatch(set.stdout, /brave|invalid/);
});

Deno.test("after failed connections the key is only in providers.json [5.1]", async () => {
  await using home = await project();
  await using worktree = await project();
  const echo = (status: number) => httpError(status, { error: { message: `bad key ${KEY}` } });
  await using backend = startBackend({ replies: [echo(401), echo(403), echo(400), say(KEY)] });
  const options = { cwd: worktree.path, home: home.path };
  const outputs: string[] = [];
  const call = async (...args: string[]) => {
    const stdin = args[0] === "connect" ? KEY : undefined;
    const { stdout, stderr } = await inProcess(args, { ...options, stdin });
    outputs.push(stdout + stderr);
  };
  await call("connect", backend.url, "mine", "--force");
  for (let i = 0; i < 3; i++) {
    await call("run", "--model", "m", "--verbose", "--session-id", "s", "-p", "hello");
  }
  await call("config", "set", "retry_budget", "0");
  await call("run", "--provider", "mine", "--base-url", "http://127.0.0.1:1/", "--model", "m", "x");
  await call("export", "s");
  await call("export", "s", "--out", "-");
  for (const args of [["config", "get"], ["models"], ["provider"], ["permissions"]]) {
    await call(...args);
  }
  for (const output of outputs) assert.ok(!output.includes(KEY), output);
  assert.deepEqual(await filesWith(worktree.path, KEY), []);
  assert.deepEqual(await filesWith(home.path, KEY), [
    join(home.path, ".config/svc/providers.json"),
  ]);
});

Deno.test("a key cannot be an argument, a setting or an environment variable [5.1]", async () => {
  await using worktree = await project();
  await using backend = startBackend([say("hi")]);
  const cases = [
    ["connect", backend.url, "--key", KEY],
    ["connect", backend.url, "--api-key", KEY],
    ["config", "set", "api_key", KEY],
  ];
  for (const args of cases) {
    assert.equal((await inProcess(args, { cwd: worktree.path })).code, 2, args.join(" "));
  }
  await inProcess(["run", "--base-url", backend.url, "--model", "m", "hello"], {
    cwd: worktree.path,
    env: { OPENAI_API_KEY: KEY, SVC_API_KEY: KEY },
  });
  assert.equal(backend.requests[0]!.headers.authorization, undefined);
});

Deno.test("a project's own configuration cannot send the key to another host", async () => {
  await using home = await project();
  await using worktree = await project();
  await using real = startBackend({ replies: [], models: ["m"] });
  await using thief = startBackend({ replies: [say("thanks")], models: ["m"] });
  const options = { cwd: worktree.path, home: home.path };
  await inProcess(["connect", real.url, "mine"], { ...options, stdin: KEY });
  await worktree.write(".svc/config.json", JSON.stringify({ base_url: thief.url }));
  await inProcess(["run", "--model", "m", "hello"], options);
  for (const request of thief.requests) assert.equal(request.headers.authorization, undefined);
});

Deno.test("--base-url is used, also when it is the address of another provider's connection [4.4]", async () => {
  await using home = await project();
  await using worktree = await project();
  await using backend = startBackend({ replies: [say("here")], models: ["m"] });
  const options = { cwd: worktree.path, home: home.path };
  await inProcess(["connect", backend.url, "local"], { ...options, stdin: KEY });
  const args = ["--provider", "openai", "--base-url", `${backend.url}/v1`, "--model", "m"];
  const { code, stdout, stderr } = await inProcess(["run", ...args, "hello"], options);
  assert.equal(code, 0, stderr);
  assert.partialDeepStrictEqual(JSON.parse(stdout), { provider: "openai", content: "here" });
  const [chat] = backend.requests.filter(({ method }) => method === "POST");
  assert.equal(chat!.headers.authorization, undefined);
});

Deno.test("models lists the models in use by provider, with markers [4.4]", async () => {
  await using home = await project();
  await using worktree = await project();
  await using backend = startBackend({ replies: [say("1")], models: ["m"] });
  const options = { cwd: worktree.path, home: home.path };
  await inProcess(["connect", backend.url, "mine"], { ...options, stdin: KEY });
  await inProcess(["config", "set", "model", "mine/m1", "--global"], options);
  const { code, stderr } = await inProcess(["run", "--approve-model", "-p", "hello"], options);
  assert.equal(code, 0, stderr);
  const { stdout } = await inProcess(["models"], options);
  assert.equal(stdout, "mine (key)\n  * mine/m1\n");
});

Deno.test("a model that only the configuration names needs approval; --model approves [4.4, 4.10, 5.2]", async () => {
  await using home = await project();
  await using worktree = await project();
  await using backend = startBackend({ replies: [say("1")], loop: true, models: ["m"] });
  const options = { cwd: worktree.path, home: home.path };
  await inProcess(["connect", backend.url, "mine", "--no-key"], options);
  await worktree.write(".svc/config.json", JSON.stringify({ model: "mine/dear" }));
  const denied = await inProcess(["run", "-p", "hello"], options);
  assert.equal(denied.code, 2);
  assert.match(denied.stderr, /model not approved: mine\/dear.*\nhint: .*--approve-model/s);
  assert.equal(denied.stdout, "");
  assert.equal((await inProcess(["run", "--approve-model", "-p", "hello"], options)).code, 0);
  assert.equal((await inProcess(["run", "-p", "hello"], options)).code, 0, "approved from now on");
  assert.equal((await inProcess(["run", "--model", "mine/other", "-p", "hello"], options)).code, 0);
  const approved = JSON.parse(await home.read(".config/svc/models.json"));
  assert.deepEqual(approved.map((each: { model: string }) => each.model), ["dear", "other"]);
  assert.doesNotMatch(JSON.stringify(approved), /key/);
});

Deno.test("svc provider switches, hints at connect when no key is stored, and shows the active provider [4.10, 7.4]", async () => {
  await using worktree = await project();
  const options = { cwd: worktree.path };
  await inProcess(["config", "set", "connect_check", "false", "--local"], options);
  const none = await inProcess(["provider"], options);
  assert.equal(none.code, 2);
  const switched = await inProcess(["provider", "groq"], options);
  assert.equal(switched.code, 0, switched.stderr);
  assert.match(switched.stdout, /^groq \(https:\/\/api\.groq\.com/);
  assert.match(switched.stderr, /No key is stored for groq.*svc connect groq/);
  const shown = await inProcess(["provider"], options);
  assert.equal(shown.stdout, switched.stdout);
  const wrong = await inProcess(["provider", "gorq"], options);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /Did you mean groq/);
});

Deno.test("in a terminal the key is asked for without echo; Ctrl-C changes nothing [5.1]", async () => {
  await using home = await project();
  await using backend = startBackend({ replies: [], models: ["m"] });
  const options = { cwd: home.path };
  const screen = await inTerminal(["connect", backend.url, "mine"], options, [
    ["Key for mine", `wrong\x15${KEY}é\x7f\r`],
  ]);
  assert.match(screen, /Connected mine/);
  assert.ok(!screen.includes(KEY), screen);
  assert.equal((await registry(home)).mine.api_key, KEY);

  const left = await inTerminal(["connect", backend.url, "other"], options, [
    ["Key for other", "\x03"],
  ]);
  assert.match(left, /Nothing was saved/);
  assert.equal((await registry(home)).other, undefined);
});

Deno.test("Ctrl-C at a question of connect ends it with 130", async () => {
  await using home = await project();
  const at = { home: home.path, cwd: home.path };
  const io = testIo(at, { isTerminal: () => true, readHidden: () => Promise.resolve(undefined) });
  assert.equal(await main(["connect", "http://127.0.0.1:1", "mine"], io), 130);
  assert.deepEqual([...Deno.readDirSync(home.path)], []);
});

Deno.test("in a terminal, connect lists the known providers, and a failed probe asks", async () => {
  await using home = await project();
  const screen = await inTerminal(["connect"], { cwd: home.path }, [
    ["Provider (number, name or URL)", "http://127.0.0.1:1/v1\r"],
    ["Key for ", "\r"],
    ["Save anyway?", "n\r"],
  ]);
  assert.match(screen, /1 +anthropic +https:/);
  assert.match(screen, /Nothing was saved/);
  assert.deepEqual([...Deno.readDirSync(home.path)], []);
});

Deno.test("the demo model is built in and needs no key", async () => {
  await using work = await project();
  const screen = await inTerminal(["connect"], { cwd: work.path }, [
    ["Provider (number, name or URL):", "demo\n"],
  ]);
  assert.match(screen, /^ +\d {2}demo +built in\r?$/m);
  assert.match(screen, /Connected demo \(built in\): 1 model on offer/);
  assert.doesNotMatch(screen, /Key for/);
});
