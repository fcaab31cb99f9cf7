import assert from "node:assert/strict";
import { call, calls, say, startBackend } from "../support/backend.ts";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";
import { server } from "../server/support.ts";

const ROLES = JSON.stringify({
  lead: { system_prompt: "YOU LEAD", tool_permission: { edit: "deny" } },
  maker: { system_prompt: "YOU MAKE" },
});
const write = call("file_write", { path: "made.txt", content: "x" });
const REFUSED = /^Error: permission denied: file_write \(category edit\)/;

const lastResult = (chat: { messages: { role: string; content: string }[] }): string =>
  chat.messages.findLast(({ role }) => role === "tool")!.content;

Deno.test("a continued session keeps its role, under the roles of its parents [5.3]", async () => {
  await using place = await project({
    ".svc/roles.json": ROLES,
    ".svc/config.json": JSON.stringify({ memory_enabled: false }),
  });
  await using backend = startBackend([
    call("delegate", { role: "maker", task: "ask" }),
    call("ask", { question: "Shall I?" }),
    say("CANNOT DECIDE"), // its parent agent, consulted first
    say("parked"),
    say("it waits"),
    write,
    say("tried"),
    write,
    say("tried"),
    write,
    say("written"),
  ]);
  const run = (...args: string[]) =>
    svc(["run", "--base-url", backend.url, "--model", "test", ...args], { cwd: place.path });
  const first = await run("--role", "lead", "--unattended", "go");
  const root = JSON.parse(first.stdout).session;
  const answered = await svc(["asks", "answer", "1", "yes", "--output", "json"], {
    cwd: place.path,
  });
  // The command from the answer.
  const { session, resume } = JSON.parse(answered.stdout);
  assert.equal(resume, `svc run --session-id ${session} "continue"`);
  for (const [at, [name, prompt]] of [[session, /YOU MAKE/], [root, /YOU LEAD/]].entries()) {
    const { code, stderr } = await run("--session-id", name, "continue");
    assert.equal(code, 0);
    assert.match(
      stderr,
      /^1 call was refused: file_write \(edit\): the category edit is set to deny .*\n$/,
    );
    const chat = backend.chats[6 + 2 * at];
    assert.match(chat.messages[0].content, prompt);
    assert.match(lastResult(chat), REFUSED);
  }
  // An explicit role is the operator's choice.
  await run("--session-id", session, "--role", "maker", "continue");
  assert.match(lastResult(backend.chats.at(-1)), /^Created /);

  await place.write(".svc/roles.json", "{}");
  const gone = await run("--session-id", session, "continue");
  assert.equal(gone.code, 2);
  assert.match(gone.stderr, /^svc: There is no role "lead"/);
});

Deno.test("POST /chat continues a session with its role", async () => {
  await using at = await server(
    [write, say("tried"), calls([["file_write", { path: "y", content: "" }]]), say("ok")],
    { files: { ".svc/roles.json": ROLES } },
  );
  at.workspace.sessions.create("ses", { role: "lead" }).close();
  const [name] = at.workspace.sessions.list();
  assert.equal((await at.post("/chat", { prompt: "go", session: name })).status, 200);
  assert.match(at.backend.chats[1].messages[0].content, /YOU LEAD/);
  assert.match(lastResult(at.backend.chats[1]), REFUSED);
  await at.post("/chat", { prompt: "go" });
  assert.match(lastResult(at.backend.chats[3]), /^Created /);
});
