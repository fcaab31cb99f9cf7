import assert from "node:assert/strict";
import { join } from "node:path";
import { statusText } from "../../src/commands/fleet/supervise.ts";
import type { AgentView } from "../../src/fleet/status.ts";
import { runMain, testIo } from "../support/io.ts";
import { project } from "../support/project.ts";

const IO = testIo({ home: "/", cwd: "/" });

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
    const rows = statusText({ supervisor: null, agents: [agent(changes)] }, 0, IO).split("\n");
    const cells = rows[3]!.trim().split(/ {2,}/);
    const shown = ["a", "yes", "8780", "7", expected, String(restarts), ...(error ? [error] : [])];
    assert.deepEqual(cells, shown);
  }
});

Deno.test("a disabled agent that still runs is not counted as healthy", () => {
  const agents = [agent({}), agent({ name: "b", enabled: false })];
  assert.match(statusText({ supervisor: null, agents }, 0, IO), /; 1 of 1 healthy\n/);
});

Deno.test("fleet add makes the folder of the agent where there is none", async () => {
  await using work = await project();
  const { code, out, notes } = await runMain(work.path, "fleet", "add", "new", "--dir", "a/new");
  assert.deepEqual([code, out], [0, "Added new: a/new\n"]);
  assert.deepEqual(notes, [`Made the folder ${join(work.path, "a/new")}`]);
  assert.ok(Deno.statSync(join(work.path, "a/new")).isDirectory);
});
