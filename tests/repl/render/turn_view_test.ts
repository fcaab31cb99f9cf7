import assert from "node:assert/strict";
import { withoutMiddle } from "../../../src/tools/execute.ts";
import {
  ROOT_RUN,
  type TurnEvent,
  type TurnResult,
  unfinishedResult,
} from "../../../src/engine/events.ts";
import { Output } from "../../../src/repl/render/output.ts";
import { style } from "../../../src/platform/style.ts";
import { TurnView, type ViewSettings } from "../../../src/repl/render/turn_view.ts";
import { manualClock } from "../../support/clock.ts";
import { Screen } from "../../support/screen.ts";

const DEFAULTS: ViewSettings = {
  show_thinking: false,
  show_errors: true,
  show_notes: true,
  status_spinner: true,
  word_streaming: true,
  delegate_echo: true,
  subrun_verbosity: "summary",
};

const STARTED: TurnEvent = {
  type: "turn_started",
  run: ROOT_RUN,
  session: "s",
  index: 1,
  model: "small",
  provider: "demo",
  mode: "build",
};

Deno.test("an answer is shown as it comes, with a status line below and a footer at the end", () => {
  const { view, text, pass } = terminal();
  view.event(token("Hello **wor"));
  assert.equal(text(), "Hello\n⠋ 0 s · ~3 tokens · answering");
  pass(61_000);
  view.tick();
  assert.equal(text(), "Hello\n⠋ 1 min 1 s · ~3 tokens · answering");
  view.event(token("ld** it is"));
  view.event({
    type: "usage",
    run: ROOT_RUN,
    usage: { prompt_tokens: 1200, completion_tokens: 34 },
  });
  view.event(finished());
  assert.equal(
    text(),
    "Hello world it is\n\ndemo/small · 1.2k in, 34 out · context 1.2k · 2.5 s",
  );
});

Deno.test("with status_spinner off there is no status line [2.13]", () => {
  const { view, text, pass } = terminal({ status_spinner: false });
  view.event(token("Hello **wor"));
  pass(1000);
  view.tick();
  assert.equal(text(), "Hello");
});

Deno.test("the footer has the share of the context window, the cost where it is known, and background work, in one line", () => {
  const footer = (columns: number, enabled: boolean) => {
    const background = () => ["job nightly"];
    const { view, text } = terminal({}, { columns, enabled, background });
    const usage = { prompt_tokens: 1200, completion_tokens: 34 };
    view.event({ type: "usage", run: ROOT_RUN, usage, window: 8000 });
    const calls = [{ name: "x", arguments: {}, is_error: false, refused: false }];
    view.event(finished({ cost: 0.01234, tool_calls: calls }));
    return text();
  };
  const whole = "demo/small · 1.2k in, 34 out · context 1.2k of 8.0k (15 %) · cost 0.012 · " +
    "1 tool call · 2.5 s · job nightly";
  for (const enabled of [false, true]) {
    assert.equal(footer(200, enabled), whole);
    assert.equal(
      footer(80, enabled),
      "demo/small · 1.2k in, 34 out · context 15 % · cost 0.012 · 2.5 s · job nightly",
    );
    assert.equal(footer(40, enabled), "context 15 % · cost 0.012 · job nightly");
  }
});

Deno.test("reasoning is a status with its duration, and dim text with show_thinking [2.13]", () => {
  for (const show_thinking of [false, true]) {
    const { view, text, pass } = terminal({ show_thinking });
    view.event({ type: "thinking", run: ROOT_RUN, content: "let me " });
    pass(3200);
    view.event({ type: "thinking", run: ROOT_RUN, content: "see" });
    assert.match(text(), /⠴? ?3 s · ~3 tokens · thinking$/);
    view.event(token("Yes."));
    view.event(finished());
    const thoughts = show_thinking ? "let me see\n" : "";
    assert.equal(
      text().split("\n\n").slice(0, 2).join("\n\n"),
      `${thoughts}thought for 3.2 s\n\nYes.`,
    );
  }
});

Deno.test("a tool call has one line, with how long it took when that was long", () => {
  const { view, text } = terminal();
  view.event(call("1", "read a.txt"));
  assert.equal(text(), "⠋ 0 s · read a.txt");
  view.event(call("2", "read b.txt"));
  assert.equal(text(), "⠋ 0 s · read a.txt (+1)");
  view.event(result("1"));
  view.event(result("2", { duration: 2.345, note: "empty file" }));
  assert.equal(
    text(),
    "✓ read a.txt\n✓ read b.txt · 2.3 s\n  empty file\n⠋ 0 s · waiting for the model",
  );
});

Deno.test("while the backend is not asked the status counts down to the next attempt", () => {
  const { view, text, pass } = terminal();
  const message = "acme is busy. Retrying in 3.0 s (attempt 2).";
  view.event({ type: "notice", run: ROOT_RUN, level: "warning", message, retry_in: 3 });
  assert.equal(text(), `${message}\n⠋ 0 s · retrying in 3 s`);
  pass(1500);
  view.tick();
  assert.match(text(), / 1 s · retrying in 2 s$/);
  pass(1500);
  view.tick();
  assert.match(text(), / 3 s · waiting for the model$/);
});

Deno.test("failed tools are ! Error: lines with show_errors, and notes are dim with show_notes [2.13, 7.3]", () => {
  const { view, text, written } = terminal();
  view.event(call("1", "read a"));
  view.event(result("1", { is_error: true, output: "Error: there is no a\nsecond" }));
  view.event(call("2", "$ false"));
  view.event(result("2", { is_error: true, output: "$ false\nexit 1\n" }));
  view.end();
  assert.equal(
    text(),
    "✗ read a\n  ! Error: there is no a\n  second\n✗ $ false\n  ! Error: exit 1",
  );
  assert.ok(written().includes("\x1b[31m! Error: there is no a\x1b[39m"));
  const hidden = terminal({ show_errors: false, show_notes: false });
  hidden.view.event(call("1", "read a"));
  hidden.view.event(result("1", { is_error: true, output: "Error: no" }));
  hidden.view.event(call("2", "glob x"));
  hidden.view.event(result("2", { note: "no matches" }));
  hidden.view.end();
  assert.equal(hidden.text(), "✗ read a\n✓ glob x");
});

Deno.test("an edit shows what it changed, bounded", () => {
  const { view, text, written } = terminal();
  const args = { path: "a.ts", old: "one\ntwo\nthree\n", new: "one\n2\nthree\n" };
  view.event({ ...call("1", "edit a.ts"), category: "edit", arguments: args });
  view.event(result("1"));
  const content = Array.from({ length: 24 }, (_, n) => `line ${n}`).join("\n");
  view.event({
    ...call("2", "write b.ts"),
    category: "edit",
    arguments: { path: "b.ts", content },
  });
  view.event(result("2"));
  view.end();
  const lines = text().split("\n");
  assert.deepEqual(lines.slice(0, 5), ["✓ edit a.ts", "    one", "  - two", "  + 2", "    three"]);
  assert.deepEqual(lines.slice(-2), ["  + line 10", "  … 13 more lines (Ctrl-O)"]);
  assert.ok(
    written().includes("\x1b[31m- \x1b[39mtwo") &&
      written().includes("\x1b[32m+ \x1b[39m\x1b[33m2"),
  );
});

Deno.test("a file that is written anew shows what changed in it", () => {
  const { view, text } = terminal();
  const args = { path: "a.ts", content: "one\n2\n" };
  view.event({ ...call("1", "write a.ts"), category: "edit", arguments: args });
  view.event({
    type: "permission",
    run: ROOT_RUN,
    tool: "file_write",
    action: "allow",
    decision: "granted",
    path: "a.ts",
    reason: "",
    preview: "--- a.ts\n+++ a.ts\n@@ -1,2 +1,2 @@\n one\n-two\x1b[2J\n+2\n",
  });
  view.event(result("1", { details: { line: 1 } }));
  view.end();
  assert.equal(text(), "✓ write a.ts\n  1   one\n  2 - two\n  2 + 2");
});

Deno.test("an edit that a confirmation has shown is not shown again", () => {
  const { view, text, output } = terminal();
  const args = { path: "a.ts", old: "one\n", new: "two\n" };
  output.shown.add(args);
  view.event({ ...call("1", "edit a.ts"), category: "edit", arguments: args });
  view.event(result("1"));
  view.end();
  assert.equal(text(), "✓ edit a.ts");
});

Deno.test("of a line that a command wrote several times the last is shown", () => {
  const { view, text } = terminal();
  const output = "$ x\nexit 0\n10 %\r20 %\r\nend\r\n30 %\r40 %";
  view.event(call("1", "$ x"));
  view.event(result("1", { output, details: { exit_code: 0, output_at: 11 } }));
  view.end();
  assert.equal(text(), "✓ $ x · 0.0 s\n  20 %\n  end\n  40 %");
});

Deno.test("a command shows the last lines of its output while it runs, above the status line", () => {
  const { view, text } = terminal();
  view.event(call("1", "$ make"));
  view.event(printed("1", "one\n\ttwo\n"));
  assert.equal(text(), "  one\n      two\n⠋ 0 s · $ make");
  view.event(printed("1", "3\n4\n5\n\n6\n7\x1b[2J\n"));
  assert.equal(text(), "  3\n  4\n  5\n  6\n  7\n⠋ 0 s · $ make");
  view.event(
    result("1", { output: "$ make\nexit 0\n7", details: { exit_code: 0, output_at: 14 } }),
  );
  assert.equal(text(), "✓ $ make · 0.0 s\n  7\n⠋ 0 s · waiting for the model");
});

Deno.test("a command that ended shows its last lines, its time, and as a failure its exit code", () => {
  for (const columns of [40, 80, 200]) {
    for (const enabled of [false, true]) {
      const { view, text, written, output } = terminal({}, { columns, enabled });
      view.event(call("1", "$ seq 1 30; exit 3"));
      const lines = Array.from({ length: 30 }, (_, n) => n + 1).join("\n");
      const head = "$ seq 1 30; exit 3\nexit 3\n";
      const details = { exit_code: 3, output_at: head.length };
      view.event(result("1", { output: head + lines, details, duration: 0.12 }));
      view.event(call("2", "$ true"));
      const silent = { exit_code: 0, output_at: 28 };
      view.event(result("2", { output: "$ true\nexit 0\n(no output)\n", details: silent }));
      view.end();
      assert.equal(
        text(),
        "✗ $ seq 1 30; exit 3 · exit 3 · 0.1 s\n  … 25 more lines (Ctrl-O)\n" +
          "  26\n  27\n  28\n  29\n  30\n✓ $ true · 0.0 s",
      );
      assert.equal(written().includes("\x1b[31m✗\x1b[39m"), enabled);
      assert.equal(output.folded?.().join("\n"), `  $ seq 1 30; exit 3\n${lines}`);
    }
  }
});

Deno.test("of an output that was cut, at least so many lines are folded as are known", () => {
  const lines = Array.from({ length: 3000 }, (_, n) => n + 1).join("\n");
  const dropped = lines.replace(/\n21\n[^]*\n2980\n/, "\n... (14123 characters dropped) ...\n");
  for (const cut of [withoutMiddle(lines, 400), withoutMiddle(lines, 400, "a.txt"), dropped]) {
    const { view, text } = terminal();
    view.event(call("1", "$ seq 1 3000"));
    const head = "$ seq 1 3000\nexit 0\n";
    const details = { exit_code: 0, output_at: head.length };
    view.event(result("1", { output: head + cut, details }));
    view.end();
    const [, fold = "", first = ""] = text().split("\n");
    const kept = cut.split("\n").length - 1;
    assert.equal(fold, `  … at least ${kept - 5 - 1} more lines (Ctrl-O)`);
    assert.equal(first, "  2996");
  }
});

Deno.test("a command that was ended says why, and shows what it printed", () => {
  const { view, text } = terminal();
  view.event(call("1", "$ make"));
  const head = "Error: timed out after 5 seconds and was ended\n$ make\nexit 143\n";
  const details = { exit_code: 143, output_at: head.length };
  view.event(result("1", { is_error: true, output: `${head}half`, details, duration: 5 }));
  view.end();
  assert.equal(
    text(),
    "✗ $ make · exit 143 · 5.0 s\n  ! Error: timed out after 5 seconds and was ended\n  half",
  );
});

Deno.test("refusals, asks and notices have a line each", () => {
  const { view, text } = terminal();
  view.event(call("1", "$ rm -rf x"));
  const permission = { tool: "run_command", action: "ask", path: "" } as const;
  view.event({
    type: "permission",
    run: 1,
    ...permission,
    decision: "declined",
    reason: "not now",
  });
  view.event(result("1", { is_error: true, output: "[cancelled] User declined" }));
  view.event({ type: "ask", run: 1, id: 3, question: "Which\nway?" });
  view.event({ type: "notice", run: 1, level: "warning", message: "Store one with svc connect." });
  view.event({ type: "notice", run: 1, level: "error", message: "It broke." });
  view.end();
  assert.equal(
    text(),
    [
      "✗ $ rm -rf x declined: not now",
      "Ask #3 waits: Which way?",
      "Answer it with: /asks answer 3 <text>",
      "Store one with /connect.",
      "! Error: It broke.",
    ].join("\n"),
  );
});

Deno.test("a notice in the middle of an answer does not break it", () => {
  const { view, text } = terminal();
  view.event(token("```ts\nconst a"));
  const message = "The answer was cut off; asking the model to go on.";
  view.event({ type: "notice", run: 1, level: "warning", message });
  view.event(token(" = 1;\n```\nThe **e"));
  view.event(token("nd**"));
  view.event(finished());
  const [code, answer, notice] = text().split("\n\n");
  assert.deepEqual([code, answer, notice], ["const a = 1;", "The end", message]);
});

Deno.test("results that are to be echoed are, up to a bound", () => {
  const { view, text } = terminal({}, { height: 100 });
  view.event(call("1", "list"));
  view.event(result("1", { echo: true, output: "a\n\x1b[2Jb" }));
  view.event(call("2", "list"));
  view.event(result("2", { echo: true, output: "x\n".repeat(50) }));
  view.end();
  const lines = text().split("\n");
  assert.deepEqual(lines.slice(0, 4), ["✓ list", "  a", "  b", "✓ list"]);
  assert.equal(lines.at(-1), "  ... 10 more lines");
  assert.equal(lines.length, 4 + 40 + 1);
});

Deno.test("a long line of an echoed result is wrapped between words, under its text", () => {
  const { view, text } = terminal({}, { columns: 30 });
  view.event(call("1", "plan"));
  view.event(result("1", { echo: true, output: "[ ] read all of the code that matters" }));
  view.end();
  assert.equal(text(), "✓ plan\n  [ ] read all of the code\n      that matters");
});

Deno.test("a sub-agent is shown as subrun_verbosity and delegate_echo say, and stays told from others [2.13]", () => {
  const shown = (subrun_verbosity: ViewSettings["subrun_verbosity"], delegate_echo = false) => {
    const { view, text } = terminal({ subrun_verbosity, delegate_echo });
    for (const run of [2, 3]) {
      const role = run === 2 ? "tester" : "writer";
      view.event({
        type: "run_started",
        run,
        parent: 1,
        role,
        session: "s",
        task: "do\nit\n\n## Your part\n...",
      });
    }
    view.event({ ...call("1", "grep foo"), run: 2 });
    view.event({ ...call("1", "read bar"), run: 3 });
    assert.match(text(), /⠋ 0 s · #2 tester: grep foo · #3 writer: read bar$/);
    view.event({ ...result("1"), run: 2 });
    view.event({ ...result("1"), run: 3 });
    view.event({ ...token("Two **says\n"), run: 2 });
    view.event({ ...token("Three says\n"), run: 3 });
    view.event({ ...token("this**.\n"), run: 2 });
    for (const run of [2, 3]) {
      const content = run === 2 ? "Two **says\nthis**." : "Three says";
      const usage = { total_tokens: 1500 };
      view.event({ ...finished({ content, usage }), run });
      view.event({ type: "run_finished", run, status: "ok" });
    }
    view.end();
    return text();
  };
  const starts = "#2 tester starts: do it\n#3 writer starts: do it\n";
  const calls = "  #2 tester │ ✓ grep foo\n  #3 writer │ ✓ read bar\n";
  const two = "#2 tester ok · 2.5 s · 1.5k tokens · 1 tool call";
  const three = "#3 writer ok · 2.5 s · 1.5k tokens · 1 tool call";
  const says = "  #2 tester │ Two says\n  #2 tester │ this.\n";
  assert.equal(shown("quiet"), `${starts}${two}\n${three}`);
  assert.equal(shown("summary"), `${starts}${calls}${two}\n${three}`);
  const brief = (name: string) =>
    ["do", "it", "", "Your part", "..."].map((line) => `  ${name} │ ${line}`.trimEnd() + "\n")
      .join(
        "",
      );
  const briefs = `#2 tester starts:\n${brief("#2 tester")}#3 writer starts:\n${brief("#3 writer")}`;
  assert.equal(
    shown("full"),
    `${briefs}${calls}${says}${two}\n  #3 writer │ Three says\n${three}`,
  );
  assert.equal(
    shown("summary", true),
    `${starts}${calls}${says}${two}\n  #3 writer │ Three says\n${three}`,
  );
});

Deno.test("with subrun_verbosity full, show_thinking shows a sub-agent's reasoning too [2.13]", () => {
  const shown = (subrun_verbosity: ViewSettings["subrun_verbosity"]) => {
    const { view, text, pass } = terminal({ subrun_verbosity, show_thinking: true });
    view.event({ type: "run_started", run: 2, parent: 1, role: "a", session: "s", task: "t" });
    view.event({ type: "thinking", run: 2, content: "let " });
    pass(3200);
    view.event({ type: "thinking", run: 2, content: "me\nsee" });
    view.event({ ...call("1", "grep foo"), run: 2 });
    view.end();
    return text();
  };
  assert.equal(shown("summary"), "#2 a starts: t\n  #2 a │ thought for 3.2 s");
  assert.equal(
    shown("full"),
    "#2 a starts:\n" +
      ["t", "let me", "see", "thought for 3.2 s"].map((line) => `  #2 a │ ${line}`).join("\n"),
  );
});

Deno.test("without a terminal or colours the same text comes, marks instead of styles, and nothing volatile", () => {
  const events: TurnEvent[] = [
    { type: "thinking", run: 1, content: "hm" },
    token("# Title\n\nSome *text* here"),
    call("1", "read a"),
    result("1", { is_error: true, output: "Error: no" }),
    finished({ status: "error" }),
  ];
  const { view, text } = terminal();
  for (const event of events) view.event(event);
  let written = "";
  const plain = style({ enabled: false });
  const port = { write: (text: string) => void (written += text), columns: () => 60 };
  const output = new Output({ ...port, isTerminal: false }, plain);
  const other = new TurnView(output, plain, () => DEFAULTS, manualClock());
  for (const event of events) {
    other.event(event);
    other.tick();
  }
  assert.equal(written.trimEnd().replace("# Title", "Title"), text());
  // deno-lint-ignore no-control-regex
  assert.doesNotMatch(written, /[\x00-\x09\x0b-\x1f]/);
});

function terminal(
  changed: Partial<ViewSettings> = {},
  { height = 60, columns = 60, enabled = true, background }: {
    height?: number;
    columns?: number;
    enabled?: boolean;
    background?: () => string[];
  } = {},
) {
  const screen = new Screen(columns, height);
  const clock = manualClock(0);
  let all = "";
  const write = (text: string) => {
    all += text;
    screen.write(text.replaceAll("\n", "\r\n"));
  };
  const paint = style({ enabled });
  const output = new Output({ write, columns: () => columns, isTerminal: true }, paint);
  const view = new TurnView(output, paint, () => ({ ...DEFAULTS, ...changed }), clock, {
    background,
  });
  view.event(STARTED);
  return {
    view,
    output,
    text: () => screen.text(),
    written: () => all,
    pass: (ms: number) => clock.set(clock.now() + ms),
  };
}

function token(content: string): TurnEvent & { type: "token" } {
  return { type: "token", run: ROOT_RUN, content };
}

function call(id: string, status: string): TurnEvent & { type: "tool_call" } {
  return {
    type: "tool_call",
    run: ROOT_RUN,
    id,
    name: "tool",
    arguments: {},
    category: "read",
    status,
  };
}

function printed(id: string, content: string): TurnEvent & { type: "tool_output" } {
  return { type: "tool_output", run: ROOT_RUN, id, name: "tool", content, skipped: 0 };
}

function result(
  id: string,
  given: Partial<TurnEvent & { type: "tool_result" }> = {},
): TurnEvent & { type: "tool_result" } {
  const nothing = { output: "", is_error: false, note: "", echo: false, duration: 0 };
  return { type: "tool_result", run: ROOT_RUN, id, name: "tool", ...nothing, ...given };
}

function finished(given: Partial<TurnResult> = {}): TurnEvent & { type: "turn_finished" } {
  const result: TurnResult = {
    ...unfinishedResult({ session: "s", provider: "demo", model: "small" }),
    duration: 2.5,
    usage: { prompt_tokens: 1200, completion_tokens: 34 },
    status: "ok",
    ...given,
  };
  return { type: "turn_finished", run: ROOT_RUN, result };
}
