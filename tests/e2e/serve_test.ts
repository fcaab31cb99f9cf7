import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { hang, say, startBackend } from "../support/backend.ts";
import { type ProgramOptions, startSvc, svc } from "../support/program.ts";
import { project } from "../support/project.ts";
import { EventClient } from "../server/support.ts";

/** A `svc serve` process that listens. */
async function serve(
  args: string[],
  options: ProgramOptions,
  address = /^listening on (\S+)$/m,
) {
  const child = startSvc(["serve", ...args], options);
  let notes = "";
  const listening = Promise.withResolvers<string>();
  const read = (async () => {
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
      notes += text;
      const [, url] = address.exec(notes) ?? [];
      if (url !== undefined) listening.resolve(url);
    }
    listening.reject(new Error(notes));
  })();
  listening.promise.catch(() => {});
  return {
    url: await listening.promise,
    child,
    async end(signal: Deno.Signal) {
      child.kill(signal);
      await child.stdout.cancel();
      const { code } = await child.status;
      await read;
      return { code, notes };
    },
  };
}

const CONFIG = (url: string, more = {}) =>
  JSON.stringify({ base_url: url, model: "test", memory_enabled: false, ...more });

Deno.test("svc serve prints its address, answers, and exits with 0 when it is stopped [4.1, 4.4]", async () => {
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    await using backend = startBackend([say("hello")]);
    await using place = await project({ ".svc/config.json": CONFIG(backend.url) });
    const at = await serve(["--port", "0", "--path", place.path], { cwd: "/", home: place.path });
    assert.match(at.url, /^http:\/\/127\.0\.0\.1:\d+$/);
    const body = JSON.stringify({ prompt: "hi", session: "s" });
    const answer = await (await fetch(`${at.url}/chat`, { method: "POST", body })).json();
    assert.deepEqual([answer.content, answer.session], ["hello", "s"]);
    const { code, notes } = await at.end(signal);
    assert.equal(code, 0, notes);
    assert.doesNotMatch(notes, /Deno|legacy|error/, "no runtime warnings");
    assert.equal(JSON.parse(await place.read(".svc/sessions/s.json")).turns[0].status, "ok");
  }
});

Deno.test("the log of a server has its notes, requests and turns; --log json prints them too", async () => {
  await using backend = startBackend([say("hello"), say("again")]);
  await using place = await project({ ".svc/config.json": CONFIG(backend.url) });
  const options = { cwd: place.path };
  const chat = async (url: string) => {
    const body = JSON.stringify({ prompt: "hi", session: "s" });
    await (await fetch(`${url}/chat`, { method: "POST", body })).json();
    await (await fetch(`${url}/nope?key=secret`)).body!.cancel();
    await (await fetch(`${url}/health`)).body!.cancel();
  };
  const plain = await serve(["--port", "0"], options);
  await chat(plain.url);
  assert.doesNotMatch((await plain.end("SIGTERM")).notes, /POST/);
  const lines = (await place.read(".svc/logs/serve.log")).trim().split("\n")
    .map((line) => line.replace(/^\S+Z /, "").replace(/[\d.]+ s$/, "N s"));
  assert.deepEqual(lines.filter((line) => /N s$/.test(line)), [
    "a turn of the session s ended ok in N s",
    "POST /chat 200 N s",
    "GET /nope 404 N s",
  ]);
  assert.equal(Deno.statSync(`${place.path}/.svc/logs/serve.log`).mode! & 0o777, 0o600);

  const json = await serve(["--port", "0", "--log", "json"], options, /"listening on ([^"]+)"/);
  await chat(json.url);
  const printed = (await json.end("SIGTERM")).notes.trim().split("\n").map((line) =>
    JSON.parse(line)
  );
  const turn = printed.find(({ event }) => event === "turn");
  assert.deepEqual([turn.session, turn.status, turn.reason, turn.cost], ["s", "ok", "", null]);
  const requests = printed.filter(({ event }) => event === "request");
  assert.deepEqual(requests.map(({ method, path, status }) => [method, path, status]), [
    ["POST", "/chat", 200],
    ["GET", "/nope", 404],
  ]);
  const shown = await svc(["logs", "serve", "-n", "1"], options);
  assert.equal(JSON.parse(shown.stdout).message, printed.at(-1).message);
});

Deno.test("a server whose worktree was removed says so, and does not make it again", async () => {
  await using home = await project({ ".config/svc/config.json": '{"provider": "demo"}' });
  await Deno.mkdir(`${home.path}/work`);
  const at = await serve(["--port", "0", "--path", "work"], { cwd: home.path });
  assert.equal((await fetch(`${at.url}/health`)).status, 200);
  await Deno.rename(`${home.path}/work`, `${home.path}/renamed`);
  const health = await fetch(`${at.url}/health`);
  assert.equal(health.status, 503);
  assert.equal(
    (await health.json()).error,
    "the worktree is not there",
    "its path is no stranger's",
  );
  const chat = await fetch(`${at.url}/chat`, { method: "POST", body: '{"prompt": "hi"}' });
  assert.equal(chat.status, 500);
  assert.match((await chat.json()).error, /^The worktree \S+\/work is not there any more/);
  const { notes } = await at.end("SIGTERM");
  assert.match(notes, /^warning: A request failed: The worktree \S+\/work is not there any more/m);
  assert.deepEqual([...Deno.readDirSync(home.path)].map(({ name }) => name).sort(), [
    ".config",
    "renamed",
  ]);
});

Deno.test("a served agent has the teams of plugins", async () => {
  await using backend = startBackend([say("done")]);
  await using place = await project({
    ".svc/config.json": CONFIG(backend.url, { plugins: [] }),
    ".svc/plugins/pairs/manifest.json": '{ "name": "pairs", "entry": "plugin.js" }',
    ".svc/plugins/pairs/plugin.js": `export function register_teams(teams) {
      teams.add_plugin({ name: "pair", description: "works", stages: ["tester"] });
    }`,
  });
  const at = await serve(["--port", "0"], { cwd: place.path });
  const body = JSON.stringify({ prompt: "hi" });
  await (await fetch(`${at.url}/chat`, { method: "POST", body })).json();
  await at.end("SIGTERM");
  assert.match(backend.chats[0].messages[0].content, /^- pair: works$/m);
});

Deno.test("a stop during a turn leaves a complete log", async () => {
  await using backend = startBackend([hang("half an answer")]);
  await using place = await project({
    ".svc/config.json": CONFIG(backend.url, { "serve.grace": 0 }),
  });
  const at = await serve(["--port", "0"], { cwd: place.path });
  const body = JSON.stringify({ prompt: "hi", session: "s" });
  const chat = fetch(`${at.url}/chat`, { method: "POST", body });
  await backend.arrived(1);
  while (!(await place.read(".svc/sessions/s.json")).includes("running")) { /* it is being made */ }
  const { code } = await at.end("SIGTERM");
  const response = await chat;
  assert.deepEqual([response.status, await response.json()], [503, {
    error: "the server is stopping",
  }]);
  assert.equal(code, 0);
  const { turns } = JSON.parse(await place.read(".svc/sessions/s.json"));
  assert.equal(turns[0].status, "cancelled");
});

Deno.test("containers set address, port and folder by variables, and flags win [4.1]", async () => {
  await using place = await project({ ".svc/config.json": "{}" });
  const env = { SVC_PORT: "0", SVC_PATH: place.path };
  const at = await serve([], { cwd: "/", home: place.path, env });
  assert.deepEqual(await (await fetch(`${at.url}/health`)).json(), { status: "ok" });
  const chat = await fetch(`${at.url}/chat`, { method: "POST", body: '{"prompt":"a"}' });
  assert.equal(chat.status, 503);
  assert.match((await chat.json()).error, /No model provider is connected/);
  const taken = new URL(at.url).port;
  const again = await svc(["serve", "--port", taken], { cwd: place.path, env });
  assert.equal(again.code, 2);
  assert.match(again.stderr, /Cannot listen on 127\.0\.0\.1/);
  const wrong = await svc(["serve"], { cwd: place.path, env: { SVC_PORT: "x" } });
  assert.equal(wrong.code, 2);
  const open = await svc(["serve"], { cwd: place.path, env: { ...env, SVC_HOST: "0.0.0.0" } });
  assert.equal(open.code, 2);
  assert.match(open.stderr, /listens on this machine alone, and 0\.0\.0\.0 is not that/);
  const healthy = await svc(["health"], {
    cwd: "/",
    env: { SVC_HOST: "0.0.0.0", SVC_PORT: taken },
  });
  assert.equal(healthy.stdout, `healthy: http://127.0.0.1:${taken}/health answered 200\n`);
  assert.equal((await at.end("SIGTERM")).code, 0);
});

Deno.test("svc serve token creates a private token file, which the next server requires [5.1]", async () => {
  await using place = await project();
  const home = `${place.path}/home`;
  await Deno.mkdir(home);
  const options = { cwd: place.path, home };
  const made = await svc(["serve", "token"], options);
  assert.equal(made.code, 0, made.stderr);
  const token = made.stdout.trim();
  assert.match(token, /^[\w-]{43}$/);
  assert.match(
    made.stderr,
    /asks every request for a token, in all worktrees \(setting serve\.token/,
  );
  const path = `${home}/.config/svc/serve.tokens`;
  assert.equal(Deno.statSync(path).mode! & 0o777, 0o600);
  const second = await svc(["serve", "token"], options);
  assert.match(second.stderr, /a server that runs knows it after a restart\.$/m);
  const other = second.stdout.trim();
  assert.equal(await Deno.readTextFile(path), `${token}\n${other}\n`);

  const at = await serve(["--port", "0"], options);
  const version = (headers: Record<string, string>) => fetch(`${at.url}/version`, { headers });
  const refused = await version({});
  assert.equal(refused.status, 401);
  await refused.body!.cancel();
  for (const each of [token, other]) {
    const response = await version({ authorization: `Bearer ${each}` });
    assert.equal(response.status, 200);
    await response.body!.cancel();
  }
  assert.equal((await at.end("SIGTERM")).code, 0);
  const open = await svc(["serve", "--host", "0.0.0.0"], { cwd: place.path });
  assert.equal(open.code, 2);
  assert.match(open.stderr, /Make a token with: svc serve token/);
});

Deno.test("svc serve token --role makes a token that may do no more", async () => {
  await using place = await project();
  const options = { cwd: place.path, home: place.path };
  const { stdout } = await svc(["serve", "token", "--role", "read"], options);
  const token = stdout.trim();
  assert.equal(await place.read(".config/svc/serve.tokens"), `read ${token}\n`);
  const at = await serve(["--port", "0"], options);
  const headers = { authorization: `Bearer ${token}` };
  const statuses = [];
  for (const init of [{ headers }, { headers, method: "POST", body: '{"prompt":"a"}' }]) {
    const response = await fetch(`${at.url}/${init.method === "POST" ? "chat" : "version"}`, init);
    statuses.push(response.status);
    await response.body!.cancel();
  }
  assert.deepEqual(statuses, [200, 403]);
  assert.equal((await at.end("SIGTERM")).code, 0);
});

Deno.test("svc console prints a link to the console of the running server", async () => {
  await using place = await project();
  const options = { cwd: place.path, home: place.path };
  const at = await serve(["--port", "0"], options);
  const made = await svc(["console", "--role", "read"], options);
  assert.equal(made.code, 0, made.stderr);
  assert.doesNotMatch(made.stderr, /No server/);
  assert.ok(made.stdout.startsWith(`${at.url}/console/sign-in?key=`), made.stdout);
  const first = await fetch(made.stdout.trim(), { redirect: "manual" });
  assert.equal(first.status, 303);
  const cookie = first.headers.get("set-cookie")!.split(";")[0]!;
  const page = await fetch(`${at.url}/console`, { headers: { cookie } });
  assert.match(await page.text(), /<h1>Inbox<\/h1>/);
  const elsewhere = await svc(["console", "--url", "https://svc.example/"], options);
  assert.match(elsewhere.stdout, /^https:\/\/svc\.example\/console\/sign-in\?key=[\w-]{43}\n$/);
  const { code, notes } = await at.end("SIGTERM");
  assert.equal(code, 0, notes);
  assert.match(notes, /^open the console with: svc console$/m);
  const late = await svc(["console"], options);
  assert.match(late.stderr, /^No server answers at http:.*; start it with: svc serve$/m);

  await using other = await project();
  const bare = { cwd: other.path, home: other.path };
  const without = await serve(["--port", "0", "--no-console"], bare);
  const missing = await fetch(`${without.url}/console`);
  assert.equal(missing.status, 404);
  await missing.body!.cancel();
  const env = { SVC_PORT: new URL(without.url).port };
  const none = await svc(["console"], { ...bare, env });
  assert.match(none.stderr, /^The server at http:.* has no console; .* svc serve --console$/m);
  assert.doesNotMatch((await without.end("SIGTERM")).notes, /svc console/);
});

Deno.test("a server whose policy runs no program revokes the run permission", async () => {
  for (const [action, state] of [["deny", "prompt"], ["allow", "granted"]] as const) {
    const called = { tool_calls: [{ name: "rights", arguments: {} }] };
    await using backend = startBackend([called, say("done")]);
    const tool_permission = { vcs: "deny", bash: action, dev: "deny", mcp: "deny" };
    await using place = await project({
      ".svc/config.json": CONFIG(backend.url, { tool_permission, plugins: [] }),
      ".svc/plugins/rights/manifest.json": '{ "name": "rights", "entry": "p.js" }',
      ".svc/plugins/rights/p.js": `export function register_tools(registry) {
        registry.register({
          name: "rights",
          description: "d",
          parameters: { type: "object", properties: {} },
          permission: "read",
          handler: () => Deno.permissions.querySync({ name: "run" }).state,
        });
      }`,
    });
    const at = await serve(["--port", "0"], { cwd: place.path });
    const body = JSON.stringify({ prompt: "hi", session: "s" });
    const answer = await (await fetch(`${at.url}/chat`, { method: "POST", body })).json();
    assert.equal(answer.content, "done");
    assert.equal((await at.end("SIGTERM")).code, 0);
    const { turns } = JSON.parse(await place.read(".svc/sessions/s.json"));
    assert.equal(turns[0].parts[1].output, state, action);
  }
});

Deno.test("a server that is killed fails the run that ran and runs the one that waited at its next start, once [4.1]", async () => {
  const told: { run: string; state: string; reason: string }[] = [];
  const hook = Deno.serve({ port: 0, onListen: () => {} }, async (request) => {
    told.push(await request.json());
    return new Response();
  });
  const origin = `http://127.0.0.1:${hook.addr.port}`;
  await using backend = startBackend([say("known"), hang("half"), say("later")]);
  const config = CONFIG(backend.url, {
    "serve.max_concurrent": 1,
    "serve.webhooks": [origin],
  });
  await using place = await project({ ".svc/config.json": config });
  const options = { cwd: place.path };
  let at = await serve(["--port", "0"], options);
  const post = async (path: string, body: unknown) =>
    await (await fetch(`${at.url}${path}`, { method: "POST", body: JSON.stringify(body) })).json();
  const get = async (path: string) => await (await fetch(`${at.url}${path}`)).json();
  const state = async (id: string, wanted: string) => {
    let run = await get(`/runs/${id}`);
    while (run.state !== wanted) {
      assert.equal(run.ended_at, "", JSON.stringify(run));
      await new Promise((resolve) => setTimeout(resolve, 20));
      run = await get(`/runs/${id}`);
    }
    return run;
  };
  const known = await post("/runs", { prompt: "0", session: "s" });
  await state(known.id, "done");
  const running = await post("/runs", { prompt: "1", session: "s", webhook: origin });
  const waiting = await post("/runs", { prompt: "2" });
  const client = await EventClient.open({ http: at }, running.id);
  const seen = await client.until((events) => events.some(({ type }) => type === "token"));
  assert.equal((await get(`/runs/${waiting.id}`)).state, "queued");
  await at.end("SIGKILL");

  at = await serve(["--port", "0"], options);
  const failed = await state(running.id, "failed");
  assert.deepEqual([failed.reason, failed.turns], ["interrupted", [2]]);
  const done = await state(waiting.id, "done");
  assert.equal(done.result.content, "later");
  const rest = await EventClient.open({ http: at }, running.id, seen.at(-1)!.id);
  assert.deepEqual((await rest.until()).map(({ type }) => type), [
    "turn_finished",
    "error",
    "result",
  ]);
  const whole = await EventClient.open({ http: at }, known.id);
  const text = (await whole.until()).filter(({ type }) => type === "token");
  assert.deepEqual(text.map(({ data }) => data.content), ["known"]);
  const log = JSON.parse(await place.read(".svc/sessions/s.json"));
  assert.deepEqual(log.turns.map(({ status }: { status: string }) => status), ["ok", "error"]);
  while (told.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  await at.end("SIGTERM");

  at = await serve(["--port", "0"], options);
  await get("/version");
  await at.end("SIGTERM");
  assert.equal(backend.chats.length, 3, "nothing ran twice");
  assert.deepEqual(told.map(({ run, state, reason }) => [run, state, reason]), [
    [running.id, "failed", "interrupted"],
  ]);
  await hook.shutdown();
});

Deno.test("the job of a hook continues after its server was killed, with its data and once", async () => {
  await using backend = startBackend([hang("half"), say("done")]);
  await using place = await project({ ".svc/config.json": CONFIG(backend.url) });
  const options = { cwd: place.path };
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await svc(args, options);
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  const add = ["--interval", "3600", "--prompt", "look", "--retries", "1"];
  await run("jobs", "add", "nightly", ...add, "--approval", "auto");
  const secret = await run("serve", "hook", "nightly");
  const body = '{"action": "opened"}';
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const headers = { "x-hub-signature-256": `sha256=${signature}` };
  let at = await serve(["--port", "0"], options);
  const deliver = async () =>
    await (await fetch(`${at.url}/hooks/nightly`, { method: "POST", body, headers })).json();
  const get = async (path: string) => await (await fetch(`${at.url}${path}`)).json();
  const { id } = await deliver();
  await backend.arrived(1);
  while ((await get(`/runs/${id}`)).state !== "running") {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await at.end("SIGKILL");

  at = await serve(["--port", "0"], options);
  assert.equal((await deliver()).id, id);
  let shown = await get(`/runs/${id}`);
  while (shown.ended_at === "") {
    await new Promise((resolve) => setTimeout(resolve, 20));
    shown = await get(`/runs/${id}`);
  }
  assert.deepEqual([shown.state, shown.result.content], ["done", "done"]);
  assert.ok(backend.chats[1].messages.at(-1).content.includes(body));
  await at.end("SIGTERM");
  assert.equal(backend.chats.length, 2);
});
