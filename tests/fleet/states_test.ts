import assert from "node:assert/strict";
import {
  type Action,
  backoff,
  initialStatus,
  type State,
  STATES,
  type Status,
  transition,
  type Trigger,
} from "../../src/fleet/states.ts";
import { manualClock } from "../support/clock.ts";

const clock = manualClock(1_000_000);
const NOW = clock.now();
const policy = { max_restarts: 10, unhealthy_threshold: 2, grace: 30_000 };
const context = { now: NOW, policy };

/** An agent in a state that it reached by triggers. */
function agent(state: State, changes: Partial<Status> = {}): Status {
  const healthy = state === "running";
  return { ...initialStatus(NOW), state, healthy, ...changes };
}

type Case = [state: State, trigger: Trigger, to: State, action?: Action, changes?: Partial<Status>];

const on = { type: "sweep", enabled: true } as const;
const off = { type: "sweep", enabled: false } as const;
const spawned = { type: "spawned" } as const;
const blocked = { type: "blocked", error: "no free port" } as const;
const exited = { type: "exited", error: "exited with code 1" } as const;
const well = { type: "probed" } as const;
const sick = { type: "probed", error: "no answer" } as const;
const restart = { type: "restart" } as const;

/** Every state with every trigger (specification 3.4, and what it leaves open). */
const CASES: Case[] = [
  ["down", on, "down", "spawn"],
  ["down", off, "down"],
  ["down", spawned, "running"],
  ["down", blocked, "down"],
  ["down", exited, "down"],
  ["down", well, "down"],
  ["down", sick, "down"],
  ["down", restart, "down"],
  ["running", on, "running"],
  ["running", off, "stopping", "interrupt"],
  ["running", spawned, "running"],
  ["running", blocked, "running"],
  ["running", exited, "restarting"],
  ["running", exited, "crashed", undefined, { failures: 10 }],
  ["running", well, "running"],
  ["running", sick, "running"],
  ["running", sick, "stopping", "interrupt", { failed_probes: 1 }],
  ["running", sick, "running", undefined, { healthy: false, failed_probes: 1 }],
  ["running", on, "stopping", "interrupt", { healthy: false, since: NOW - 60_000 }],
  ["running", on, "running", undefined, { healthy: false, since: NOW - 59_999 }],
  ["running", restart, "stopping", "interrupt"],
  ["stopping", on, "stopping", undefined, { kill_at: NOW + 1 }],
  ["stopping", on, "stopping", "kill", { kill_at: NOW }],
  ["stopping", off, "stopping", "kill", { kill_at: NOW - 1 }],
  ["stopping", spawned, "stopping"],
  ["stopping", blocked, "stopping"],
  ["stopping", exited, "down"],
  ["stopping", exited, "restarting", undefined, { next: "restarting" }],
  ["stopping", exited, "crashed", undefined, { next: "crashed" }],
  ["stopping", well, "stopping"],
  ["stopping", sick, "stopping"],
  ["stopping", restart, "stopping"],
  ["restarting", on, "restarting", undefined, { retry_at: NOW + 1 }],
  ["restarting", on, "restarting", "spawn", { retry_at: NOW }],
  ["restarting", off, "down"],
  ["restarting", spawned, "running"],
  ["restarting", blocked, "restarting"],
  ["restarting", exited, "restarting"],
  ["restarting", well, "restarting"],
  ["restarting", sick, "restarting"],
  ["restarting", restart, "down"],
  ["crashed", on, "crashed"],
  ["crashed", off, "down"],
  ["crashed", spawned, "crashed"],
  ["crashed", blocked, "crashed"],
  ["crashed", exited, "crashed"],
  ["crashed", well, "crashed"],
  ["crashed", sick, "crashed"],
  ["crashed", restart, "down"],
];

Deno.test("each trigger of a fleet agent has its effect in each state [3.4]", () => {
  for (const [state, trigger, to, action, changes] of CASES) {
    const outcome = transition(agent(state, changes), trigger, context);
    const what = `${state} + ${JSON.stringify(trigger)} ${JSON.stringify(changes ?? {})}`;
    assert.equal(outcome.status.state, to, what);
    assert.equal(outcome.action, action, what);
  }
  const pairs = new Set(CASES.map(([state, { type }]) => `${state} ${type}`));
  const triggers: Record<Trigger["type"], true> = {
    sweep: true,
    spawned: true,
    blocked: true,
    exited: true,
    probed: true,
    restart: true,
  };
  const all = STATES.length * Object.keys(triggers).length;
  assert.equal(pairs.size, all, "the table is complete");
});

Deno.test("the restart backoff of an agent is 5 s, doubling up to 60 s [3.4, 8]", () => {
  const waits = [1, 2, 3, 4, 5, 6, 100, 10_000].map(backoff);
  assert.deepEqual(waits, [5, 10, 20, 40, 60, 60, 60, 60].map((seconds) => seconds * 1000));
});

/** Lets an agent live on the injected clock, whose process exits whenever it has been started. */
function failing(max_restarts: number, starts: number): { waits: number[]; status: Status } {
  const clock = manualClock(0);
  const rules = { ...policy, max_restarts };
  let status = initialStatus(0);
  const take = (trigger: Trigger) => {
    const outcome = transition(status, trigger, { now: clock.now(), policy: rules });
    status = outcome.status;
    return outcome.action;
  };
  const waits: number[] = [];
  let last = 0;
  while (waits.length < starts && clock.now() < 86_400_000) {
    if (take(on) === "spawn") {
      waits.push((clock.now() - last) / 1000);
      last = clock.now();
      take(spawned);
      take(exited);
    }
    clock.set(clock.now() + 1000);
  }
  return { waits, status };
}

Deno.test("an agent that keeps failing is restarted 10 times with a growing backoff, then crashed [3.4, 8]", () => {
  const { waits, status } = failing(10, Infinity);
  assert.deepEqual(waits, [0, 5, 10, 20, 40, 60, 60, 60, 60, 60, 60]);
  assert.equal(status.state, "crashed");
  assert.equal(status.restarts, 10);
  assert.equal(status.error, "exited with code 1");
});

Deno.test("with max_restarts 0 restarts are unlimited [3.4, 8]", () => {
  const { waits, status } = failing(0, 100);
  assert.equal(waits.length, 100);
  assert.deepEqual(waits.slice(-2), [60, 60]);
  assert.equal(status.state, "restarting");
});

Deno.test("fleet restart resets counter and backoff, also of a crashed agent [3.4, 4.6]", () => {
  const { status } = failing(1, Infinity);
  assert.equal(status.state, "crashed");
  assert.deepEqual(transition(status, restart, context).status, initialStatus(NOW));
});

Deno.test("the restart of a running agent resets its failures once it is down", () => {
  const running = agent("running", { failures: 4, restarts: 4 });
  const stopping = transition(running, restart, context).status;
  assert.equal(stopping.kill_at, NOW + 30_000);
  assert.deepEqual(transition(stopping, exited, context).status, initialStatus(NOW));
});

Deno.test("a successful probe resets the count of failed ones [3.4]", () => {
  let status = agent("running");
  for (const trigger of [sick, well, sick, well, sick]) {
    status = transition(status, trigger, context).status;
  }
  assert.equal(status.state, "running");
  assert.equal(status.failed_probes, 1);
});

Deno.test("unhealthy_threshold says how many failed probes make an agent unhealthy [3.4]", () => {
  const rules = { ...policy, unhealthy_threshold: 4 };
  let status = agent("running");
  for (let probe = 1; probe <= 4; probe++) {
    assert.equal(status.state, "running");
    status = transition(status, sick, { now: NOW, policy: rules }).status;
  }
  assert.equal(status.state, "stopping");
  assert.equal(status.next, "restarting");
});

Deno.test("an unhealthy agent has 5 s to end, which count towards its backoff [3.4]", () => {
  const { status } = transition(agent("running", { failed_probes: 1 }), sick, context);
  assert.equal(status.kill_at, NOW + 5000);
  assert.equal(status.retry_at, NOW + 5000);
  const later = { ...context, now: NOW + 7000 };
  const after = transition(status, exited, later).status;
  assert.equal(after.error, "no answer", "what went wrong first");
  assert.equal(transition(after, on, later).action, "spawn");
});

Deno.test("an agent has 60 s to become healthy, in which failed probes do not count [3.4]", () => {
  const starting = agent("running", { healthy: false, since: NOW - 59_999 });
  const { status } = transition(starting, sick, context);
  assert.deepEqual([status.state, status.failed_probes], ["running", 0]);
  assert.equal(transition(starting, on, context).status.state, "running");
  const late = transition(starting, on, { ...context, now: NOW + 1 }).status;
  assert.deepEqual([late.state, late.error], ["stopping", "was not healthy within 60 s"]);
});

Deno.test("earlier failures of an agent are reset after ten minutes of health, not before [3.4]", () => {
  const status = agent("running", { failures: 9, since: NOW - 599_999, error: "was killed" });
  const early = transition(status, well, context).status;
  assert.deepEqual([early.failures, early.error], [9, "was killed"]);
  const late = transition(status, well, { ...context, now: NOW + 1 }).status;
  assert.deepEqual([late.failures, late.error], [0, ""]);
});

Deno.test("the time of health begins with the first healthy probe", () => {
  const started = agent("running", { healthy: false, since: NOW - 5000 });
  assert.equal(transition(started, well, context).status.since, NOW);
});
