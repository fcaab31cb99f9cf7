import assert from "node:assert/strict";
import { parseScript, type Script, ScriptError, ScriptPlayer } from "../src/script.ts";
import { ChatRequest } from "../src/completion.ts";

function request(user: string, more: Record<string, unknown> = {}): ChatRequest {
  return new ChatRequest(JSON.stringify({ messages: [{ role: "user", content: user }], ...more }));
}

function play(script: Script, ...users: string[]): unknown[] {
  const player = new ScriptPlayer(script);
  return users.map((user) => player.next(request(user))?.text);
}

Deno.test("requests take the replies in order until none is left", () => {
  const replies = [{ text: "a" }, { text: "b" }];
  assert.deepEqual(play({ replies }, "1", "2", "3"), ["a", "b", undefined]);
});

Deno.test("a repeated reply serves that many requests", () => {
  const replies = [{ text: "a", repeat: 2 }, { text: "b" }];
  assert.deepEqual(play({ replies }, "1", "2", "3", "4"), ["a", "a", "b", undefined]);
});

Deno.test("a loop restarts the replies; the default serves the other requests", () => {
  const replies = [{ text: "a", repeat: 2 }, { text: "b" }];
  assert.deepEqual(play({ replies, loop: true }, ..."1234567"), [
    "a",
    "a",
    "b",
    "a",
    "a",
    "b",
    "a",
  ]);
  const fallback = { replies, default: { text: "z" } };
  assert.deepEqual(play(fallback, ..."12345"), ["a", "a", "b", "z", "z"]);
});

Deno.test("concurrent conversations take separate replies", () => {
  const replies = [
    { when: { user: "left" }, text: "l1" },
    { when: { user: "right" }, text: "r1" },
    { when: { user: "left" }, text: "l2" },
    { when: { user: "right" }, text: "r2" },
  ];
  const users = ["go right", "go right", "go left", "go left", "go left"];
  assert.deepEqual(play({ replies }, ...users), ["r1", "r2", "l1", "l2", undefined]);
  assert.deepEqual(play({ replies, loop: true }, "right", "left", "right", "right", "left"), [
    ..."r1 l1 r2 r1 l2".split(" "),
  ]);
});

Deno.test("every condition of a reply must hold", () => {
  const when = { user: "u", system: "s", tool_result: "t", model: "m" };
  const player = new ScriptPlayer({ replies: [{ when, text: "yes", repeat: 100 }] });
  const messages = [
    { role: "system", content: "a system" },
    { role: "tool", content: "an old tool result" },
    { role: "user", content: [{ type: "text", text: "a user" }] },
    { role: "tool", content: "the tool result" },
  ];
  const matches = (messages: unknown[], model = "m") =>
    player.next(new ChatRequest(JSON.stringify({ messages, model }))) !== undefined;
  assert.ok(matches(messages));
  assert.ok(!matches(messages, "model"));
  assert.ok(!matches(messages.slice(1)));
  assert.ok(!matches(messages.slice(0, 3)), "an old result must not count");
  assert.ok(!matches([...messages, { role: "user", content: "other" }]));
});

const WRONG: [script: unknown, sentence: RegExp][] = [
  [[], /^The script must be an object, not \[\]\.$/],
  [{}, /^The script has no "replies" list\.$/],
  [{ replies: {} }, /^replies must be a list, not \{\}\.$/],
  [{ replies: [], looop: true }, /^The script has an unknown key "looop"; there are replies, loop/],
  [{ replies: [], loop: 1 }, /^loop must be true or false, not 1\.$/],
  [{ replies: ["hi"] }, /^replies\[0\] must be an object, not "hi"\.$/],
  [{ replies: [{}, { txt: "" }] }, /^replies\[1\] has an unknown key "txt"; there are text,/],
  [{ replies: [{ text: 1 }] }, /^replies\[0\]\.text must be a string or a list of strings, not 1/],
  [{ replies: [{ text: ["a", 2] }] }, /^replies\[0\]\.text\[1\] must be a string, not 2/],
  [{ replies: [{ tool_calls: [{}] }] }, /^replies\[0\]\.tool_calls\[0\] has no "name"\.$/],
  [
    { replies: [{ tool_calls: [{ name: "x", arguments: [] }] }] },
    /an object or a string, not \[\]/,
  ],
  [{ replies: [{ tool_calls: [{ name: "x", fragments: 0 }] }] }, /whole number, 1 or more, not 0/],
  [{ replies: [{ finish: 3 }] }, /finish must be a string or null, not 3/],
  [{ replies: [{ done: "no" }] }, /done must be true, false or a number, not "no"/],
  [{ replies: [{ reasoning_key: "thoughts" }] }, /must be one of reasoning_content, reasoning,/],
  [{ replies: [{ echo: "nothing" }] }, /echo must be one of last_user, system, messages, tools/],
  [{ replies: [{ status: 700 }] }, /status must be a whole number, 200 to 599, not 700/],
  [{ replies: [{ body: "x" }] }, /^replies\[0\] has a "body" but no "status"\.$/],
  [{ replies: [{ redirect: { status: 302 } }] }, /redirect has no "location"/],
  [{ replies: [{ redirect: { status: 200, location: "/" } }] }, /status must be .* 300 to 399/],
  [{ replies: [{ raw: { base64: "%" } }] }, /raw\.base64 is not base64/],
  [{ replies: [{ cut: { before: 1 } }] }, /cut has an unknown key "before"; there are after/],
  [{ replies: [{ delay_ms: -1 }] }, /delay_ms must be a whole number, 0 to 2147483647, not -1/],
  [{ replies: [{ when: { users: "x" } }] }, /when has an unknown key "users"/],
  [{ replies: [{ headers: { a: 1 } }] }, /headers\.a must be a string, not 1/],
  [{ replies: [{ headers: { "a b": "c" } }] }, /headers has a name or value that HTTP does not/],
  [{ replies: [{ text: "a", raw: "b" }] }, /both "text" and "raw", which are different kinds/],
  [{ replies: [{ status: 500, redirect: { location: "/" } }] }, /both "status" and "redirect"/],
  [{ replies: [{ text: "a", echo: "system" }] }, /both "text" and "echo"; choose one/],
  [{ replies: [{ cut: true, hang: true }] }, /both "cut" and "hang"; choose one/],
  [{ replies: [], models: [1] }, /^models\[0\] must be a string, not 1/],
  [{ replies: [], models: { status: "x" } }, /^models\.status must be a whole number/],
  [{ replies: [], default: { hang: 1 } }, /^default\.hang must be true or false, not 1/],
];

for (const [script, sentence] of WRONG) {
  Deno.test(`a script is rejected: ${JSON.stringify(script)}`, () => {
    assert.throws(() => parseScript(JSON.stringify(script)), (error) => {
      assert.ok(error instanceof ScriptError);
      assert.equal(error.exit, 2);
      assert.match(error.message, sentence);
      return true;
    });
  });
}

Deno.test("a script that is not JSON is rejected in one sentence", () => {
  assert.throws(() => parseScript("{"), /: The script is not JSON: .+\.$/);
});

Deno.test("the included scripts are valid, and hundred-rounds has a hundred rounds", async () => {
  const folder = new URL("../scripts/", import.meta.url);
  const names = [];
  for await (const { name } of Deno.readDir(folder)) {
    names.push(name);
    const script = parseScript(await Deno.readTextFile(new URL(name, folder)));
    if (name !== "hundred-rounds.json") continue;
    const player = new ScriptPlayer(script);
    const replies = Array.from({ length: 101 }, () => player.next(request("go"))!);
    assert.ok(
      replies.slice(0, 100).every(({ tool_calls }) => tool_calls?.[0]?.name === "file_read"),
    );
    assert.equal(typeof replies[100]!.text, "string");
  }
  assert.deepEqual(names.sort(), ["faults.json", "hundred-rounds.json", "one-turn.json"]);
});

Deno.test("every example in README.md is valid", async () => {
  const page = await Deno.readTextFile(new URL("../README.md", import.meta.url));
  const blocks = [...page.matchAll(/```json\n(.*?)```/gs)].map((match) => match[1]!);
  const lists = blocks.filter((block) => !block.includes('"replies"'));
  const replies = lists.flatMap((block) => block.trim().split("\n"));
  assert.ok(replies.length > 20);
  for (const reply of replies) parseScript(`{"replies": [${reply}]}`);
  for (const block of blocks.filter((block) => block.includes('"replies"'))) parseScript(block);
});
