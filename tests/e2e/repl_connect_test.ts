import assert from "node:assert/strict";
import { hang, httpError, say, startBackend } from "../support/backend.ts";
import { session } from "../support/repl.ts";
import { svc } from "../support/program.ts";

const KEY = "sk-test-5ecretKeyNobodyMaySee";
const NOTHING = { base_url: "", model: "" };

Deno.test("/connect picks by number, name or URL, and never shows the key [4.7]", async () => {
  await using backend = startBackend({ replies: [say("connected")], models: ["m1"] });
  await using open = await session([], { config: { base_url: "", model: "m1" }, rows: 60 });
  await open.enter("/connect", /1 {2}\S[^]*Provider \(number, name or URL\):/);
  await open.pty.type("99\r");
  await open.pty.until("There is no choice 99.");
  await open.enter("/connect --force", "Provider (number, name or URL):");
  await open.pty.type(`${backend.url}\r`);
  await open.pty.until(/Key for \S+ \(empty for none\):$/);
  await open.pty.type(`${KEY}\r`);
  await open.pty.until(/Connected \S+/);
  await open.ready();
  await open.enter("/models", /\(key\)\n +\* \S+\/m1/);
  await open.enter("hello", /^connected$/m);
  const chat = backend.requests.find(({ method }) => method === "POST");
  assert.equal(chat!.headers.authorization, `Bearer ${KEY}`);
  await open.leave();
  assert.ok(!open.pty.written.includes(KEY));
  const remembered = await open.home.read(".config/svc/history");
  assert.ok(!remembered.includes(KEY) && remembered.includes("hello"));
});

Deno.test("/connect asks whether to save an unreachable backend; no saves nothing", async () => {
  await using backend = startBackend({ replies: [], models: httpError(401) });
  await using open = await session([], { config: NOTHING, welcome: true, rows: 60 });
  await open.pty.type("\r");
  await open.pty.until("Skipped. /connect connects a provider");
  for (const answer of ["n", "y"]) {
    const name = `mine-${answer}`;
    await open.enter(`/connect ${backend.url} ${name}`, `Key for ${name}`);
    await open.pty.type("\r");
    await open.pty.until(/401[^]*Save anyway\? \[y\/n\]$/);
    await open.pty.type(`${answer}\r`);
    await open.pty.until(answer === "n" ? "Nothing was saved." : "Connected mine-y");
    await open.ready();
  }
  assert.match(await open.home.read(".config/svc/providers.json"), /^{\s*"mine-y"/);
});

Deno.test("the first start connects a provider", async () => {
  await using backend = startBackend({ replies: [say("connected")], models: ["m1"] });
  await using open = await session([], { config: NOTHING, welcome: true });
  await open.pty.type("1\r");
  await open.pty.until("Provider (number, name or URL):");
  await open.pty.type(`${backend.url}\r`);
  await open.pty.until("Key for");
  await open.pty.type("\r");
  await open.pty.until(/Connected \S+ .*1 model/);
  await open.pty.until("Model: m1, the only one on offer");
  await open.enter("/models list", /^m1$/m);
  await open.enter("hello", /^connected$/m);
});

Deno.test("a model ref that is not approved is asked about when the session opens, at its turns and by /model [4.10, 5.2]", async () => {
  const config = { base_url: "", model: "demo/one" };
  await using open = await session([], { config, prompt: false });
  const question = /demo\/one[^]*approve from now on\? \[y\/n\]/;
  await open.pty.until(question);
  await open.pty.type("n");
  await open.ready();
  await open.enter("hello", question);
  await open.pty.type("n");
  await open.ready();
  await open.pty.until("model not approved: demo/one");
  await open.enter("/model demo/two", /demo\/two.*\[y\/n\]/);
  await open.pty.type("y");
  await open.pty.until(/^demo\/two \(/m);
  await open.enter("hello", "demo model");
  const approved = JSON.parse(await open.home.read(".config/svc/models.json"));
  assert.deepEqual(approved.map(({ model }: { model: string }) => model), ["two"]);
});

Deno.test("Ctrl-C cancels commands that wait for a backend: /models list, /connect, /compact", async () => {
  const options = { config: { compact_keep: 1 }, rows: 60 };
  await using open = await session([say("one"), say("two"), hang()], options);
  await using silent = startBackend({ replies: [], models: hang() });
  await open.enter("first", /^one$/m);
  await open.ready();
  await open.enter("second", /^two$/m);
  await open.enter("/compact", "");
  await open.backend.arrived(3);
  await open.pty.type("\x03");
  await open.pty.until("Cancelled: nothing was compacted.");
  await open.enter(`/connect ${silent.url} mine --no-key`, "");
  await silent.arrived(1);
  await open.pty.type("\x03");
  await open.pty.until("Nothing was saved.");
  await open.enter(`/config set base_url ${silent.url}`, "base_url is set");
  await open.enter("/models list", "");
  await silent.arrived(2);
  await open.pty.type("\x03");
  await open.pty.until("Cancelled.");
  await open.ready();
});

Deno.test("connect warns when the worktree's own provider still wins, and models shows a bare address", async () => {
  await using backend = startBackend({ replies: [], models: ["m1"] });
  await using open = await session([]);
  const options = { cwd: open.place.path, home: open.home.path };
  const before = await svc(["models"], options);
  assert.match(before.stdout, / \* \S+\/test$/m);
  const { code, stderr } = await svc(["connect", backend.url, "mine", "--no-key"], options);
  assert.equal(code, 0);
  assert.match(
    stderr,
    /warning: this worktree's own settings say base_url "http[^"]+", which wins/,
  );
  assert.match(stderr, /svc provider mine/);
});

Deno.test("/connect says that it cannot take effect here before it asks for a key; /provider keeps an address that nothing else has", async () => {
  await using open = await session([say("here")], { homeFiles: {} });
  const { url } = open.backend;
  await open.enter("/connect groq", /settings say base_url[^]*which wins here[^]*Key for groq/);
  await open.pty.type("\x03");
  await open.ready();
  await open.enter("/provider demo", `the address ${url}, which nothing else has. Replace it?`);
  await open.pty.type("n");
  await open.ready();
  const kept = () => open.place.read(".svc/config.json").then((text) => JSON.parse(text).base_url);
  assert.equal(await kept(), url);
  const options = { cwd: open.place.path, home: open.home.path };
  const { code, stderr } = await svc(["provider", "demo"], options);
  assert.equal(code, 2);
  assert.match(stderr, /which nothing else has[^]*hint: Keep it with: svc connect http/);
  assert.equal(await kept(), url);
});

Deno.test("roles and settings that are edited on disk count at the next turn; /config reload says what changed", async () => {
  await using open = await session([say("one"), say("two")], {
    args: ["--role", "smith"],
    homeFiles: {
      ".config/svc/roles.json": JSON.stringify({ smith: { system_prompt: "YOU FORGE" } }),
    },
  });
  await open.enter("go", "one");
  await open.ready();
  const file = ".config/svc/roles.json";
  await open.home.write(file, JSON.stringify({ smith: { system_prompt: "YOU HAMMER" } }));
  await open.enter("/config reload", "No setting has changed.");
  const config = JSON.parse(await open.place.read(".svc/config.json"));
  await open.place.write(".svc/config.json", JSON.stringify({ ...config, max_rounds: 7 }));
  await open.enter("/config reload", /max_rounds: \d+ is 7 now/);
  await open.enter("go on", "two");
  const [first, second] = open.backend.chats.map(({ messages }) => messages[0].content);
  assert.match(first, /YOU FORGE/);
  assert.match(second, /YOU HAMMER/);
});

Deno.test("a question that quotes a file of the worktree has no sequence of it", async () => {
  const base_url = "http://127.0.0.1:9/\x1b[2J\x1b]0;forged\x07\u202e";
  await using open = await session([], { homeFiles: {}, config: { base_url } });
  await open.enter("/provider demo", /the address http:\/\/127.0.0.1:9\/\^\[\[2J[^]*Replace it\?/);
  await open.pty.type("n");
  await open.ready();
});
