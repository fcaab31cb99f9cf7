import assert from "node:assert/strict";
// @ts-types="../../src/store/pg.d.ts"
import pg from "pg";
import { systemClock } from "../../src/platform/clock.ts";
import { PostgresQueue } from "../../src/store/boss.ts";
import type { Query } from "../../src/store/port.ts";
import { LocalQueue } from "../../src/store/queue.ts";
import { filePostgres } from "../support/postgres.ts";
import { queueSuite } from "./queue_suite.ts";

queueSuite("one process", (queues) => {
  const queue = new LocalQueue(systemClock);
  return Promise.resolve({
    queues: Array.from({ length: queues }, () => queue),
    [Symbol.asyncDispose]: () => queue.close(),
  });
});

const { needed, server } = await filePostgres();

/** A queue of one project on a connection pool of its own, as another machine has it. */
function machine(url: string, clock = systemClock) {
  const warnings: string[] = [];
  const pool = new pg.Pool({ connectionString: url, max: 3 });
  const query = (client: { query: typeof pool.query }): Query => async (text, values) => {
    const result = await client.query(text, values);
    // deno-lint-ignore no-explicit-any
    return [result].flat().flatMap(({ rows }) => rows) as any;
  };
  const database = {
    query: query(pool),
    async transaction<T>(work: (query: Query) => Promise<T>) {
      const client = await pool.connect();
      try {
        await client.query("BEGIN");
        const result = await work(query(client));
        await client.query("COMMIT");
        return result;
      } finally {
        client.release();
      }
    },
  };
  const warn = (message: string) => void warnings.push(message);
  const queue = new PostgresQueue({ database, project: "a project/é", clock, warn });
  return {
    queue,
    query: database.query,
    async [Symbol.asyncDispose]() {
      await queue.close();
      assert.deepEqual(warnings, []);
      await pool.end();
    },
  };
}

/** The tables of pg-boss. */
async function install(url: string): Promise<void> {
  await using one = machine(url);
  await one.queue.boss();
}

queueSuite("PostgreSQL", async (queues) => {
  const url = await server.database(install);
  const machines = Array.from({ length: queues }, () => machine(url));
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
    await using one = machine(url, { ...systemClock, sleep: () => new Promise(() => {}) });
    await using other = machine(url);
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
