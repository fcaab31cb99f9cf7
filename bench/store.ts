// deno-lint-ignore-file no-console
/**
 * What the shared store on PostgreSQL costs, on a server that writes to the disk before it answers:
 * `deno run --allow-all bench/store.ts`. It takes some minutes. docs/postgres.md has the figures.
 */
import { migrate } from "../src/store/migrations.ts";
import { PostgresStore } from "../src/store/store.ts";
import { faults, machines, type Outcome } from "../tests/campaign/machines.ts";
import { startPostgres } from "../tests/support/postgres.ts";
import { turnCost } from "./session_log.ts";

/** Items that wait in the long queue. */
const QUEUED = 10_000;
const WORKERS = [1, 2, 4];
/** Runs of one worker at a time. */
const CONCURRENCY = 8;
/** Runs for each worker: few, so that the first second counts. */
const RUNS = 30;
/** Milliseconds that the backend takes. */
const DELAY = 200;

await using postgres = await startPostgres({ durable: true });
await appends();
await queue();
for (const workers of WORKERS) await throughput(workers);
await latency();

/** The operations of one turn, next to those of a session in files. */
async function appends(): Promise<void> {
  const folder = await Deno.makeTempDir();
  const { late } = await turnCost(folder);
  await Deno.remove(folder, { recursive: true });
  await using store = await open();
  const lease = (await store.leases.take("session/long"))!;
  const record = JSON.stringify({ text: "It exports a number, and nothing else. ".repeat(8) });
  const rows = (after: number) =>
    Array.from({ length: 5 }, (_, n) => ({ record, position: `${after + n + 1}` }));
  const entry = { turns: 1, bytes: 1000, open: false, updated_at: "", answers: [] };
  const head = { id: "", created_at: "", role: "", job: "", parent_id: "" };
  let after = 0;
  const append = async (count: number) => {
    await store.journal.append("long", lease, {
      after,
      rows: rows(after).slice(0, count),
      entry: { ...entry, ...after === 0 && { head } },
    });
    after += count;
  };
  const one = await medianOf(300, () => append(1));
  const five = await medianOf(300, () => append(5));
  await lease.release();
  console.log(`a turn in a file: ${ms(late)}; rows appended: one ${ms(one)}, five ${ms(five)}`);
}

async function queue(): Promise<void> {
  await using store = await open();
  const { queue } = store;
  const numbers = Array.from({ length: QUEUED }, (_, number) => number);
  const put = (number: number) => queue.put({ kind: "job", name: "a", key: `${number}` });
  await put(-1);
  const one = await medianOf(100, () => put(-2 - Math.floor(performance.now() * 1000)));
  const begun = performance.now();
  for (let first = 0; first < QUEUED; first += 100) {
    await Promise.all(numbers.slice(first, first + 100).map(put));
  }
  const each = (performance.now() - begun) / QUEUED;
  const depth = await medianOf(20, () => queue.depth());
  let taken = 0;
  const started = performance.now();
  const done = Promise.withResolvers<void>();
  const worker = queue.work({ labels: [], concurrency: () => CONCURRENCY }, () => {
    if (++taken === 500) done.resolve();
    return Promise.resolve();
  });
  await done.promise;
  const take = (performance.now() - started) / taken;
  await worker.close();
  console.log(
    `an item put into the queue: ${ms(one)} alone, ${ms(each)} among ${QUEUED}; ` +
      `with ${QUEUED} queued: depth ${ms(depth)}, an item taken and ended ${ms(take)}`,
  );
}

async function throughput(workers: number): Promise<void> {
  const before = await load();
  const outcome = await play({ workers, jobs: RUNS * workers, span: 1 });
  const after = await load();
  const times = outcome.asked.map(({ at, answered = 0 }) => [at, answered] as const);
  const span = Math.max(...times.map(([, to]) => to)) - Math.min(...times.map(([from]) => from));
  const per = (name: "transactions" | "cpu") =>
    Math.round((after[name] - before[name]) / outcome.asked.length * 10) / 10;
  const rate = outcome.asked.length / span * 1000;
  console.log(
    `${workers} workers with ${CONCURRENCY} runs each at a time: ${
      rate.toFixed(1)
    } runs per second; ` +
      `PostgreSQL: ${per("transactions")} transactions and ${ms(per("cpu"))} of a core for each`,
  );
}

/** Transactions of the server so far, and milliseconds of processors. */
async function load(): Promise<{ transactions: number; cpu: number }> {
  const [{ sum }] = await postgres.query(
    "SELECT sum(xact_commit + xact_rollback)::int AS sum FROM pg_stat_database",
  );
  const [{ pid }] = await postgres.query(
    "SELECT pg_read_file('postmaster.pid', 0, 20)::text AS pid",
  );
  const times = (stat: string) => stat.slice(stat.lastIndexOf(")") + 2).split(" ").map(Number);
  let ticks = 0;
  for (const { name } of Deno.readDirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const fields = times(Deno.readTextFileSync(`/proc/${name}/stat`));
      const own = name === `${parseInt(pid)}`;
      if (own || fields[1] === parseInt(pid)) ticks += fields[11]! + fields[12]!;
      if (own) ticks += fields[13]! + fields[14]!;
    } catch {
      continue; // it has ended
    }
  }
  return { transactions: sum, cpu: ticks * 10 };
}

/** From due to the request that reaches the backend: the ticks of the scheduler, the queue and the start of the turn. */
async function latency(): Promise<void> {
  const { asked, due } = await play({ workers: 2, jobs: 40, span: 20_000 });
  const times = asked.map(({ marker, at }) => at - due.get(marker)!).sort((a, b) => a - b);
  const [median, most] = [times[times.length >> 1]!, times.at(-1)!];
  console.log(`from due to the request: ${ms(median)}, at most ${ms(most)} (a tick of 1 s)`);
}

async function play(
  { workers, jobs, span }: { workers: number; jobs: number; span: number },
): Promise<Outcome> {
  const outcome = await machines(postgres, {
    ...{
      seed: 1,
      schedulers: 1,
      servers: 1,
      runs: 0,
      blows: [],
      wrong: false,
      recurring: 0,
      delay: DELAY,
    },
    ...{ workers, jobs, span, concurrency: CONCURRENCY },
  });
  const wrong = faults(outcome);
  if (wrong.length > 0) throw new Error(wrong.join("\n"));
  return outcome;
}

async function open(): Promise<PostgresStore & AsyncDisposable> {
  const connection = await postgres.database();
  const state = await Deno.makeTempDir();
  const store = new PostgresStore({
    connection,
    address: connection,
    project: "bench",
    state,
    timeout: () => 30,
    warn: (message) => console.error(message),
  });
  await migrate(store);
  return Object.assign(store, {
    [Symbol.asyncDispose]: async () => {
      await store.close();
      await Deno.remove(state, { recursive: true });
    },
  });
}

async function medianOf(times: number, act: () => Promise<unknown>): Promise<number> {
  const found: number[] = [];
  for (let time = 0; time < times; time++) {
    const begun = performance.now();
    await act();
    found.push(performance.now() - begun);
  }
  return found.sort((a, b) => a - b)[times >> 1]!;
}

function ms(value: number): string {
  return `${value.toFixed(value < 10 ? 2 : 0)} ms`;
}
