import assert from "node:assert/strict";
import { statusText } from "../../src/commands/fleet/supervise.ts";
import type { AgentView } from "../../src/fleet/status.ts";

const agent = (changes: Partial<AgentView>): AgentView => ({
  name: "a",
  dir: "a",
  enabled: true,
  port: 8780,
  pid: 7,
  state: "running",
  healthy: true,
  failing: false,
  restarts: 0,
  error: "",
  since: "",
  retry_at: "",
  ...changes,
});

Deno.test("a recovered agent is running; only one whose last probe failed is failing", () => {
  const cases: [Partial<AgentView>, state: string][] = [
    [{}, "running"],
    [{ restarts: 1, error: "was ended by signal 9" }, "running"],
    [{ failing: true, error: "GET /health answered 500" }, "running (failing)"],
    [{ healthy: false, error: "was ended by signal 9" }, "running (starting)"],
  ];
  for (const [changes, expected] of cases) {
    const { restarts, error } = agent(changes);
    const rows = statusText({ supervisor: null, agents: [agent(changes)] }, 0, 200).split("\n");
    const cells = rows[3]!.trim().split(/ {2,}/);
    const shown = ["a", "yes", "8780", "7", expected, String(restarts), ...(error ? [error] : [])];
    assert.deepEqual(cells, shown);
  }
});
