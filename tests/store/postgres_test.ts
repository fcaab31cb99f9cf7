import assert from "node:assert/strict";
import { filePostgres } from "../support/postgres.ts";
import { project } from "../support/project.ts";
import { linkOf, withTables } from "./support.ts";

const { needed, server } = await filePostgres();

Deno.test({
  name: "a machine that stands still in a transaction does not hold up the others",
  ...needed,
  fn: async () => {
    const store = await server.database(withTables);
    await using place = await project();
    const [one, other] = [linkOf(place.path, store), linkOf(place.path, store)];
    const database = (await one.connect()).database;
    const standing = Promise.withResolvers<void>();
    const over = Promise.withResolvers<void>();
    const stopped = database.transaction(async (query) => {
      await query("SELECT pg_advisory_xact_lock(1)");
      standing.resolve();
      await over.promise;
    });
    await standing.promise;
    await (await other.connect()).database.transaction((query) =>
      query("SELECT pg_advisory_xact_lock(1)")
    );
    over.resolve();
    await stopped;
    for (const link of [one, other]) await link.close();
  },
});

Deno.test({
  name: "many machines begin to use the queue of a new store at the same time",
  ...needed,
  fn: async () => {
    const store = await server.database(withTables);
    await using place = await project();
    const links = Array.from({ length: 8 }, () => linkOf(place.path, store, { warn: failed }));
    const queues = await Promise.all(links.map(async (link) => (await link.connect()).queue));
    const key = "a due time";
    const put = await Promise.all(
      queues.map((queue) => queue.put({ kind: "job", name: "a", key })),
    );
    assert.equal(put.filter(Boolean).length, 1);
    for (const queue of queues) assert.equal((await queue.depth()).get(""), 1);
    for (const link of links) await link.close();
  },
});

function failed(message: string): void {
  throw new Error(message);
}
