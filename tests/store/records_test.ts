import assert from "node:assert/strict";
import { join } from "node:path";
import { editTask } from "../../src/commands/jobs/jobs.ts";
import { type Run, RunStore } from "../../src/engine/run_store.ts";
import type { Workspace } from "../../src/engine/workspace.ts";
import { jobContext } from "../../src/jobs/context.ts";
import { createJob } from "../../src/jobs/create.ts";
import { readTask } from "../../src/jobs/prompt.ts";
import type { HistoryEntry } from "../../src/jobs/schema.ts";
import { entriesOf } from "../../src/platform/files.ts";
import type { RequestLine } from "../../src/usage/ledger.ts";
import type { LedgerTotals } from "../../src/usage/totals.ts";
import { testIo } from "../support/io.ts";
import type { StoreLink } from "../../src/store/port.ts";
import { filePostgres } from "../support/postgres.ts";
import { type Machine, machine, withTables } from "./support.ts";

const { needed, server } = await filePostgres();

/** Tells a story of two machines in a store, and of two processes with the files of one worktree. */
function story(name: string, tell: (one: Machine, two: Machine, shared: boolean) => Promise<void>) {
  Deno.test(`files: ${name}`, async () => {
    await using one = await machine("");
    await using two = await machine("", "shop", {}, one);
    await tell(one, two, false);
  });
  Deno.test({
    ...needed,
    name: `PostgreSQL: ${name}`,
    async fn() {
      const store = await server.database(withTables);
      await using one = await machine(store);
      await using two = await machine(store);
      await tell(one, two, true);
    },
  });
}

const REQUEST = { prompt: "go", role: "", task: {}, confirmed: false, webhook: "" };
const QUESTION = { question: "Which port?", origin: "build_a1b2c3" };

story("an ask that one machine parks is listed and answered by another", async (one, two) => {
  const parked = await one.workspace.asks.park(QUESTION);
  await two.workspace.store?.refresh();
  assert.deepEqual(two.workspace.asks.list(), [parked]);
  const { ask } = await two.workspace.asks.answer(parked.id, "8787");
  await one.workspace.store?.refresh();
  assert.deepEqual(one.workspace.asks.list(), [ask]);
  assert.deepEqual([...one.warnings, ...two.warnings], []);
});

story("asks that two machines park at the same time get ids of their own", async (one, two) => {
  const parked = await Promise.all(
    Array.from({ length: 20 }, (_, i) => [one, two][i % 2]!.workspace.asks.park(QUESTION)),
  );
  const ids = Array.from({ length: 20 }, (_, i) => i + 1);
  assert.deepEqual(parked.map(({ id }) => id).sort((a, b) => a - b), ids);
  for (const { workspace } of [one, two]) {
    await workspace.store?.refresh();
    assert.deepEqual(workspace.asks.list().map(({ id }) => id), ids);
  }
});

story(
  "jobs, their histories and their task files are the same on all machines",
  async (one, two) => {
    const [here, there] = [one, two].map(({ workspace }) => jobContext(workspace));
    const given = { name: "nightly", schedule: { cron: "0 3 * * *" }, task: "Sweep the floor." };
    const { job } = await createJob(here!, given);
    await there!.register.change("nightly", () => ({
      set: { status: "verified" },
      append: attempt("2026-01-02T03:04:05.000Z"),
    }));
    await here!.register.change("nightly", () => ({ append: attempt("2026-01-03T03:04:05.000Z") }));
    for (const { workspace } of [one, two]) await workspace.store?.refresh();
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
    await two.workspace.store?.refresh();
    assert.deepEqual(there!.register.list().map(({ name }) => name), ["weekly", "nightly"]);
    assert.deepEqual(there!.register.history("nightly"), []);
    assert.deepEqual([...one.warnings, ...two.warnings], []);
  },
);

story(
  "a task that is edited is the same on all machines, also when its job changes meanwhile",
  async (one, two) => {
    const [here, there] = [one, two].map(({ workspace }) => jobContext(workspace));
    const schedule = { cron: "0 3 * * *" };
    await createJob(here!, { name: "nightly", schedule, task: "Sweep the floor." });
    await two.workspace.store?.refresh();
    await there!.register.change("nightly", () => ({ set: { status: "verified" } }));
    const { cwd } = one.workspace.environment;
    const editor = join(cwd, "../editor");
    await Deno.writeTextFile(editor, "#!/bin/sh\necho 'Wash the windows.' > $1\n", { mode: 0o755 });
    const environment = {
      ...one.workspace.environment,
      get: (name: string) => name === "EDITOR" ? editor : undefined,
    };
    const io = testIo({ home: cwd, cwd }, { environment });
    assert.equal(await editTask({ workspace: one.workspace, context: here!, io }, "nightly"), 0);
    await two.workspace.store?.refresh();
    for (const { register, worktree } of [here!, there!]) {
      const job = register.need("nightly");
      assert.equal(job.status, "verified");
      assert.match(readTask(worktree, job), /Wash the windows/);
    }
  },
);

story("changes of one job by two machines at the same time are all kept", async (one, two) => {
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
  for (const { workspace } of [one, two]) await workspace.store?.refresh();
  for (const register of registers) {
    assert.equal(register.need(name).retries, 123);
    assert.equal(register.history(name).length, 100);
  }
  assert.deepEqual(registers[0]!.history(name), registers[1]!.history(name));
});

story("runs that end on two machines at the same time are all remembered", async (one, two) => {
  const memories = [one, two].map(({ workspace }) => workspace.memory);
  await Promise.all(Array.from({ length: 6 }, (_, i) =>
    memories[i % 2]!.remember({
      scope: "job",
      name: "nightly",
      summarise: (before) => Promise.resolve(`${before} ${i}`),
      fallback: { ok: true, text: `outcome ${i}` },
    })));
  for (const { workspace } of [one, two]) await workspace.store?.refresh();
  const texts = memories.map((memory) => memory.read("job", "nightly"));
  assert.equal(texts[0], texts[1]);
  for (let i = 0; i < 6; i++) assert.match(texts[0]!, new RegExp(`${i}`));
  assert.deepEqual(memories[0]!.list(), memories[1]!.list());
  assert.equal(await memories[1]!.clear("job", "nightly"), true);
  await one.workspace.store?.refresh();
  assert.deepEqual(memories[0]!.list(), []);
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

story(
  "a run belongs to one server of all machines, and to another when that is gone",
  async (one, two, shared) => {
    const [here, there] = [one, two].map(({ workspace }) => runsOf(workspace));
    const answers = await Promise.all(
      [here!, there!].map((runs) => runs.accept({ request: REQUEST, body: "b" }, "key")),
    );
    const { run } = answers[0]!;
    assert.deepEqual(answers.map(({ run: { id } }) => id), [run.id, run.id]);
    assert.deepEqual(answers.map(({ known }) => known).sort(), [false, true]);
    const [owner, other] = here!.owns(here!.need(run.id)) ? [here!, there!] : [there!, here!];
    await other.refresh();
    assert.deepEqual(other.open(), [run.id]);
    assert.equal(await other.take(run.id, () => true, () => {}), false);
    owner.note(run.id, { state: "running", session: "build_a1b2c3" });
    await owner.flush();
    await other.refresh();
    assert.equal(other.need(run.id).session, "build_a1b2c3");
    await owner.close();
    const taken: Run[] = [];
    assert.equal(await other.take(run.id, () => true, (run) => void taken.push(run)), true);
    assert.deepEqual(taken.map(({ id, state }) => [id, state]), [[run.id, "running"]]);
    if (!shared) return await other.close(); // a process that has the files is dead when it loses a run
    const lost: string[] = [];
    owner.lost = (id) => void lost.push(id);
    owner.note(run.id, { state: "done", ended_at: "2026-01-02T03:04:05.000Z" });
    await owner.flush();
    assert.deepEqual(lost, [run.id]);
    assert.equal(owner.need(run.id).state, "running");
    other.note(run.id, { state: "done", ended_at: "2026-01-02T03:04:05.000Z" });
    await other.close();
    await owner.refresh();
    assert.deepEqual(owner.open(), []);
    assert.equal(owner.need(run.id).state, "done");
    await Deno.remove(join(two.path, ".svc/runs"), { recursive: true });
    await there!.refresh();
    assert.deepEqual(there!.need(run.id), here!.need(run.id));
  },
);

Deno.test({
  ...needed,
  name: "PostgreSQL: the first copy of a thousand runs is written in many turns of the event loop",
  async fn() {
    await using one = await machine(await server.database(withTables));
    const runs = runsOf(one.workspace);
    const { records } = await one.workspace.store!.open();
    const copy = one.workspace.store!.copies().find(({ name }) => name === "run")!;
    const queued_at = "2026-01-02T03:04:05.000Z";
    const request = { prompt: "go", role: "", task: {}, confirmed: false, webhook: "" };
    const rows = Array.from({ length: 1000 }, (_, i) => {
      const key = `run_${`${i}`.padStart(17, "0")}_${"a".repeat(22)}`;
      return { kind: "run", key, value: { id: key, state: "done", queued_at, request } };
    });
    await records.put(copy, rows);
    const folder = join(one.path, ".svc/runs");
    const count = () => [...entriesOf(folder)].filter(({ name }) => name.startsWith("run_")).length;
    const refresh = async () => {
      let [before, most, isOver] = [count(), 0, false];
      const look = () => {
        const now = count();
        most = Math.max(most, Math.abs(now - before));
        before = now;
        if (!isOver) setImmediate(look);
      };
      setImmediate(look);
      await runs.refresh().finally(() => isOver = true);
      return Math.max(most, Math.abs(count() - before));
    };
    assert.ok(await refresh() <= 10);
    assert.equal(count(), 1000);
    assert.equal(runs.list({ limit: 2000 }).length, 1000);
    await records.put(copy, rows.slice(500).map(({ kind, key }) => ({ kind, key })));
    await Deno.remove(join(one.path, ".svc/store/run.json")); // all of them are read anew
    assert.ok(await refresh() <= 10);
    assert.equal(count(), 500);
    assert.deepEqual(runs.list({ limit: 2000 }).map(({ id }) => id).sort(), [
      ...rows.slice(0, 500).map(({ key }) => key),
    ]);
  },
});

story(
  "a request of a moment ago is on all machines when its machine has looked at the usage",
  async (one, two) => {
    const [here, there] = [one, two].map(({ workspace }) => workspace.spending.ledger);
    const time = new Date().toISOString();
    await here!.refresh();
    here!.append(request(time));
    await here!.refresh();
    await there!.refresh();
    assert.deepEqual(there!.read(time.slice(0, 10)), [request(time)]);
  },
);

story("a budget of the day holds for the requests of all machines together", async (one, two) => {
  const ledgers = [one, two].map(({ workspace }) => workspace.spending);
  const [here, there] = await Promise.all(ledgers.map((spending) => spending.totals()));
  const since = ledgers[0]!.ledger.today();
  const used = (totals: LedgerTotals) => {
    const { used, reserved } = totals.of({ since });
    return [used.tokens, reserved.tokens];
  };
  const line = await here!.locked(() => here!.reserve({ tokens: 100, cost: 0 }));
  assert.deepEqual(await there!.locked(() => used(there!)), [0, 100], "reserved elsewhere");
  await here!.locked(() => here!.settle(request(line.time), line));
  assert.deepEqual(await there!.locked(() => used(there!)), [30, 0]);
  ledgers[1]!.ledger.append(request(line.time));
  await ledgers[1]!.ledger.flush();
  await here!.locked(() => here!.reserve({ tokens: 7, cost: 0 }));
  assert.deepEqual(await there!.locked(() => used(there!)), [60, 7]);
  await one.workspace.spending.close();
  assert.deepEqual(await there!.locked(() => used(there!)), [67, 0], "its process is gone");
  assert.deepEqual([...one.warnings, ...two.warnings], []);
});

Deno.test({
  ...needed,
  name: "PostgreSQL: the requests of other machines come in pages, each once",
  async fn() {
    const store = await server.database(withTables);
    await using one = await machine(store);
    await using two = await machine(store);
    const [here, there] = [one, two].map(({ workspace }) => workspace.spending.ledger);
    const time = new Date().toISOString();
    const used = (count: number) =>
      Array.from({ length: count }, (_, i) => ({ ...request(time), chars: i }));
    const append = async (ledger: typeof here, count: number) => {
      for (const line of used(count)) ledger!.append(line);
      await ledger!.flush();
    };
    const counts = () => [here!, there!].map((ledger) => ledger.read(ledger.today()).length);
    for (const ledger of [here!, there!]) await ledger.refresh();
    await append(here, 1500);
    await append(there, 1000);
    await append(here, 1001);
    await there!.refresh();
    assert.deepEqual(counts(), [2501, 3501]);
    await here!.refresh();
    for (const ledger of [here!, there!]) {
      await ledger.refresh();
      const chars = (lines: object[]) => lines.map((line) => (line as RequestLine).chars).sort();
      const all = [1500, 1000, 1001].flatMap(used);
      assert.deepEqual(chars(ledger.read(ledger.today())), chars(all));
    }
  },
});

Deno.test({
  ...needed,
  name:
    "PostgreSQL: what a server notes of its runs outlives a look of another process of its worktree",
  async fn() {
    const store = await server.database(withTables);
    await using one = await machine(store);
    await using same = await machine(store, "shop", {}, one);
    await using two = await machine(store);
    // The store gets what is noted when it is near again.
    const near = Promise.withResolvers<void>();
    let far = false;
    const { store: link } = one.workspace;
    const open = () => far ? near.promise.then(() => link!.open()) : link!.open();
    const slow = { ...link, register: () => {}, open } as unknown as StoreLink;
    const here = runsOf(one.workspace, slow);
    const [there, other] = [same, two].map(({ workspace }) => runsOf(workspace));
    const { run: { id } } = await here.accept({ request: REQUEST });
    far = true;
    here.note(id, { worker: "one/7" });
    await there!.refresh();
    assert.equal(here.note(id, { state: "running" }).worker, "one/7");
    await there!.refresh();
    near.resolve();
    await here.flush();
    const fields = ({ worker, state }: Run = {} as Run) => ({ worker, state });
    const noted = { worker: "one/7", state: "running" };
    assert.deepEqual(fields(await other!.fetch(id)), noted);
    await other!.refresh();
    for (const runs of [here, there!, other!]) assert.deepEqual(fields(runs.get(id)), noted);
    for (const runs of [here, there!, other!]) await runs.close();
  },
});

Deno.test({
  ...needed,
  name: "PostgreSQL: what a server notes of a run while it sends a change of it is sent too",
  async fn() {
    const store = await server.database(withTables);
    await using one = await machine(store);
    const { records } = await one.workspace.store!.open();
    const change = records.change.bind(records);
    const changes: Promise<unknown>[] = [];
    let sending = () => {};
    records.change = (copy, decide) => {
      const changed = change(copy, async () => {
        const decided = await decide();
        sending();
        return decided;
      });
      changes.push(changed);
      return changed;
    };
    const runs = runsOf(one.workspace);
    const { run: { id } } = await runs.accept({ request: REQUEST });
    sending = () => {
      sending = () => {};
      runs.note(id, { state: "running" });
    };
    runs.note(id, { worker: "one/7" });
    for (let made = 0; made < changes.length;) {
      made = changes.length;
      await Promise.all(changes);
      await new Promise((resolve) => setTimeout(resolve));
    }
    const { state, worker } = await records.get("run", id) as Run;
    assert.deepEqual([state, worker], ["running", "one/7"]);
    await runs.close();
  },
});

function runsOf(
  { paths: { state, user }, clock, store: own, warn }: Workspace,
  store: StoreLink | undefined = own,
): RunStore {
  return new RunStore({ state, user, clock, store, warn });
}

function request(time: string): RequestLine {
  const counts = { in: 10, out: 20, cached: 0, reasoning: 0, cost: null, calls: 0, chars: 40 };
  return { time, for: "turn", provider: "openai", model: "test", ...counts };
}
