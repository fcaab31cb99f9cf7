import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
// @ts-types="../../src/store/pg.d.ts"
import pg, { type Client } from "pg";
import { needs } from "./needs.ts";
import { filePostgres, npmBinaries, startPostgres } from "./postgres.ts";
import { poll } from "./processes.ts";
import { FULL } from "./random.ts";

const { needed, server } = await filePostgres();

async function connect(connectionString: string): Promise<Client & AsyncDisposable> {
  const client = new pg.Client({ connectionString });
  client.on("error", () => {});
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

const refused = (url: string) =>
  connect(url).then((client) => client.end().then(() => ""), ({ message }) => message);

Deno.test({
  name: "a test gets an empty database, and copies of one that was filled once",
  ...needed,
  fn: async () => {
    let fills = 0;
    const fill = async (url: string) => {
      fills++;
      await using client = await connect(url);
      await client.query("CREATE TABLE word (text text); INSERT INTO word VALUES ('one')");
    };
    const urls = [await server.database(fill), await server.database(fill)];
    for (const url of urls) {
      await using client = await connect(url);
      await client.query("INSERT INTO word VALUES ('two')");
      assert.equal((await client.query("SELECT * FROM word")).rowCount, 2);
    }
    assert.equal(fills, 1);
    await using empty = await connect(await server.database());
    await assert.rejects(empty.query("SELECT * FROM word"), /does not exist/);
  },
});

for (const ending of ["fast", "immediate", "kill"] as const) {
  Deno.test({
    name: `the server keeps its port and data over a restart (${ending})`,
    ...needed,
    fn: async () => {
      const url = await server.database();
      {
        await using client = await connect(url);
        await client.query("CREATE TABLE kept (n int)");
        await server.restart(ending);
        await assert.rejects(client.query("SELECT 1"));
      }
      await using client = await connect(url);
      assert.equal((await client.query("SELECT * FROM kept")).rowCount, 0);
    },
  });
}

Deno.test({
  name: "the connections to one database are cut, or all",
  ...needed,
  fn: async () => {
    const urls = [await server.database(), await server.database()];
    await using first = await connect(urls[0]!);
    await using second = await connect(urls[1]!);
    assert.equal(await server.cut(new URL(urls[0]!).pathname.slice(1)), 1);
    await assert.rejects(first.query("SELECT 1"));
    await second.query("SELECT 1");
    assert.equal(await server.cut(), 1);
    await assert.rejects(second.query("SELECT 1"));
  },
});

Deno.test({
  name: "a server that is stopped refuses connections, and one with a password asks for it",
  ...needed,
  fn: async () => {
    await using other = await startPostgres({ password: "k3y", durable: true });
    assert.match(await refused(other.url()), /password/);
    assert.equal(await refused(other.url().replace("postgres@", "postgres:k3y@")), "");
    assert.deepEqual(await other.query("SHOW fsync"), [{ fsync: "on" }]);
    await other.stop("fast");
    assert.match(await refused(other.url()), /ECONNREFUSED/);
  },
});

Deno.test({
  name: "the server ends when the process that started it is killed",
  ...needed,
  fn: async () => {
    const code = `
      import { startPostgres } from ${JSON.stringify(import.meta.resolve("./postgres.ts"))};
      const { port, folder } = await startPostgres();
      console.log(JSON.stringify({ port, folder }));
      Deno.kill(Deno.pid, "SIGKILL");`;
    const config = fileURLToPath(new URL("../../deno.json", import.meta.url));
    const args = ["eval", "--no-check", "--config", config, code];
    const { stdout } = await new Deno.Command(Deno.execPath(), { args }).output();
    const { port, folder } = JSON.parse(new TextDecoder().decode(stdout));
    await poll(
      () => refused(`postgres://postgres@127.0.0.1:${port}/postgres`),
      (message) => message.includes("ECONNREFUSED"),
    );
    await poll(() => Deno.stat(`${folder}/data`).then(() => true, () => false), (there) => !there);
  },
});

Deno.test({
  name: "the binaries of the npm package work like Debian's",
  ...needs("the campaigns do not run in full", FULL),
  fn: async () => {
    const binaries = await npmBinaries();
    assert(binaries);
    await using other = await startPostgres({ binaries });
    assert.match((await other.query("SELECT version()"))[0].version, /^PostgreSQL 18\./);
    await other.restart("kill");
    assert.equal(await refused(await other.database()), "");
  },
});
