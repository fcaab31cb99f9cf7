import assert from "node:assert/strict";
import fc from "fast-check";
import type { ToolDefinition } from "../../src/plugins/api.ts";
import { runTool, type ToolOutcome, withoutMiddle } from "../../src/tools/execute.ts";
import { manualClock } from "../support/clock.ts";
import { tool } from "../support/tool.ts";
import { toolContext } from "../support/tool_context.ts";

function run(
  definition: Partial<ToolDefinition>,
  options: { max?: number; signal?: AbortSignal; clock?: ReturnType<typeof manualClock> } = {},
): Promise<ToolOutcome> {
  const { max = 0, signal, clock = manualClock() } = options;
  const context = toolContext({ worktree: Deno.cwd(), signal });
  return runTool(tool({ name: "work", ...definition }), {}, context, {
    max_result_chars: max,
    clock,
  });
}

Deno.test("a result comes back as it is, with the seconds it took", async () => {
  const clock = manualClock();
  const outcome = await run({
    handler: async () => {
      await clock.sleep(1500);
      return "text";
    },
  }, { clock });
  assert.deepEqual(outcome, { output: "text", is_error: false, note: "", duration: 1.5 });
});

Deno.test("a throw becomes an error without a stack", async () => {
  const thrown: [unknown, string][] = [
    [new TypeError("it broke"), "Error: it broke"],
    [new Error("Error: it broke"), "Error: it broke"],
    [new Error(""), "Error: the tool failed"],
    ["plain", "Error: plain"],
    [Object.create(null), "Error: something was thrown that says nothing of itself"],
  ];
  for (const [value, output] of thrown) {
    const handlers = [() => Promise.reject(value), () => {
      throw value;
    }];
    for (const handler of handlers) {
      const outcome = await run({ handler });
      assert.equal(outcome.output, output);
      assert.equal(outcome.is_error, true);
    }
  }
});

Deno.test("a tool's error is told by the prefix Error: or by the tool [7.3]", async () => {
  assert.equal((await run({ handler: () => "Error: no" })).is_error, true);
  assert.equal((await run({ handler: () => "An Error: no" })).is_error, false);
  const error = (result: string) => result.endsWith("FAILED");
  assert.equal((await run({ error, handler: () => "1 FAILED" })).is_error, true);
  assert.equal((await run({ error, handler: () => "1 passed" })).is_error, false);
});

Deno.test("a tool's note is kept for a result that is no error", async () => {
  const note = () => "no matches";
  assert.equal((await run({ note })).note, "no matches");
  assert.equal((await run({ note, handler: () => "Error: no" })).note, "");
});

Deno.test("a note or an error check that throws changes nothing", async () => {
  const fail = () => {
    throw new Error("oops");
  };
  const outcome = await run({ note: fail, error: fail });
  assert.deepEqual([outcome.output, outcome.is_error, outcome.note], ["done", false, ""]);
});

Deno.test("the tool sees its whole result, the caller the cut one", async () => {
  const outcome = await run({
    handler: () => "a\n".repeat(100) + "FAILED",
    error: (result) => result.endsWith("FAILED"),
  }, { max: 100 });
  assert.equal(outcome.is_error, true);
  assert.match(
    outcome.output,
    /^a\n[^]*\n\.\.\. \(\d+ of 206 characters left out\) \.\.\.\n[^]*FAILED$/,
  );
});

Deno.test("a result that is no text is refused", async () => {
  const results: [unknown, string][] = [
    [undefined, "Error: work returned nothing instead of text"],
    [null, "Error: work returned nothing instead of text"],
    [3, "Error: work returned a value of type number instead of text"],
    [{}, "Error: work returned a value of type object instead of text"],
  ];
  for (const [value, output] of results) {
    const outcome = await run({ handler: () => value as string });
    assert.equal(outcome.output, output);
    assert.equal(outcome.is_error, true);
  }
});

Deno.test("lone surrogates are made well formed", async () => {
  assert.equal((await run({ handler: () => "a\ud800b" })).output, "a\ufffdb");
});

Deno.test("a cancelled call that ignores its signal is given up after the grace", async () => {
  const controller = new AbortController();
  const clock = manualClock();
  const pending = run({
    handler: () => {
      controller.abort();
      return new Promise<string>(() => {});
    },
  }, { signal: controller.signal, clock });
  const outcome = await pending;
  assert.equal(outcome.output, "Error: cancelled");
  assert.equal(outcome.is_error, true);
  assert.deepEqual(clock.slept, [3000]);
});

Deno.test("a cancelled call that throws is cancelled; what it still returns is its result", async () => {
  const never = { ...manualClock(), sleep: () => new Promise<void>(() => {}) };
  for (
    const [end, output] of [
      [() => Promise.reject(new Error("aborted")), "Error: cancelled"],
      [() => Promise.resolve("Created a.txt"), "Created a.txt"],
    ] as const
  ) {
    const controller = new AbortController();
    const handler = () => {
      controller.abort();
      return end();
    };
    const outcome = await run({ handler }, { signal: controller.signal, clock: never });
    assert.equal(outcome.output, output);
  }
});

Deno.test("a call cancelled before it starts does not run", async () => {
  const outcome = await run({ handler: () => assert.fail("ran") }, { signal: AbortSignal.abort() });
  assert.equal(outcome.output, "Error: cancelled");
});

Deno.test("a tool result over tool_max_result_chars keeps its beginning and its end, cut at lines, and says so [8]", () => {
  const lines = Array.from({ length: 500 }, (_, i) => `line ${i}`).join("\n");
  const cut = withoutMiddle(lines, 400, "x.txt");
  assert.match(
    cut,
    /^line 0\nline 1\n[^]*line \d+\n\.\.\. \(\d+ of 4389 characters left out; the whole is in x\.txt, for file_read and grep\) \.\.\.\nline \d+\n[^]*line 499$/,
  );
  assert.ok(cut.length <= 400);
  assert.equal(withoutMiddle("one\ntwo", 7), "one\ntwo");
  assert.equal(withoutMiddle("x".repeat(50), 0), "x".repeat(50));
});

Deno.test("property: of a long result a beginning and an end are kept within the limit, and no character is halved [8]", () => {
  const text = fc.array(fc.string({ unit: "grapheme", maxLength: 12 }), { maxLength: 200 })
    .map((lines) => lines.join("\n").toWellFormed());
  fc.assert(fc.property(text, fc.integer({ min: 100, max: 500 }), (whole, limit) => {
    const cut = withoutMiddle(whole, limit);
    if (whole.length <= limit) return assert.equal(cut, whole);
    const [, head, left, tail] =
      /^([^]*)\n\.\.\. \((\d+) of \d+ characters left out\) \.\.\.\n([^]*)$/
        .exec(cut)!;
    assert.ok(cut.isWellFormed() && whole.startsWith(head!) && whole.endsWith(tail!));
    assert.equal(head!.length + Number(left) + tail!.length, whole.length);
    assert.ok(cut.length <= limit + 10 && head!.length + tail!.length >= limit / 4 - 24);
  }));
});
