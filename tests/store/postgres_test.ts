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

Deno.test({
  name: "a connection that PostgreSQL ends as soon as it is made ends no process",
  ...needed,
  fn: async () => {
    const text = new TextEncoder();
    const message = (type: string, body: Uint8Array) => {
      const length = new Uint8Array(4);
      new DataView(length.buffer).setInt32(0, body.length + 4);
      return [...text.encode(type), ...length, ...body];
    };
    const dying = "SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0";
    const welcome = [
      ...message("R", new Uint8Array(4)), // no password
      ...message("Z", text.encode("I")), // ready
      ...message("E", text.encode(dying)),
    ];
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const serving = (async () => {
      for await (const connection of listener) {
        await connection.read(new Uint8Array(1000));
        await connection.write(new Uint8Array(welcome)).catch(() => {});
        connection.close();
      }
    })();
    await using place = await project();
    const store = `postgres://svc@127.0.0.1:${listener.addr.port}/svc`;
    const link = linkOf(place.path, store, { timeout: 0.5 });
    await assert.rejects(link.open(), { code: "store_unreachable" });
    await link.close();
    listener.close();
    await serving;
  },
});

Deno.test({
  name:
    "a change that a crash of PostgreSQL has undone is made again, also where another has its id",
  ...needed,
  fn: async () => {
    const store = await server.database(withTables);
    const name = store.split("/").at(-1)!;
    await using place = await project();
    const link = linkOf(place.path, store);
    const { database } = await link.open();
    await database.query("CREATE TABLE counted (n int)");
    let tries = 0;
    await database.transaction(async (query) => {
      await query("INSERT INTO counted VALUES (1)");
      const [mine] = await query("SELECT pg_current_xact_id()::text AS xid");
      if (++tries > 1) return;
      await server.restart("kill");
      for (let other = 0; other < Number(mine!.xid);) {
        const sql = "INSERT INTO counted VALUES (2) RETURNING pg_current_xact_id()::text AS xid";
        other = Number((await server.query(sql, [], name))[0].xid);
      }
    });
    assert.equal(tries, 2);
    assert.deepEqual(await database.query("SELECT n FROM counted WHERE n = 1"), [{ n: 1 }]);
    await link.close();
  },
});

function failed(message: string): void {
  throw new Error(message);
}
