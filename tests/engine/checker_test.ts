import assert from "node:assert/strict";
import { Checker, type Complaint, complaintsOf, newComplaints } from "../../src/engine/checker.ts";
import type { AgentScope } from "../../src/engine/scope.ts";
import type { ProcessResult } from "../../src/plugins/api.ts";
import { agent, collect, type TestAgent } from "../support/agent.ts";
import { as, call, calls, say } from "../support/backend.ts";
import { noProcessesLeft } from "../support/processes.ts";

/** Complains about each line of a text file with `bad` in it, as compilers do. */
const GREP = `grep -n bad *.txt | sed 's/:\\([0-9]*\\):/:\\1:1: error: /' >&2; ! grep -q bad *.txt`;

const checked = (replies: Parameters<typeof agent>[0], more: Record<string, unknown> = {}) =>
  agent(replies, {
    files: { "a.txt": "fine\nold bad\n", "b.txt": "fine\n" },
    config: {
      "dev.check_cmd": GREP,
      tool_permission: { edit: "allow", bash: "allow" },
      ...more,
    },
  });
const write = (path: string, content: string) => call("file_write", { path, content });
/** What the model was told of the checker, by request. */
const told = (it: TestAgent): string[] =>
  it.backend.chats.map(({ messages }) => {
    const { role, content } = messages.at(-1)!;
    return role === "user" && content.includes("checker") ? content : "";
  });

Deno.test("the model is told of the complaints that are new since the turn's first change, before it is done", async () => {
  await using it = await checked([
    write("a.txt", "fine\nfine\nmore\nold bad\nnew bad\n"),
    say("done"),
    write("a.txt", "fine\nold bad\n"),
    say("corrected"),
  ]);
  const { result } = await it.turn("go");
  assert.deepEqual([result.status, result.content], ["ok", "corrected"]);
  const [, , note, last] = told(it);
  assert.match(note!, /a\.txt:5:1: error: new bad/);
  assert.doesNotMatch(note!, /old bad/);
  assert.equal(last, "");
  assert.equal(it.backend.chats.length, 4);
});

Deno.test("the checker runs next to the rounds: one that waits for it ends", async () => {
  await using it = await checked({
    replies: [
      write("b.txt", "bad\n"),
      call("run_command", { command: "until test -e .checked2; do sleep 0.01; done" }),
    ],
    default: say("I know."),
  }, {
    "dev.check_cmd": `if test -e .checked1; then n=2; else n=1; fi; ${GREP}; code=$?; ` +
      "touch .checked$n; exit $code",
  });
  assert.equal((await it.turn("go")).result.content, "I know.");
  assert.match(told(it).join(""), /b\.txt:1:1: error: bad/);
});

/** A checker whose runs end when the test says so. */
function controlled() {
  const runs: PromiseWithResolvers<ProcessResult>[] = [];
  const signals: AbortSignal[] = [];
  const run = (_: unknown, signal: AbortSignal) => {
    runs.push(Promise.withResolvers());
    signals.push(signal);
    return runs.at(-1)!.promise;
  };
  const scope = {
    changes: { scan: () => Promise.resolve() },
    session: { name: "s" },
    sandbox: { run },
    prompt: { worktree: "/w" },
    mask: (text: string) => text,
    config: { get: (key: string) => key === "dev.check_cmd" ? "check" : 60 },
  } as unknown as AgentScope;
  const checker = new Checker(scope, new AbortController().signal, assert.fail);
  const settled = () => new Promise((resolve) => setTimeout(resolve));
  const end = async (output: string) => {
    await settled();
    const code = output === "" ? 0 : 1;
    runs.at(-1)!.resolve({ code, output, timed_out: false, cancelled: false });
    await settled();
  };
  return { checker, end, signals, settled };
}

Deno.test("what the checker finds is told after the round in which it ends; a newer change ends an older run", async () => {
  const { checker, end, signals, settled } = controlled();
  checker.begin();
  await end("a:1: old\n");
  await checker.beforeChange();
  assert.equal(await checker.endRound(), "");
  assert.equal(await checker.endRound(), "", "it still runs");
  await end("a:2: old\na:1: new\n");
  assert.match(await checker.endRound(), /a:1: new\n/);
  await checker.beforeChange();
  await checker.endRound();
  await checker.beforeChange();
  await checker.endRound();
  await settled();
  assert.deepEqual(signals.map(({ aborted }) => aborted), [false, false, true, false]);
  await end("a:3: newer\na:2: old\na:1: new\n");
  const last = await checker.lastNote();
  assert.match(last, /a:3: newer/);
  assert.doesNotMatch(last, /a:1: new\n|old/);
  assert.equal(await checker.lastNote(), "");
});

Deno.test("a complaint is told once, and again when it comes back", async () => {
  await using it = await checked([
    write("b.txt", "bad\n"),
    say("done"),
    write("b.txt", "bad\nfine\n"),
    say("it has to be"),
  ]);
  const { result } = await it.turn("go");
  assert.equal(result.content, "it has to be");
  assert.equal(told(it).filter(Boolean).length, 1);
  await using back = await checked([
    write("b.txt", "bad\n"),
    say("done"),
    write("b.txt", "fine\n"),
    say("done"),
  ]);
  assert.equal((await back.turn("go")).result.content, "done");
});

Deno.test("a turn that may change nothing does not run the checker, and one without calls neither", async () => {
  const look = call("file_read", { path: "a.txt" });
  for (
    const [config, replies] of [[{ mode: "plan" }, [look, say("done")]], [{}, [
      say("done"),
    ]]] as const
  ) {
    await using it = await checked([...replies], {
      "dev.check_cmd": "touch ran; exit 1",
      ...config,
    });
    assert.equal((await it.turn("go")).result.status, "ok");
    await assert.rejects(it.project.read("ran"));
  }
});

Deno.test("a checker that finds nothing new costs no request, and neither does one that cannot run", async () => {
  for (
    const [command, limit, warning] of [
      ["true", 60, ""],
      [GREP, 60, ""],
      [
        "no-such-checker",
        60,
        "The checker cannot be run: no-such-checker: exit code 127: .*not found",
      ],
      ["sleep 97.4", 0.05, "did not end within 0.05 seconds"],
    ] as const
  ) {
    await using it = await checked([write("b.txt", "good\n"), say("done")], {
      "dev.check_cmd": command,
      "dev.check_timeout": limit,
    });
    const { result, events } = await it.turn("go");
    assert.deepEqual([result.status, it.backend.chats.length], ["ok", 2], command);
    const warnings = events.flatMap((event) => event.type === "notice" ? [event.message] : []);
    assert.equal(warnings.filter((text) => text.includes("checker")).length, warning ? 1 : 0);
    assert.match(warnings.join("\n"), new RegExp(warning));
    await noProcessesLeft(it.project.path);
  }
});

Deno.test("cancelling the turn ends the checker", async () => {
  await using it = await checked([write("b.txt", "bad\n"), say("done")], {
    "dev.check_cmd": "test -e again || { touch again; exit 0; }; touch began; sleep 97.3",
  });
  const stop = new AbortController();
  const ended = collect(it.engine.turn("go", { signal: stop.signal }));
  while (await it.project.read("began").then(() => false, () => true)) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  stop.abort();
  assert.equal((await ended).result.status, "cancelled");
  await noProcessesLeft(it.project.path);
});

Deno.test("the last round that a turn may have is not spent on the checker", async () => {
  await using it = await checked([write("b.txt", "bad\n"), say("done")], { max_rounds: 2 });
  const { result } = await it.turn("go");
  assert.deepEqual([result.status, result.content, it.backend.chats.length], ["ok", "done", 2]);
});

Deno.test("a sub-agent is told of the complaints of its changes, and so is its caller", async () => {
  await using it = await checked([
    call("delegate", { role: "maker", task: "make it" }),
    as("YOU MAKE", write("b.txt", "bad\n")),
    as("YOU MAKE", say("made")),
    as("YOU MAKE", say("it has to be")),
    write("a.txt", "fine\nold bad\nmy bad\n"),
    say("done"),
    say("well"),
  ], { tool_permission: { edit: "allow", delegate: "allow" } });
  await it.project.write(".svc/roles.json", '{"maker": {"system_prompt": "YOU MAKE"}}');
  const { result } = await it.turn("go");
  assert.deepEqual([result.status, result.content], ["ok", "well"]);
  const notes = (of: RegExp) =>
    told(it).filter((_, n) => of.test(it.backend.chats[n].messages[0].content)).join("\n");
  assert.match(notes(/YOU MAKE/), /b\.txt:1:1: error: bad/);
  assert.doesNotMatch(notes(/YOU MAKE/), /my bad/);
  const own = notes(/^(?![^]*YOU MAKE)/);
  assert.match(own, /b\.txt:1:1: error: bad/);
  assert.match(own, /a\.txt:3:1: error: my bad/);
});

Deno.test("a turn that answers by a schema is told too, and may answer anew", async () => {
  const answer = (n: number) => call("answer", { data: { n } });
  await using it = await checked([
    write("b.txt", "bad\n"),
    answer(1),
    write("b.txt", "good\n"),
    answer(2),
  ]);
  const task = { schema: { type: "object" } };
  const { result } = await collect(it.engine.turn("go", { task }));
  assert.deepEqual([result.status, result.data], ["ok", { n: 2 }]);
  assert.match(told(it)[2]!, /b\.txt:1:1: error: bad/);
});

Deno.test("complaints are masked, without control characters, and bounded", async () => {
  const many = Array.from({ length: 500 }, (_, i) => `bad thing ${"x".repeat(100)}${i}`).join("\n");
  const secret = "sk-verysecretkey0123456789";
  await using it = await checked([
    calls([
      ["file_write", { path: "b.txt", content: `bad \u001b[31m${secret}\u001b[0m\u202e\n` }],
      ["file_write", { path: "c.txt", content: many }],
    ]),
    say("done"),
    say("well"),
  ]);
  await it.workspace.connections.save("other", {
    base_url: "http://other.example",
    api_key: secret,
  });
  await it.turn("go");
  const note = told(it)[2]!;
  assert.match(note, /b\.txt:1:1: error: bad/);
  // deno-lint-ignore no-control-regex
  assert.doesNotMatch(note, /sk-very|\x1b|\u202e/);
  assert.match(note, /\.\.\. and 481 more/);
  assert.ok(note.length < 5000, `${note.length}`);
});

Deno.test("what the checker found is sent again in later turns, byte for byte, also after a restart", async () => {
  await using it = await checked([
    write("b.txt", "bad\n"),
    say("done"),
    write("b.txt", "fine\n"),
    say("corrected"),
    say("You are welcome."),
  ]);
  await it.turn("go");
  await collect(it.another().turn("thank you"));
  const { chats } = it.backend;
  assert.equal(chats.length, 5);
  for (const [n, { messages }] of chats.slice(0, -1).entries()) {
    assert.deepEqual(chats[n + 1].messages.slice(0, messages.length), messages, `request ${n + 2}`);
  }
});

/** What checkers print, and what is new after a change that shifted lines and added one complaint. */
const OUTPUTS: Record<string, [before: string, after: string, fresh: string[]]> = {
  "tsc --pretty false": [
    "src/a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.\n",
    "src/a.ts(9,5): error TS2322: Type 'string' is not assignable to type 'number'.\n" +
    "src/a.ts(12,1): error TS2345: Argument of type 'A'.\n  Property 'x' is missing.\n",
    ["src/a.ts(12,1): error TS2345: Argument of type 'A'.\n  Property 'x' is missing."],
  ],
  "mypy": [
    'a.py:3: error: Name "x" is not defined  [name-defined]\nFound 1 error in 1 file (checked 2 source files)\n',
    'a.py:4: error: Name "x" is not defined  [name-defined]\nb.py:7: error: Name "y" is not defined\n' +
    "Found 2 errors in 2 files (checked 2 source files)\n",
    ['b.py:7: error: Name "y" is not defined'],
  ],
  "eslint": [
    "/w/a.js\n  3:5  error  'x' is unused  no-unused-vars\n\n✖ 1 problem (1 error, 0 warnings)\n",
    "/w/a.js\n  1:5  error  'y' is unused  no-unused-vars\n  4:5  error  'x' is unused  no-unused-vars\n\n" +
    "/w/b.js\n  3:5  error  'x' is unused  no-unused-vars\n\n✖ 3 problems (3 errors, 0 warnings)\n",
    [
      "/w/a.js:   1:5  error  'y' is unused  no-unused-vars",
      "/w/b.js\n  3:5  error  'x' is unused  no-unused-vars",
    ],
  ],
  "deno check": [
    "Check file:///w/a.ts\nTS2322 [ERROR]: Type 'string' is not assignable to type 'number'.\n" +
    'const a: number = "x";\n      ^\n    at file:///w/a.ts:1:7\n\nerror: Type checking failed.\n',
    "Check file:///w/a.ts\nCheck file:///w/b.ts\nTS2322 [ERROR]: Type 'string' is not assignable to type 'number'.\n" +
    "const a: number = \"x\";\n      ^\n    at file:///w/a.ts:4:7\n\nTS2304 [ERROR]: Cannot find name 'z'.\nz;\n^\n" +
    "    at file:///w/a.ts:9:1\n\nFound 2 errors.\n\nerror: Type checking failed.\n",
    ["TS2304 [ERROR]: Cannot find name 'z'.\nz;\n^\n    at file:///w/a.ts:9:1"],
  ],
  "cargo check": [
    "    Checking x v0.1.0 (/w)\nerror[E0308]: mismatched types\n --> src/main.rs:2:18\n  |\n" +
    '2 |     let x: i32 = "a";\n  |            ---   ^^^ expected `i32`\n\n' +
    'error: could not compile `x` (bin "x") due to 1 previous error\n',
    "    Checking x v0.1.0 (/w)\nerror[E0308]: mismatched types\n --> src/main.rs:12:18\n   |\n" +
    '12 |     let x: i32 = "a";\n   |            ---   ^^^ expected `i32`\n\n' +
    "error[E0425]: cannot find value `y`\n --> src/main.rs:3:5\n  |\n3 |     y\n  |     ^ not found\n\n" +
    'error: could not compile `x` (bin "x") due to 2 previous errors\n',
    ["error[E0425]: cannot find value `y`\n --> src/main.rs:3:5\n  |\n3 |     y\n  |     ^ not found"],
  ],
  "the same complaint in one more place": [
    "a.go:3:1: undefined: x\n",
    "a.go:3:1: undefined: x\na.go:9:1: undefined: x\n",
    ["a.go:9:1: undefined: x"],
  ],
  "one fixed, none new": [
    "a.go:3:1: undefined: x\na.go:9:1: undefined: y\n2 errors\n",
    "a.go:8:1: undefined: y\n1 error\n",
    [],
  ],
  "no places": ["missing: x\n\nDone in 1.2s\n", "missing: x\n\nmissing: y\n\nDone in 3s\n", [
    "missing: y",
  ]],
};

for (const [name, [before, after, fresh]] of Object.entries(OUTPUTS)) {
  Deno.test(`complaints are compared by text without line numbers: ${name}`, () => {
    const shown = ({ head, text }: Complaint) => head === "" ? text : `${head}: ${text}`;
    const found = newComplaints(complaintsOf(before), complaintsOf(after)).map(shown);
    assert.deepEqual(found, fresh);
    assert.deepEqual(newComplaints(complaintsOf(after), complaintsOf(after)), []);
  });
}

Deno.test("of many lines before many complaints of one file the last are compared, not all with each", () => {
  const output = "long\n".repeat(10_000) + "a.txt\n" + "1:1 bad\n".repeat(10_000);
  const found = complaintsOf(output);
  assert.equal(found.length, 10_000);
  assert.match(found[0]!.head, /\na\.txt$/);
  assert.ok(found[0]!.head.length <= 500);
});
