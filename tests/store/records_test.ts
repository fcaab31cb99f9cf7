import assert from "node:assert/strict";
import { join } from "node:path";
import { jobContext } from "../../src/jobs/context.ts";
import { createJob } from "../../src/jobs/create.ts";
import { readTask } from "../../src/jobs/prompt.ts";
import type { HistoryEntry } from "../../src/jobs/schema.ts";
import { filePostgres } from "../support/postgres.ts";
import { machine, withTables } from "./support.ts";

const { needed, server } = await filePostgres();

const QUESTION = { question: "Which port?", origin: "build_a1b2c3" };

Deno.test({
  ...needed,
  name: "an ask that one machine parks is listed and answered by another",
  async fn() {
    const store = await server.database(withTables);
    await using one = await machine(store);
    await using two = await machine(store);
    const parked = await one.workspace.asks.park(QUESTION);
    await two.workspace.store!.refresh();
    assert.deepEqual(two.workspace.asks.list(), [parked]);
    const { ask } = await two.workspace.asks.answer(parked.id, "8787");
    await one.workspace.store!.refresh();
    assert.deepEqual(one.workspace.asks.list(), [ask]);
    assert.deepEqual([...one.warnings, ...two.warnings], []);
  },
});

Deno.test({
  ...needed,
  name: "asks that two machines park at the same time get ids of their own",
  async fn() {
    const store = await server.database(withTables);
    await using one = await machine(store);
    await using two = await machine(store);
    const parked = await Promise.all(
      Array.from({ length: 20 }, (_, i) => [one, two][i % 2]!.workspace.asks.park(QUESTION)),
    );
    const ids = Array.from({ length: 20 }, (_, i) => i + 1);
    assert.deepEqual(parked.map(({ id }) => id).sort((a, b) => a - b), ids);
    for (const { workspace } of [one, two]) {
      await workspace.store!.refresh();
      assert.deepEqual(workspace.asks.list().map(({ id }) => id), ids);
    }
  },
});

Deno.test({
  ...needed,
  name: "jobs, their histories and their task files are the same on all machines",
  async fn() {
    const store = await server.database(withTables);
    await using one = await machine(store);
    await using two = await machine(store);
    const [here, there] = [one, two].map(({ workspace }) => jobContext(workspace));
    const given = { name: "nightly", schedule: { cron: "0 3 * * *" }, task: "Sweep the floor." };
    const { job } = await createJob(here!, given);
    await there!.register.change("nightly", () => ({
      set: { status: "verified" },
      append: attempt("2026-01-02T03:04:05.000Z"),
    }));
    await here!.register.change("nightly", () => ({ append: attempt("2026-01-03T03:04:05.000Z") }));
    for (const { workspace } of [one, two]) await workspace.store!.refresh();
    for (const { register, worktree } of [here!, there!]) {
      assert.deepEqual(register.list(), [{ ...job, status: "verified" }]);
      assert.deepEqual(
        register.history("nightly").map(({ finished_at }) => finished_at.slice(0, 10)),
        ["2026-01-02", "2026-01-03"],
      );
      assert.match(readTask(worktree, register.need("nightly")), /Sweep the floor/);
    }
    const files = [one, two].map(({ path }) => Deno.readTextFileSync(join(path, ".svc/jobs.json")));
    assert.equal(files[0], files[1]);
    await there!.register.remove("nightly");
    await createJob(here!, { ...given, name: "weekly" });
    await createJob(here!, given);
    await two.workspace.store!.refresh();
    assert.deepEqual(there!.register.list().map(({ name }) => name), ["weekly", "nightly"]);
    assert.deepEqual(there!.register.history("nightly"), []);
    assert.deepEqual([...one.warnings, ...two.warnings], []);
  },
});

Deno.test({
  ...needed,
  name: "changes of one job by two machines at the same time are all kept",
  async fn() {
    const store = await server.database(withTables);
    await using one = await machine(store);
    await using two = await machine(store);
    const registers = [one, two].map(({ workspace }) => jobContext(workspace).register);
    const { name } = (await createJob(jobContext(one.workspace), {
      name: "nightly",
      schedule: { interval: 60 },
      task: "",
    })).job;
    await Promise.all(
      Array.from({ length: 120 }, (_, i) =>
        registers[i % 2]!.change(name, (job) => ({
          set: { retries: job.retries + 1 },
          append: attempt(new Date(i * 1000).toISOString()),
        }))),
    );
    for (const { workspace } of [one, two]) await workspace.store!.refresh();
    for (const register of registers) {
      assert.equal(register.need(name).retries, 123);
      assert.equal(register.history(name).length, 100);
    }
    assert.deepEqual(registers[0]!.history(name), registers[1]!.history(name));
  },
});

function attempt(finished_at: string): HistoryEntry {
  return {
    started_at: finished_at,
    finished_at,
    status: "verified",
    reason: "",
    duration: 1,
    session: "build_a1b2c3",
    attempt: 1,
    content: "done \u0000",
  };
}
