import assert from "node:assert/strict";
import { historyLines, turnLines } from "../../../src/repl/render/saved_turns.ts";
import { style } from "../../../src/platform/style.ts";
import type { Turn } from "../../../src/sessions/schema.ts";

const plain = style({ enabled: false });
const at = (seconds: number) => new Date(Date.UTC(2026, 0, 2) + 1000 * seconds).toISOString();
const timestamp = at(0);

function turn(changed: Partial<Turn> = {}): Turn {
  const tool = { type: "tool", name: "grep", input: {}, output: "", is_error: true } as const;
  return {
    ...{ index: 7, started_at: at(0), ended_at: at(2.5), status: "ok", model: "m", provider: "p" },
    ...{ mode: "build", reasoning: "auto" },
    parts: [
      { type: "user", text: "look\naround", timestamp },
      { type: "thinking", text: "first\nsecond", timestamp },
      { ...tool, timestamp },
      { type: "text", text: "0123456789", timestamp },
    ],
    ...changed,
  };
}

Deno.test("a line of /history is #<index> [<status>] <duration> <tool count> <prompt>, with thoughts below [4.7]", () => {
  const lines = (given: Turn, thoughts: "none" | "first" | "all" = "none") =>
    historyLines([given], thoughts, plain, 80);
  assert.deepEqual(lines(turn()), ["#7 [ok] 2.5s 1 tool look"]);
  assert.deepEqual(lines(turn({ ended_at: "", status: "running", parts: [] })), [
    "#7 [running] - 0 tools ",
  ]);
  const durations = [[59.9, "59.9s"], [59.96, "1m00s"], [119.7, "2m00s"], [
    3725,
    "62m05s",
  ]] as const;
  for (const [seconds, text] of durations) {
    assert.match(lines(turn({ ended_at: at(seconds) }))[0]!, new RegExp(`\\] ${text} `));
  }
  assert.deepEqual(lines(turn(), "first").slice(1), ["    first"]);
  assert.deepEqual(lines(turn(), "all").slice(1), ["    first", "    second"]);
});

Deno.test("/print shows the metadata of a turn and its parts, - for what is empty, and how much was cut [4.7, 8]", () => {
  const print = (given: Turn, options: { part?: number; most?: number } = {}) =>
    turnLines(given, { most: 0, style: plain, ...options }).join("\n");
  const whole = print(turn({ model: "", ended_at: "" }));
  assert.ok(
    whole.startsWith(
      `turn: 7\nstatus: ok\nstarted: ${at(0)}\nended: -\nduration: -\nmodel: -\nprovider: p\n` +
        "mode: build\nreasoning: auto\n\n7.1 user ",
    ),
    whole,
  );
  assert.match(whole, /\n7\.3 tool grep \(error\) .*\n\{\}\n-\n\n7\.4 text .*\n0123456789$/);
  assert.match(
    print(turn(), { part: 4, most: 4 }),
    /auto\n\n7\.4 text .*\n0123… \(6 more characters\)$/,
  );
});
