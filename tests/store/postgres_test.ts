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
