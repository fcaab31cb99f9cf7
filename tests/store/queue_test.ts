import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";
import { PostgresQueue } from "../../src/store/boss.ts";
import { LocalQueue } from "../../src/store/queue.ts";
import { filePostgres } from "../support/postgres.ts";
import { project } from "../support/project.ts";
import { queueSuite } from "./queue_suite.ts";
import { linkOf, withTables } from "./support.ts";

queueSuite("one process", (queues, most) => {
  const queue = new LocalQueue(systemClock, most);
  return Promise.resolve({
    queues: Array.from({ length: queues }, () => queue),
    [Symbol.asyncDispose]: () => queue.close(),
  });
});

const { needed, server } = await filePostgres();

/** A machine with the queue of one project. */
async function machine(url: string, clock = systemClock, most = () => 0) {
  const place = await project();
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const link = linkOf(place.path, url, { project: "a project/é", warn });
  const { database, events } = await link.open();
  const queue = new PostgresQueue({ database, events, project: link.project, clock, warn, most });
  return {
    queue,
    query: database.query,
    async [Symbol.asyncDispose]() {
      await queue.close();
      await link.close();
      await place[Symbol.asyncDispose]();
      assert.deepEqual(warnings, []);
    },
  };
}

/** The tables of svc and pg-boss. */
async function install(url: string): Promise<void> {
  await withTables(url);
  await using one = await machine(url);
  await one.queue.boss();
}

queueSuite("PostgreSQL", async (queues, most) => {
  const url = await server.database(install);
  const machines = await Promise.all(
    Array.from({ length: queues }, () => machine(url, systemClock, most)),
  );
  return {
    queues: machines.map(({ queue }) => queue),
    async [Symbol.asyncDispose]() {
      for (const each of machines) await each[Symbol.asyncDispose]();
    },
  };
}, needed);

Deno.test({
  name: "PostgreSQL: another worker takes the item of a dead one, whose late end changes nothing",
  ...needed,
  async fn() {
    const url = await server.database(install);
    await using one = await machine(url, { ...systemClock, sleep: () => new Promise(() => {}) });
    await using other = await machine(url);
    const dead = Promise.withResolvers<void>();
    const taken = Promise.withResolvers<void>();
    const silent = one.queue.work({ labels: [], concurrency: () => 1 }, () => {
      taken.resolve();
      return dead.promise;
    });
    await one.queue.put({ kind: "job", name: "a", key: "a" });
    await taken.promise;
    await one.query("UPDATE svc_boss.job SET heartbeat_on = heartbeat_on - interval '8 s'");
    const done = Promise.withResolvers<void>();
    const over = Promise.withResolvers<void>();
    const worker = other.queue.work({ labels: [], concurrency: () => 1 }, () => {
      over.resolve();
      return done.promise;
    });
    await over.promise;
    dead.resolve();
    await silent.close();
    assert.equal(await one.queue.put({ kind: "job", name: "a", key: "a" }), false);
    done.resolve();
    await worker.close();
    assert.equal(await one.queue.put({ kind: "job", name: "a", key: "a" }), true);
  },
});

Deno.test({
  name:
    "PostgreSQL: an item waits by the clock of PostgreSQL, also where that of the machine is off",
  ...needed,
  async fn() {
    const url = await server.database(install);
    for (const off of [-3_600_000, 3_600_000]) {
      const now = () => Date.now() + off;
      await using one = await machine(url, { ...systemClock, now });
      const after = new Date(now() + 60_000).toISOString();
      await one.queue.put({ kind: "run", name: `${off}`, key: `${off}`, after });
      const [row] = await one.query(
        `SELECT extract(epoch FROM start_after - now())::int AS wait FROM svc_boss.job
          WHERE data ->> 'name' = $1`,
        [`${off}`],
      );
      assert.ok(row!.wait > 30 && row!.wait <= 61, `${row!.wait} seconds`);
    }
  },
});
