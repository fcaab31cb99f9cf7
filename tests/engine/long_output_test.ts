import assert from "node:assert/strict";
import { dirname } from "node:path";
import { Conversation } from "../../src/engine/conversation.ts";
import { Attachments } from "../../src/sessions/attachments.ts";
import { agent, collect, results } from "../support/agent.ts";
import { call, calls, say, usage } from "../support/backend.ts";
import { project } from "../support/project.ts";
import { tool } from "../support/tool.ts";

const LINES = Array.from({ length: 3000 }, (_, i) => `line ${i}`).join("\n");
const files = { "print.sh": `seq -f 'line %g' 0 2999; echo the end\n` };
const config = {
  tool_permission: { bash: "allow" },
  tool_max_result_chars: 4000,
  "sandbox.mode": "off",
};
const PRINT = call("run_command", { command: "sh print.sh" });
const PATH = /the whole is in (\.svc\/sessions\/\.[^ ]+\.kept\/[0-9a-f]{16}\.txt), for/;

const pathIn = (text: string) => PATH.exec(text)![1]!;

Deno.test("a long result keeps its beginning and end; file_read and grep get the whole without asking [8]", async () => {
  const read = { path: "", offset: 1503, limit: 2 };
  const grep = { pattern: "line 217.$", path: "" };
  await using it = await agent(
    [PRINT, say("printed"), calls([["file_read", read], ["grep", grep]]), say("read")],
    // No one is there who could approve a call that reads.
    { files, config: { ...config, tool_permission: { bash: "allow", read: "ask" } } },
  );
  const [printed] = results((await it.turn("print")).events) as [string];
  assert.ok(printed.length <= 4000);
  assert.match(printed, /^\$ sh print\.sh\nexit 0\nline 0\n[^]*\nline 2999\nthe end$/);
  read.path = grep.path = pathIn(printed);
  const [window, found] = results((await it.turn("read")).events) as [string, string];
  assert.match(window, /3003 lines, [^]*\n1503\|line 1500\n1504\|line 1501$/);
  assert.equal(found.split("\n").length, 10);
  const kept = `${it.project.path}/${read.path}`;
  assert.equal(await Deno.readTextFile(kept), `$ sh print.sh\nexit 0\n${LINES}\nthe end`);
  assert.equal(Deno.statSync(kept).mode! & 0o777, 0o600);
  assert.equal(Deno.statSync(dirname(kept)).mode! & 0o777, 0o700);

  it.session.close();
  it.workspace.sessions.remove(it.session.name);
  assert.throws(() => Deno.statSync(dirname(kept)), Deno.errors.NotFound);
});

Deno.test("no other session reads what a session keeps, and no tool writes it, whatever is allowed", async () => {
  const path = { path: "" };
  const folder = { pattern: "line 2170", path: ".svc/sessions", glob: "**/.*/*" };
  const tries = calls([
    ["file_read", path],
    ["grep", folder],
    ["file_write", {
      ...path,
      content: "x",
      get path() {
        return path.path;
      },
    }],
  ]);
  const everything = { bash: "allow", read: "allow", edit: "allow", list: "allow" };
  await using it = await agent(
    [PRINT, say("printed"), tries, say("own"), tries, say("other")],
    { files, config: { ...config, tool_permission: everything } },
  );
  path.path = pathIn(results((await it.turn("print")).events)[0]!);
  const [read, found, written] = results((await it.turn("own")).events) as string[];
  assert.match(read!, /3003 lines/);
  assert.match(found!, /line 2170$/);
  assert.match(written!, /^Error: permission denied: file_write .*svc's own/);
  const other = (await it.prepare({ session: undefined })).open();
  const refused = results((await collect(other.turn("other"))).events);
  assert.match(refused[0]!, /^Error: permission denied: .*is what another session keeps/);
  assert.match(refused[1]!, /^\(no matches/);
  assert.match(refused[2]!, /^Error: permission denied/);
  await other.close();
});

Deno.test("a sub-agent reads what the session above it keeps", async () => {
  const path = { path: "" };
  await using it = await agent([
    PRINT,
    say("printed"),
    call("delegate", { role: "scout", task: "read it" }),
    call("file_read", path),
    say("sub"),
    say("done"),
  ], {
    files: { ...files, ".svc/roles.json": '{"scout": {"system_prompt": "YOU SCOUT"}}' },
    config: { ...config, tool_permission: { bash: "allow", delegate: "allow" } },
  });
  path.path = pathIn(results((await it.turn("print")).events)[0]!);
  const { events } = await it.turn("delegate");
  assert.match(results(events, 2)[0]!, /3003 lines/);
});

Deno.test("secrets are masked in what is kept", async () => {
  const secret = "sk-0123456789abcdef0123456789";
  await using it = await agent([
    call("run_command", { command: "sh print.sh; cat key" }),
    say("ok"),
  ], {
    files: { "print.sh": `seq 5000; echo ${secret}; seq 5000\n`, key: "" },
    config,
  });
  await it.workspace.connections.save("other", {
    base_url: "http://other.example",
    api_key: secret,
  });
  const [printed] = results((await it.turn("print")).events);
  const whole = await Deno.readTextFile(`${it.project.path}/${pathIn(printed!)}`);
  assert.ok(whole.length > 40_000 && !whole.includes(secret));
});

Deno.test("the results of a reply share half of the window that is left", async () => {
  await using it = await agent([
    {
      ...calls(["1", "2"].map((n) => ["run_command", { command: `sh print.sh ${n}` }])),
      ...usage(4000, 20),
    },
    { ...call("file_read", { path: "long.txt", limit: 5000 }), ...usage(9000, 20) },
    say("ok"),
  ], {
    files: { ...files, "long.txt": `${LINES}\n` },
    config: { ...config, tool_max_result_chars: 100_000, context_window: 16_000, max_tokens: 1000 },
  });
  const outputs = results((await it.turn("print")).events) as [string, string, string];
  const { messages } = it.backend.chats[0];
  assert.ok(messages.length > 0);
  // (16000 - 1000) * 0.95 - 4000 are left; a character counts for at most 4000 tokens by those of the request.
  for (const output of outputs.slice(0, 2)) {
    assert.ok(output.length > 2000 && output.length < 20_000, `${output.length}`);
    assert.match(output, PATH);
  }
  // A tool that can be called for the rest gives no more than there is space for.
  assert.match(outputs[2], /the result limit is reached; continue with offset \d+\)$/);
});

Deno.test("long results of MCP tools and web pages are kept too; a line of any length can be read", async () => {
  const page = Array.from({ length: 2000 }, (_, i) => `word ${i}\n`).join("");
  await using server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {} },
    () => new Response(page, { headers: { "content-type": "text/plain" } }),
  );
  const line = JSON.stringify(Array.from({ length: 5000 }, (_, i) => `item ${i}`));
  const replies = calls([
    ["files.list", {}],
    ["web_fetch", { url: `http://127.0.0.1:${server.addr.port}/` }],
  ]);
  const item = { pattern: "item 2500", path: "" };
  const word = { pattern: "word 1000$", path: "" };
  await using it = await agent([
    replies,
    say("had"),
    calls([["grep", item], ["grep", word]]),
    say("ok"),
  ], {
    config: {
      ...config,
      "web.allow_private": ["127.0.0.1"],
      tool_permission: { web: "allow", mcp: "allow" },
    },
  });
  const listing = tool({ name: "files.list", permission: "mcp", handler: () => line });
  it.workspace.tools.register(listing, "svc-core-mcp");
  const [items, words] = results((await it.turn("get")).events) as [string, string];
  item.path = pathIn(items);
  word.path = pathIn(words);
  const found = results((await it.turn("search")).events) as [string, string];
  assert.match(found[0], /item 2500/);
  assert.match(found[1], /: word 1000$/);
});

Deno.test("later processes send the bytes of results that the log has only a part of", async () => {
  await using it = await agent([PRINT, say("one"), say("two")], {
    files,
    config: { ...config, session_tool_max_chars: 500 },
  });
  await it.turn("print");
  await collect(it.another().turn("again"));
  const [, before, after] = it.backend.chats.map(({ messages }) => JSON.stringify(messages));
  assert.ok(after!.startsWith(before!.slice(0, -1)));
  assert.match(
    it.session.document().turns[0]!.parts.map((part) => JSON.stringify(part)).join(),
    /truncated from \d+ chars/,
  );
});

Deno.test("a result that is left out to make room names the file of the whole", () => {
  const output =
    `a\n... (9 of 12 characters left out; the whole is in .svc/x.txt, for file_read and grep) ...\n${
      "b\n".repeat(500)
    }`;
  const call = { id: "c1" };
  const head = {
    started_at: "",
    ended_at: "",
    mode: "",
    reasoning: false,
    model: "m",
    provider: "p",
  };
  const stamp = { timestamp: "" };
  const conversation = new Conversation([{
    ...head,
    index: 1,
    status: "ok",
    parts: [
      { type: "user", text: "go", ...stamp },
      { type: "tool", name: "t", input: {}, output, is_error: false, call, ...stamp },
      { type: "command", text: "/compact", results_max: 0, results_from: 2, ...stamp },
    ],
  }]);
  assert.match(JSON.stringify(conversation.messages()), /the whole is in \.svc\/x\.txt/);
});

Deno.test("a session keeps a bounded number of bytes: the oldest go first, and long lines are broken", async () => {
  await using place = await project();
  const kept = new Attachments(`${place.path}/kept`, 10_000);
  const paths: string[] = [];
  for (const [i, text] of ["a", "b", "c"].entries()) {
    paths.push(await kept.keepText(text.repeat(4000)));
    Deno.utimeSync(paths.at(-1)!, i + 1, i + 1);
  }
  const left = Array.from(Deno.readDirSync(`${place.path}/kept`), ({ name }) => name);
  assert.equal(left.length, 2);
  assert.throws(() => Deno.statSync(paths[0]!), Deno.errors.NotFound);
  assert.deepEqual((await Deno.readTextFile(paths[2]!)).split("\n").map((line) => line.length), [
    ...[1000, 1000, 1000, 1000],
  ]);
});

Deno.test("what a session keeps is never written through a link, and no other file is removed", async () => {
  await using place = await project({ "documents/letter.txt": "x".repeat(20_000) });
  const letter = `${place.path}/documents/letter.txt`;
  Deno.symlinkSync(`${place.path}/documents`, `${place.path}/linked`);
  const linked = new Attachments(`${place.path}/linked`, 10_000);
  await assert.rejects(linked.keepText("a".repeat(4000)), /is not a folder/);
  await new Attachments(`${place.path}/documents`, 10_000).keepText("a".repeat(4000));
  assert.equal(Deno.statSync(letter).size, 20_000);
});

Deno.test("a file that is too large to be svc's own is not read as an attachment", async () => {
  await using place = await project();
  const digest = "a".repeat(64);
  await place.write(`kept/${digest}`, "");
  const kept = new Attachments(`${place.path}/kept`);
  Deno.truncateSync(`${place.path}/kept/${digest}`, 1024);
  assert.equal(kept.read({ digest })?.length, 1024);
  Deno.truncateSync(`${place.path}/kept/${digest}`, 65 * 1024 * 1024);
  assert.equal(kept.read({ digest }), undefined);
});
