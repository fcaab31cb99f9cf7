import type { Job, PgBoss } from "pg-boss";
import type { Clock } from "../platform/clock.ts";
import { errorMessage } from "../platform/error.ts";
import type {
  Database,
  Events,
  Query,
  QueueItem,
  QueueWorker,
  RunQueue,
  WorkOptions,
} from "./port.ts";
import { LOCK } from "./postgres.ts";
import { rankOf } from "./queue.ts";

/** The schema of pg-boss's tables. */
const SCHEMA = "svc_boss";
/** Milliseconds between two looks for items, when no event has told of one. */
const LOOK = 1000;
/** Milliseconds between two signs of life of a worker. */
const BEAT = 3000;

/** pg-boss takes an item from a worker that shows no sign of life for this long, and gives it to another one. */
const QUEUE = {
  policy: "exclusive",
  heartbeatSeconds: 10,
  retryLimit: 100_000,
  retryDelay: 1,
  expireInSeconds: 86_399,
  deleteAfterSeconds: 600,
};

/** An item that a worker has taken. */
interface Taken extends Job<QueueItem> {
  /** Its queue of pg-boss: that of a kind and a label in the project. */
  queue: string;
}

/** The queue of a project in PostgreSQL, by pg-boss. */
export class PostgresQueue implements RunQueue {
  readonly #database: Database;
  readonly #events: Pick<Events, "notify" | "on"> | undefined;
  readonly #project: string;
  readonly #clock: Clock;
  readonly #warn: (message: string) => void;
  readonly #most: () => number;
  readonly #workers = new Set<Worker>();
  readonly #made = new Set<string>();
  #started: Promise<PgBoss> | undefined;

  /**
   * @param options.events tells workers of new items. Default: they look for them once a second
   * @param options.most items that run at once, of all workers; 0: no limit
   */
  constructor({ database, events, project, clock, warn, most = () => 0 }: {
    database: Database;
    events?: Pick<Events, "notify" | "on">;
    project: string;
    clock: Clock;
    warn: (message: string) => void;
    most?: () => number;
  }) {
    this.#database = database;
    this.#events = events;
    this.#project = nameOf(project);
    this.#clock = clock;
    this.#warn = warn;
    this.#most = most;
  }

  async put(item: QueueItem): Promise<boolean> {
    const { kind, key, label, group, after } = item;
    const boss = await this.boss();
    const queue = await this.#queue(boss, kind, label);
    const id = await boss.send(queue, item, {
      singletonKey: key,
      priority: rankOf(item),
      ...group !== undefined && { group: { id: group } },
      // In seconds from now, by PostgreSQL's clock: that of this machine may be off.
      ...after !== undefined && { startAfter: this.#until(after) },
    });
    if (id === null) return false;
    for (const worker of this.#workers) worker.look();
    await this.#events?.notify({ kind: "queue", key: label ?? "" });
    return true;
  }

  #until(after: string): number {
    return Math.max(0, Math.ceil((Date.parse(after) - this.#clock.now()) / 1000));
  }

  work(
    { kinds = ["job", "run"], labels, concurrency }: WorkOptions,
    handler: (item: QueueItem) => Promise<void>,
  ): QueueWorker {
    const worker = new Worker({
      clock: this.#clock,
      warn: this.#warn,
      concurrency,
      handler,
      boss: () => this.boss(),
      take: async () => await this.#take(await this.#queues(kinds, labels)),
    });
    this.#workers.add(worker);
    const listening = this.#events?.on("queue", () => worker.look()).catch(() => undefined);
    return {
      look: () => worker.look(),
      idle: () => worker.idle(),
      close: async () => {
        this.#workers.delete(worker);
        await worker.close();
        (await listening)?.[Symbol.dispose]();
      },
    };
  }

  async depth(): Promise<Map<string, number>> {
    await this.boss();
    const rows = await this.#database.query(
      `SELECT name, count(*)::int AS items FROM ${SCHEMA}.job
        WHERE starts_with(name, $1) AND state < 'active' AND start_after <= now()
        GROUP BY name ORDER BY name`,
      [`${this.#project}/`],
    );
    const found = new Map<string, number>();
    for (const { name, items } of rows) {
      const label = textOf(name.split("/")[2] ?? "");
      found.set(label, (found.get(label) ?? 0) + items);
    }
    return found;
  }

  async close(): Promise<void> {
    for (const worker of this.#workers) await worker.close();
    const boss = await this.#started?.catch(() => undefined);
    this.#started = undefined;
    await boss?.stop({ graceful: false });
  }

  boss(): Promise<PgBoss> {
    return this.#started ??= this.#start().catch((error) => {
      this.#started = undefined;
      throw error;
    });
  }

  async #start(): Promise<PgBoss> {
    const { PgBoss } = await import("pg-boss");
    const boss = new PgBoss({
      db: adapter(this.#database.query),
      schema: SCHEMA,
      schedule: false,
      superviseIntervalSeconds: 5,
      monitorIntervalSeconds: 5,
      maintenanceIntervalSeconds: 300,
    });
    boss.on("error", (error) => this.#warn(`The queue: ${errorMessage(error)}`));
    return await boss.start();
  }

  async #queues(
    kinds: readonly QueueItem["kind"][],
    labels: readonly string[],
  ): Promise<string[]> {
    const boss = await this.boss();
    const all = kinds.flatMap((kind) => [undefined, ...labels].map((label) => ({ kind, label })));
    return await Promise.all(all.map(({ kind, label }) => this.#queue(boss, kind, label)));
  }

  /** The queue of pg-boss for the items of a kind with a label. */
  async #queue(
    boss: PgBoss,
    kind: QueueItem["kind"],
    label: string | undefined,
  ): Promise<string> {
    const name = [this.#project, kind, ...label === undefined ? [] : [nameOf(label)]].join("/");
    if (!this.#made.has(name)) {
      await boss.createQueue(name, QUEUE);
      this.#made.add(name);
    }
    return name;
  }

  /** Takes the item that is first in order. */
  async #take(queues: string[]): Promise<Taken | undefined> {
    const boss = await this.boss();
    const first = await this.#database.query<{ name: string }>(
      `SELECT queue.name FROM unnest($1::text[]) queue(name), LATERAL (
        SELECT priority, created_on FROM ${SCHEMA}.job
          WHERE job.name = queue.name AND state < 'active' AND start_after <= now()
          ORDER BY priority DESC, created_on LIMIT 1
      ) job ORDER BY job.priority DESC, job.created_on`,
      [queues],
    );
    for (const { name } of first) {
      // Two fetches at the same time would each take an item of the same group, and so would one of several items,
      // in any order.
      const [job] = await this.#database.transaction(async (query) => {
        if (!await this.#hasRoom(query)) return [];
        await query(LOCK, [`queue ${name}`]);
        return await boss.fetch<QueueItem>(name, { groupConcurrency: 1, db: adapter(query) });
      });
      if (job !== undefined) return { ...job, queue: name };
    }
    return undefined;
  }

  /** Whether one more item of the project may run. Until the transaction ends, no other one is taken. */
  async #hasRoom(query: Query): Promise<boolean> {
    const most = this.#most();
    if (most === 0) return true;
    await query(LOCK, [`queue ${this.#project}`]);
    const [row] = await query<{ running: number }>(
      `SELECT count(*) AS running FROM ${SCHEMA}.queue JOIN ${SCHEMA}.job USING (name)
        WHERE starts_with(name, $1) AND job.state = 'active' AND job.policy = 'exclusive'`,
      [`${this.#project}/`],
    );
    return row!.running < most;
  }
}

interface WorkerOptions {
  clock: Clock;
  warn: (message: string) => void;
  concurrency: () => number;
  handler: (item: QueueItem) => Promise<void>;
  boss: () => Promise<PgBoss>;
  take: () => Promise<Taken | undefined>;
}

/** Takes items and shows pg-boss that it works on them. */
class Worker {
  readonly #options: WorkerOptions;
  readonly #running = new Map<Promise<void>, Taken>();
  readonly #closing = new AbortController();
  readonly #ended = new AbortController();
  #wake = () => {};
  /** Whether {@linkcode look} was called since the last look began. */
  #asked = true;
  readonly #looking: Promise<void>;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#looking = this.#look();
    void this.#beat();
  }

  look(): void {
    this.#asked = true;
    this.#wake();
  }

  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.keys());
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake();
    await this.#looking;
    await this.idle();
    this.#ended.abort();
  }

  async #look(): Promise<void> {
    const { clock, concurrency, take, warn } = this.#options;
    while (!this.#closing.signal.aborted) {
      this.#asked = false;
      const full = this.#running.size >= concurrency();
      const taken = full ? undefined : await take().catch((error) => {
        warn(`The queue: ${errorMessage(error)}`);
        return undefined;
      });
      if (taken !== undefined) this.#run(taken);
      if (taken !== undefined || this.#asked) continue;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      const over = new AbortController();
      clock.sleep(LOOK, over.signal).then(resolve, () => {});
      await promise;
      over.abort();
    }
  }

  #run(taken: Taken): void {
    const { handler, boss, warn } = this.#options;
    const { queue, data, id, retryCount } = taken;
    const settle = async (failed: unknown) => {
      // Of an item that another worker has taken over, nothing is settled.
      if (failed === undefined) await (await boss()).complete(queue, [{ id, retryCount }]);
      else await (await boss()).fail(queue, [{ id, retryCount }], { error: errorMessage(failed) });
    };
    const work = handler(data).then(() => undefined, (error) => error ?? "failed").then(settle)
      .catch((error) => warn(`The queue: ${errorMessage(error)}`))
      .then(() => {
        this.#running.delete(work);
        this.look();
      });
    this.#running.set(work, taken);
  }

  async #beat(): Promise<void> {
    const { clock, boss } = this.#options;
    while (await clock.sleep(BEAT, this.#ended.signal).then(() => true, () => false)) {
      const queues = Map.groupBy(this.#running.values(), ({ queue }) => queue);
      for (const [queue, taken] of queues) {
        const attempts = taken.map(({ id, retryCount }) => ({ id, retryCount }));
        await boss().then((boss) => boss.touch(queue, attempts)).catch(() => {}); // tried again
      }
    }
  }
}

/** The connection of pg-boss. */
function adapter(query: Query) {
  return {
    executeSql: async (text: string, values?: unknown[]) => ({ rows: await query(text, values) }),
  };
}

/** A text as a name of pg-boss, which has letters, digits, "_", "-", and "." in place of "%". */
function nameOf(text: string): string {
  return encodeURIComponent(text).replace(
    /[^\w%-]/g,
    (char) => `%${char.charCodeAt(0).toString(16)}`,
  )
    .replaceAll("%", ".");
}

/** The text of a name. */
function textOf(name: string): string {
  return decodeURIComponent(name.replaceAll(".", "%"));
}
