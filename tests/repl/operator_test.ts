import assert from "node:assert/strict";
import { Config } from "../../src/config/config.ts";
import type { KeyAnswer, KeyQuestion } from "../../src/repl/input/key_prompt.ts";
import type { InputResult, ReadOptions } from "../../src/repl/input/line_editor.ts";
import { TerminalOperator } from "../../src/repl/operator.ts";
import { Output } from "../../src/repl/render/output.ts";
import { style } from "../../src/platform/style.ts";
import { openPaths } from "../../src/platform/environment.ts";
import type { Clock } from "../../src/platform/clock.ts";
import type { ConfirmAnswer, ConfirmRequest } from "../../src/policy/operator.ts";
import { project } from "../support/project.ts";

interface Person {
  operator: TerminalOperator;
  reads: (ReadOptions | KeyQuestion)[];
  cancelled(): number;
  printed(): string;
}

/**
 * A person who types these answers: keys to what one key answers, lines to all else; "…" never answers, "^C",
 * "^D" and "^[" are keys. A key that is no answer is skipped.
 */
async function person(
  answers: string[],
  settings: Record<string, unknown> = {},
  clock: Clock = { now: () => 0, sleep: () => new Promise(() => {}) },
  typing = () => false,
): Promise<Person & AsyncDisposable> {
  const place = await project();
  const config = Config.open(openPaths(place.path, place.path), (_, local) => new Map(local));
  for (const [key, value] of Object.entries(settings)) config.override(key, value);
  let printed = "";
  let cancelled = 0;
  const reads: (ReadOptions | KeyQuestion)[] = [];
  const special = { "^C": "interrupted", "^D": "end", "^[": "escaped" } as const;
  const never = <T>(signal: AbortSignal | undefined) =>
    new Promise<T | { type: "interrupted" }>((resolve) => {
      const end = () => resolve({ type: "interrupted" });
      signal?.addEventListener("abort", end);
      if (signal?.aborted) end();
    });
  const port = {
    write: (text: string) => void (printed += text),
    columns: () => 80,
    isTerminal: false,
  };
  const plain = style({ enabled: false });
  const operator = new TerminalOperator({
    input: {
      get typing() {
        return typing();
      },
      read(options) {
        reads.push(options);
        const answer = answers.shift() ?? "…";
        if (answer === "…") return never<InputResult>(options.signal);
        const type = special[answer as "^C"];
        return Promise.resolve(type === undefined ? { type: "line", text: answer } : { type });
      },
      async key(question) {
        reads.push(question);
        while (true) {
          const answer = answers.shift() ?? "…";
          if (answer === "…") return await never<KeyAnswer>(question.signal);
          const key = answer === "^[" ? "escape" : answer;
          if (question.accepts(key)) {
            printed += `${question.prompt}${key}\n`;
            return { type: "key", key };
          }
          const type = special[answer as "^C"];
          if (type === "interrupted" || type === "end") return { type };
        }
      },
    },
    rows: () => 24,
    output: new Output(port, plain),
    style: plain,
    config,
    clock,
    cancel: () => cancelled++,
    isActive: (session) => session === "here",
  });
  return {
    operator,
    reads,
    cancelled: () => cancelled,
    printed: () => printed,
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
}

function request(change: Partial<ConfirmRequest> = {}): ConfirmRequest {
  return {
    tool: "run_command",
    input: { command: "ls" },
    category: "bash",
    reason: "bash asks",
    preview: "ls -la",
    run: 1,
    session: "here",
    signal: new AbortController().signal,
    ...change,
  };
}

Deno.test("one key answers a confirmation, and what will run is shown", async () => {
  const cases: [string[], Partial<ConfirmAnswer>][] = [
    [["y"], { granted: true, scope: "once" }],
    [["a"], { granted: true, scope: "always" }],
    [["n"], { granted: false, scope: "once" }],
    [["x", "enter", "yes", "an", "", "n"], { granted: false, scope: "once" }],
    [["^D"], { granted: false, scope: "once" }],
    [["e", " use make "], { granted: false, scope: "once", reason: "use make" }],
    [["e", ""], { granted: false, scope: "once" }],
    [["e", "^[", "y"], { granted: true, scope: "once" }],
  ];
  for (const [typed, answer] of cases) {
    await using asked = await person([...typed]);
    assert.deepEqual(await asked.operator.confirm(request()), { ...answer, by: "operator" });
    assert.match(asked.printed(), /\? run_command \(bash\): bash asks\n {2}ls -la\n/);
    assert.equal(asked.cancelled(), 0);
  }
});

Deno.test("always lets the operator choose what it covers, and shows all of that", async () => {
  const choices = [
    { covers: "this very command", opens: "" },
    { covers: "commands that begin with: ls", opens: "reading" },
    { covers: "every bash call", opens: "" },
  ];
  const cases: [string[], Partial<ConfirmAnswer>][] = [
    [["a", "1"], { granted: true, scope: "always", choice: 0 }],
    [["a", "4", "a", "y", "3"], { granted: true, scope: "always", choice: 2 }],
    [["a", "enter"], { granted: true, scope: "always", choice: 0 }],
    [["a", "^[", "n"], { granted: false, scope: "once" }],
    [["a", "^D"], { granted: false, scope: "once" }],
  ];
  for (const [typed, answer] of cases) {
    await using asked = await person([...typed]);
    const got = await asked.operator.confirm(request({ choices }));
    assert.deepEqual(got, { ...answer, by: "operator" });
    assert.equal(
      asked.reads[1]!.prompt,
      "Always, until this session ends:\n  [1] this very command\n" +
        "  [2] commands that begin with: ls; it opens reading\n  [3] every bash call\n" +
        "1, 2, 3, or Esc to go back: ",
    );
  }
  const one = await person(["a"]);
  const forged = [{ covers: "every edit call for a\n? forged (bash): harmless", opens: "" }];
  await using two = await person(["y"]);
  await two.operator.confirm(request({ choices: forged }));
  assert.doesNotMatch(two.printed(), /^\? forged/m);
  const only = [{ covers: "this very call", opens: "" }];
  assert.equal((await one.operator.confirm(request({ choices: only }))).scope, "always");
  assert.match(one.reads[0]!.prompt, /\[a\] always: this very call {2}\[n\] no/);
  const none = await person(["a", "y"]);
  assert.equal((await none.operator.confirm(request({ choices: [] }))).scope, "once");
  assert.doesNotMatch(none.reads[0]!.prompt, /always/);
});

Deno.test("a long preview is folded and says by how much; v shows all of it", async () => {
  const preview = Array.from({ length: 240 }, (_, line) => `line ${line}`).join("\n");
  await using asked = await person(["v", "y"]);
  assert.equal((await asked.operator.confirm(request({ preview }))).granted, true);
  const [before, after] = asked.printed().split("[v] all of it: v");
  assert.match(before!, /line 14\n {2}… 225 more lines, v shows them\n/);
  assert.doesNotMatch(before!, /line 15\n/);
  assert.match(after!, /line 0\n[^]*line 239/);
});

Deno.test("a rewrite of 200 lines shows both sides, and how many lines of each are folded", async () => {
  const side = (word: string, sign: string) =>
    Array.from({ length: 200 }, (_, line) => `${sign}${word} ${line}\n`).join("");
  const preview = `--- a.txt\n+++ a.txt\n@@ -1,200 +1,200 @@\n${side("old", "-")}${
    side("new", "+")
  }`;
  await using asked = await person(["v", "n"]);
  await asked.operator.confirm(request({ preview, tool: "file_write", category: "edit" }));
  const [before, after] = asked.printed().split("[v] all of it: v");
  assert.match(before!, /1 - old 0\n[^]*… 19\d more removed lines, v shows them\n/);
  assert.match(before!, /1 \+ new 0\n[^]*… 19\d more added lines, v shows them\n/);
  assert.ok(before!.split("\n").length < 20);
  assert.match(after!, /200 - old 199\n[^]*200 \+ new 199\n/);
});

Deno.test("[v] is offered while something is folded", async () => {
  const preview = "line\n".repeat(40);
  await using asked = await person(["v", "n", "n"]);
  await asked.operator.confirm(request({ preview }));
  await asked.operator.confirm(request());
  const short = "[y] once  [a] always  [n] no  [e] no, because: ";
  assert.deepEqual(asked.reads.map(({ prompt }) => prompt), [
    "[y] once  [a] always  [n] no  [e] no, because  [v] all of it: ",
    short,
    short,
  ]);
});

Deno.test("the question stays visible whatever the call contains: long lines are cut, and v repeats the question", async () => {
  const fake = "? file_read (read): the category read is set to ask\n  notes.txt";
  const flood = `${" ".repeat(5000)}${fake}`;
  const rows = (text: string) =>
    text.split("\n").reduce(
      (sum, line) => sum + Math.max(1, Math.ceil(line.replaceAll("\t", " ".repeat(8)).length / 80)),
      0,
    );
  const floods = [
    request({ preview: `$ rm -rf ~ #${flood}` }),
    request({ preview: `$ rm -rf ~ #${flood}\n`.repeat(30) }),
    request({ preview: `$ rm -rf ~ #${"\t".repeat(900)}${fake}` }),
    request({ reason: `permission for bash is requested: ${flood}`, preview: "" }),
    request({ reason: `permission for bash is requested: ${"\n".repeat(60)}${fake}` }),
  ];
  for (const [index, flooded] of floods.entries()) {
    await using asked = await person(["v", "n"]);
    await asked.operator.confirm(flooded);
    const [prompt] = asked.reads.map(({ prompt }) => prompt);
    assert.equal(prompt!.includes("[v]"), index < 4, "nothing is left out unsaid");
    const all = asked.printed();
    const second = all.indexOf("? run_command (bash)", 1);
    assert.ok(rows(all.slice(0, second < 0 ? all.length : second)) < 20);
    assert.match(all, /^\? run_command \(bash\): /);
    if (index < 4) {
      assert.match(
        all,
        /\n\? run_command \(bash\): [^]{1,330}\n\[y\] [^\n]*\n$/,
      );
    }
    assert.doesNotMatch(all, /\n\? file_read/);
  }
});

Deno.test("a long question and its options are lines of whole words", async () => {
  await using asked = await person(["2"]);
  const long = "many words ".repeat(12).trim();
  await asked.operator.ask({
    question: long,
    context: long,
    options: ["red", long],
    run: 1,
    session: "here",
    signal: new AbortController().signal,
  });
  const lines = asked.printed().trimEnd().split("\n");
  const [first, rest] = ["many words ".repeat(7).trim(), "many words ".repeat(5).trim()];
  const [less, more] = ["many words ".repeat(6) + "many", "words " + rest];
  assert.deepEqual(lines, [
    `? ${first}`,
    `  ${rest}`,
    `  ${first}`,
    `  ${rest}`,
    "  1. red",
    `  2. ${less}`,
    `     ${more}`,
  ]);
});

Deno.test("control characters of a preview never reach the terminal", async () => {
  await using asked = await person(["n"]);
  await asked.operator.confirm(
    request({ preview: "rm \x1b[2K\x1b]0;x\x07-rf\u202e /", reason: "\x1b[1m" }),
  );
  // deno-lint-ignore no-control-regex
  assert.doesNotMatch(asked.printed(), /[\x1b\x07\u202e]/);
});

Deno.test("Ctrl-C and Escape at a confirmation decline it and cancel the turn", async () => {
  const choices = [{ covers: "one", opens: "" }, { covers: "two", opens: "" }];
  for (const keys of [["^C"], ["^["], ["a", "^C"], ["e", "^C"]]) {
    await using asked = await person(keys);
    assert.equal((await asked.operator.confirm(request({ choices }))).granted, false);
    assert.equal(asked.cancelled(), 1);
  }
  await using question = await person(["^["]);
  const about = { question: "?", context: "", options: [], run: 1, session: "here" };
  const { signal } = new AbortController();
  assert.equal(await question.operator.ask({ ...about, signal }), undefined);
  assert.equal(question.cancelled(), 1);
});

Deno.test("a question waits until the operator pauses in a message", async () => {
  const slept: number[] = [];
  const clock: Clock = { now: () => 0, sleep: (ms) => (slept.push(ms), Promise.resolve()) };
  const busy = { now: 3 };
  await using asked = await person(["y"], { confirm_timeout: 0 }, clock, () => busy.now-- > 0);
  assert.equal((await asked.operator.confirm(request())).granted, true);
  assert.deepEqual(slept, [100, 100, 100]);
});

Deno.test("confirm_timeout denies unanswered questions, 0 waits; hide_confirm_input hides the answer [2.13]", async () => {
  const slept: number[] = [];
  const clock: Clock = {
    now: () => 0,
    sleep: (ms) => (slept.push(ms), Promise.resolve()),
  };
  const settings = { confirm_timeout: 30, hide_confirm_input: true };
  await using asked = await person(["…"], settings, clock);
  const answer = await asked.operator.confirm(request());
  assert.deepEqual(answer, { granted: false, scope: "once", by: "confirm_timeout" });
  assert.deepEqual(slept, [30_000]);
  assert.equal(asked.reads[0]!.hidden, true);
  assert.equal(asked.cancelled(), 0);
  assert.match(asked.printed(), /No answer in 30 s: denied\./);
  await using waiting = await person(["y"], { confirm_timeout: 0 }, clock);
  assert.equal((await waiting.operator.confirm(request())).granted, true);
  assert.deepEqual(slept, [30_000]);
});

Deno.test("an unattended session never prompts [2.13]", async () => {
  await using asked = await person([], { unattended: true });
  const answer = await asked.operator.confirm(request());
  assert.deepEqual(answer, { granted: false, scope: "once", by: "unattended" });
  const question = { question: "?", context: "", options: [], run: 1, session: "here" };
  const { signal } = new AbortController();
  assert.equal(await asked.operator.ask({ ...question, signal }), undefined);
  assert.equal(await asked.operator.approveModels(["a/b"]), false);
  assert.equal(asked.reads.length, 0);
});

Deno.test("concurrent confirmations are queued and name runs of other sessions [4.8]", async () => {
  await using asked = await person(["y", "n"]);
  const one = asked.operator.confirm(request({ preview: "first" }));
  const two = asked.operator.confirm(request({ preview: "second", run: 2, session: "sub_x" }));
  assert.equal(asked.operator.asking, true);
  assert.deepEqual((await Promise.all([one, two])).map(({ granted }) => granted), [true, false]);
  assert.match(asked.printed(), /first[^]*second/);
  assert.equal(asked.printed().match(/\[run #2, session sub_x\]/g)?.length, 1);
  assert.equal(asked.operator.asking, false);
});

Deno.test("questions of an ended turn are dropped", async () => {
  const over = new AbortController();
  await using asked = await person(["…", "y"]);
  const first = asked.operator.confirm(request({ signal: over.signal }));
  const second = asked.operator.confirm(request({ signal: over.signal }));
  await new Promise((resolve) => setTimeout(resolve));
  over.abort();
  assert.deepEqual((await Promise.all([first, second])).map(({ granted }) => granted), [
    false,
    false,
  ]);
  assert.equal(asked.reads.length, 1);
  assert.equal(asked.cancelled(), 0);
});

Deno.test("a question takes a number of its options, or any text", async () => {
  const question = { question: "Which?", context: "about it", options: ["red", "blue"] };
  const { signal } = new AbortController();
  for (const [typed, answer] of [["2", "blue"], ["green", "green"], ["3", "3"], ["", undefined]]) {
    await using asked = await person([typed!]);
    const got = await asked.operator.ask({ ...question, run: 1, session: "here", signal });
    assert.equal(got, answer);
    assert.match(asked.printed(), /\? Which\?\n {2}about it\n {2}1\. red\n {2}2\. blue\n/);
  }
});

Deno.test("no question to the operator hides a character", async () => {
  const tags = Array.from("rm", (each) => String.fromCodePoint(0xe0000 + each.charCodeAt(0)));
  const hidden = `a\u200b\u2028\u202e\ufeff\u3164${tags.join("")}b`;
  await using at = await person(["y", "1", "y"]);
  const signal = new AbortController().signal;
  const where = { run: 2, session: hidden, signal };
  const call = { tool: hidden, input: { [hidden]: hidden }, category: hidden, reason: hidden };
  await at.operator.confirm({ ...call, preview: "", ...where });
  await at.operator.ask({ question: hidden, context: hidden, options: [hidden], ...where });
  await at.operator.approveModels([hidden]);
  assert.doesNotMatch(at.printed(), /[^\x20-\x7e\n]/);
  assert.match(at.printed(), /a<U\+200B><U\+2028><U\+202E><U\+FEFF><U\+3164><U\+E0072>/);
});
