import assert from "node:assert/strict";
import type { Run } from "../../src/engine/runs.ts";
import { type Places, resolveTarget } from "../../src/repl/targets.ts";
import type { SessionDocument } from "../../src/sessions/schema.ts";

const SAVED: Record<string, string> = {
  "ses_20260101_000000_aaaaaa": "",
  "sub_20260101_000001_bbbbbb": "tester",
  "sub_20260102_000000_cccccc": "tester",
  "sub_20260103_000000_dddddd": "planner",
  "nightly": "",
  "planner": "",
};

function run(id: number, role: string, session: string): Run {
  const session_id = /_([0-9a-z]{6})$/.exec(session)?.[1] ?? "";
  return { id, parent: id - 1, children: [], role, session, session_id, task: "", status: "ok" };
}

const LIVE = [
  run(1, "", "ses_20260101_000000_aaaaaa"),
  run(2, "writer", "sub_20260101_000001_bbbbbb"),
  run(3, "writer", "sub_20260102_000000_cccccc"),
];

function places(runs: Run[], unreadable: string[] = []): Places {
  return {
    runs,
    sessions: {
      current: () => Promise.resolve(),
      list: () => Object.keys(SAVED).sort(),
      findById: (id) =>
        Object.keys(SAVED).find((name) => name.endsWith(`_${id.replace(/^#/, "")}`)),
      read: (name) =>
        name in SAVED && !unreadable.includes(name)
          ? { session_name: name, role: SAVED[name] } as SessionDocument
          : undefined,
    },
    roles: () => Promise.resolve(["tester", "planner", "writer"]),
  };
}

Deno.test("--run: each kind of target, live runs first where the specification says so [4.7]", async () => {
  const cases: [target: string, runs: Run[], session: string, run: number | undefined][] = [
    ["#bbbbbb", LIVE, "sub_20260101_000001_bbbbbb", 2],
    ["#bbbbbb", [], "sub_20260101_000001_bbbbbb", undefined],
    ["#2", LIVE, "sub_20260101_000001_bbbbbb", 2],
    ["writer", LIVE, "sub_20260102_000000_cccccc", 3],
    ["tester", LIVE, "sub_20260102_000000_cccccc", undefined],
    ["planner", [], "planner", undefined],
    ["session:nightly", LIVE, "nightly", undefined],
    ["session:planner", LIVE, "planner", undefined],
    ["nightly", LIVE, "nightly", undefined],
    ["sub_20260101_000001_bbbbbb", LIVE, "sub_20260101_000001_bbbbbb", undefined],
  ];
  for (const [target, runs, session, live] of cases) {
    const found = await resolveTarget(target, places(runs));
    assert.deepEqual([found.session, found.run?.id], [session, live], target);
    assert.equal(found.document.session_name, session);
  }
});

Deno.test("--run: an unknown session and one in an old format are not found [4.7]", async () => {
  const missing = ["#zzzzzz", "#9", "nobody", "session:nobody", "writer", "bbbbbb", ""];
  for (const target of missing) {
    await assert.rejects(resolveTarget(target, places([])), { code: "no_target" }, target);
  }
  await assert.rejects(resolveTarget("nightly", places([], ["nightly"])), { code: "no_target" });
});
