import assert from "node:assert/strict";
import { type Status, STATUSES } from "../../src/jobs/schema.ts";
import { type Gates, transition, type Trigger, TRIGGERS } from "../../src/jobs/transitions.ts";

/** For an enabled job without approval: the next state, or the reason of the refusal. */
const EXPECTED: Record<Trigger, Record<Status, string>> = {
  approve: {
    proposed: "approved",
    approved: "! is approved already",
    executing: "! is approved already",
    verified: "! is approved already",
    failed: "! is approved already",
    waiting_approval: "approved, armed",
  },
  reject: every("proposed, disabled"),
  enable: same(),
  disable: disabled(),
  stop: disabled(),
  tick: {
    proposed: "! is not approved yet",
    approved: "executing",
    executing: "! is running",
    verified: "executing",
    failed: "executing",
    waiting_approval: "! waits for approval",
  },
  run: { ...every("executing"), executing: "! is running" },
  verified: { ...every("! is not running"), executing: "verified" },
  failed: { ...every("! is not running"), executing: "failed" },
  interrupted: { ...every("! is not running"), executing: "failed" },
};

Deno.test("each trigger of a job has its outcome in each state [3.1]", () => {
  for (const trigger of TRIGGERS) {
    for (const status of STATUSES) {
      assert.equal(answer({ status }, trigger), EXPECTED[trigger][status], `${trigger} ${status}`);
    }
  }
});

Deno.test("a disabled job does not run, and its other triggers are unchanged [3.1]", () => {
  for (const trigger of TRIGGERS) {
    for (const status of STATUSES) {
      const open = EXPECTED[trigger][status];
      const runs = (trigger === "tick" || trigger === "run") && open === "executing";
      const expected = runs
        ? "! is disabled"
        : trigger === "enable" || open.startsWith("!") || open.includes("disabled") ||
            (trigger === "approve" && open.startsWith("approved"))
        ? open // approving a job that waits for it also enables it
        : `${open}, disabled`;
      assert.equal(answer({ status, enabled: false }, trigger), expected, `${trigger} ${status}`);
    }
  }
});

Deno.test("a job that requires approval parks without a grant, and a grant is for exactly one run [3.1]", () => {
  const gated = { require_approval: true };
  const armed = { ...gated, approval_pending: true };
  for (const status of ["approved", "verified", "failed"] as const) {
    assert.equal(answer({ status, ...gated }, "tick"), "waiting_approval");
    assert.equal(answer({ status, ...armed }, "tick"), "executing");
    assert.equal(answer({ status, ...gated }, "run"), "executing", "a run by hand overrides");
    assert.equal(answer({ status, ...armed }, "run"), "executing", "and uses the grant up");
    assert.equal(answer({ status, ...gated }, "approve"), `${status}, armed`);
  }
  assert.equal(answer({ status: "executing", ...gated }, "approve"), "executing, armed");
  assert.equal(answer({ status: "proposed", ...gated }, "approve"), "approved, armed");
  assert.equal(answer({ status: "waiting_approval", ...gated }, "tick"), "! waits for approval");
  assert.equal(answer({ status: "waiting_approval", ...gated }, "approve"), "approved, armed");
  for (const status of STATUSES) {
    assert.equal(answer({ status, ...armed }, "reject"), "proposed, disabled", "the grant is gone");
  }
});

function answer(given: Partial<Gates>, trigger: Trigger): string {
  const gates: Gates = {
    status: "proposed",
    enabled: true,
    require_approval: false,
    approval_pending: false,
    ...given,
  };
  const outcome = transition(gates, trigger);
  if ("refused" in outcome) return `! ${outcome.refused}`;
  const { status, enabled, approval_pending } = { ...gates, ...outcome.set };
  return status + (approval_pending ? ", armed" : "") + (enabled ? "" : ", disabled");
}

function every(what: string): Record<Status, string> {
  return Object.fromEntries(STATUSES.map((status) => [status, what])) as Record<Status, string>;
}

function same(): Record<Status, string> {
  return Object.fromEntries(STATUSES.map((status) => [status, status])) as Record<Status, string>;
}

function disabled(): Record<Status, string> {
  return Object.fromEntries(STATUSES.map((status) => [status, `${status}, disabled`])) as Record<
    Status,
    string
  >;
}
