import assert from "node:assert/strict";
import { join } from "node:path";
import { jobContext } from "../../src/jobs/context.ts";
import { createJob } from "../../src/jobs/create.ts";
import { SvcError } from "../../src/platform/error.ts";
import { migrate, MIGRATIONS } from "../../src/store/migrations.ts";
import { PostgresEvents } from "../../src/store/events.ts";
import type { Lease, RecordCopy, SessionFilter } from "../../src/store/port.ts";
import { Postgres } from "../../src/store/postgres.ts";
import { CHANGED } from "../../src/store/records.ts";
import { filePostgres } from "../support/postgres.ts";
import { until } from "../support/processes.ts";
import { project } from "../support/project.ts";
import { linkOf, machine, withTables } from "./support.ts";

const { needed, server } = await filePostgres();

function test(name: string, fn: () => Promise<void>) {
  Deno.test({ ...needed, name, fn });
}

const QUESTION = { question: "Which port?", origin: "build_a1b2c3" };

test("migrations that many machines begin at the same time run once, and a second time change nothing", async () => {
  const url = await server.database();
  await using place = await project();
  const links = Array.from({ length: 4 }, () => linkOf(place.path, url));
  const made = await Promise.all(links.map(async (link) => await migrate(await link.connect())));
  assert.deepEqual(made.flat(), MIGRATIONS.map(({ name }) => name));
  assert.deepEqual(await migrate(await links[0]!.connect()), []);
  for (const link of links) await link.close();
});

test("a step of a migration that fails leaves nothing of the others", async () => {
  const url = await server.database();
  await using place = await project();
  const link = linkOf(place.path, url);
  const store = await link.connect();
  const broken = [...MIGRATIONS, { name: "broken", sql: "CREATE TABLE svc.records ()" }];
  await assert.rejects(migrate(store, broken), /already exists/);
  await assert.rejects(link.open(), { code: "store_schema", exit: 2 });
  await migrate(store);
  await link.open();
  await link.close();
});

test("a newer schema is refused, by svc store migrate too", async () => {
  const url = await server.database(withTables);
  await using place = await project();
  const link = linkOf(place.path, url);
  const store = await link.connect();
  await store.database.query("UPDATE svc.store SET version = 99");
  const refused = (error: unknown) =>
    error instanceof SvcError && error.exit === 2 &&
    /of a newer svc: version 99/.test(error.message);
  await assert.rejects(link.open(), refused);
  await assert.rejects(migrate(store), refused);
  await link.close();
});

test("a store that cannot be reached is named without its password", async () => {
  await using place = await project();
  for (
    const [address, message] of [
      [
        "postgres://svc:geheim@127.0.0.1:1/svc",
        /^The store postgres:\/\/svc@127\.0\.0\.1:1\/svc cannot be reached: /,
      ],
      [
        "postgres://svc@127.0.0.1:1/svc?password=geheim",
        /^The store postgres:\/\/svc@127\.0\.0\.1:1\/svc cannot be reached: /,
      ],
      [
        "postgres://svc:100%25geheim@127.0.0.1:1/svc",
        /^The store postgres:\/\/svc@127\.0\.0\.1:1\/svc cannot be reached: /,
      ],
      [
        "postgres://svc:100%geheim@127.0.0.1:1/svc",
        /^The store postgres:\/\/svc@127\.0\.0\.1:1\/svc cannot be reached: /,
      ],
      [
        `${server.url().replace("postgres@", "nobody:geheim@")}x`,
        /127\.0\.0\.1:\d+\/postgresx refuses: /,
      ],
    ] as const
  ) {
    const link = linkOf(place.path, address);
    assert.equal(await link.answers(), false);
    await assert.rejects(link.open(), (error) => {
      assert.ok(error instanceof SvcError && error.exit === 2);
      assert.match(error.message, message);
      assert.doesNotMatch(Deno.inspect(error) + link.address + error.hint, /geheim/);
      return true;
    });
    const secret = address.includes("100%") ? "100%geheim" : "geheim";
    assert.ok(link.secrets.includes(secret), "it is masked in logs");
    await link.close();
  }
  assert.throws(
    () => linkOf(place.path, "geheim"),
    (error) =>
      error instanceof SvcError && error.code === "store_address" && !/geheim/.test(error.message),
  );
});

test("a connection that is cut in the middle of a change leaves nothing half", async () => {
  const url = await server.database(withTables);
  await using one = await machine(url);
  await using two = await machine(url);
  const database = url.split("/").at(-1)!;
  const { register } = jobContext(one.workspace);
  await createJob(jobContext(one.workspace), { name: "a", schedule: { interval: 60 }, task: "" });
  let tries = 0;
  const copy = one.workspace.store!.copies().find(({ name }) => name === "job")!;
  const store = await one.workspace.store!.open();
  await store.records.change(copy, async () => {
    if (++tries === 1) await server.cut(database);
    const value = { ...register.need("a"), retries: tries };
    return { rows: [{ kind: "job", key: "a", value }], result: undefined };
  });
  assert.equal(tries, 2, "the change was made again");
  assert.equal(register.need("a").retries, 2);
  await two.workspace.store!.refresh();
  await assert.rejects(
    register.change("a", () => {
      throw new SvcError("refused", "no");
    }),
    { code: "refused" },
  );
  const { register: other } = jobContext(two.workspace);
  await two.workspace.store!.refresh();
  assert.equal(other.need("a").retries, 2);
});

test("a transaction whose COMMIT gets no answer is done once", async () => {
  const url = await server.database(withTables);
  using proxy = cuttingProxy(server.port);
  await using place = await project();
  const link = linkOf(place.path, url.replace(`:${server.port}/`, `:${proxy.port}/`));
  const { database } = await link.open();
  await database.query("CREATE TABLE counted (n int)");
  let tries = 0;
  const insert = () =>
    database.transaction(async (query) => {
      await query("INSERT INTO counted VALUES ($1)", [++tries]);
    });
  proxy.cutAt = (bytes) => bytes.includes("COMMIT"); // the answer: the server has committed
  await insert();
  assert.deepEqual(await database.query("SELECT n FROM counted"), [{ n: 1 }]);
  proxy.cutAt = (bytes) => bytes.includes("INSERT"); // nothing is committed
  await insert();
  assert.deepEqual(await database.query("SELECT n FROM counted"), [{ n: 1 }, { n: tries }]);
  assert.equal(tries, 3);
  await link.close();
});

test("changes wait while PostgreSQL starts again, and fail after store_timeout when it does not", async () => {
  const url = await server.database(withTables);
  await using one = await machine(url);
  const { asks } = one.workspace;
  await asks.park(QUESTION);
  await server.stop("immediate");
  const parked = asks.park(QUESTION);
  await server.start();
  assert.equal((await parked).id, 2);
  await using place = await project();
  const link = linkOf(place.path, url, { timeout: 0.2 });
  const { database } = await link.open();
  await server.stop("immediate");
  try {
    assert.equal(await link.answers(), false);
    await assert.rejects(database.query("SELECT 1"), { code: "store_unreachable", exit: 1 });
  } finally {
    await server.start();
  }
  assert.equal(await link.answers(), true);
  await link.close();
});

test("a lease is of one holder, and of another once it has expired by PostgreSQL's clock", async () => {
  const url = await server.database(withTables);
  await using one = await machine(url);
  await using two = await machine(url);
  const [here, there] = await Promise.all(
    [one, two].map(({ workspace }) => workspace.store!.open()),
  );
  const lease = (await here!.leases.take("job/a"))!;
  assert.equal(await here!.leases.take("job/a"), undefined);
  assert.equal(await there!.leases.take("job/a"), undefined);
  assert.deepEqual((await there!.leases.held("job/")).map(({ token }) => token), [lease.token]);
  const append = (lease: Lease) =>
    there!.database.transaction(async (query) => {
      await query("SELECT svc.fence($1, $2, $3)", ["shop", lease.name, lease.token]);
    });
  await append(lease);
  await expire("job/a");
  await append(lease); // nothing has taken it over
  const taken = (await there!.leases.take("job/a"))!;
  assert.ok(taken.token > lease.token);
  await assert.rejects(append(lease), { code: "lease_lost" });
  await append(taken);
  assert.equal(lease.lost.aborted, false);
  await here!.leases.renew();
  assert.equal((lease.lost.reason as SvcError).code, "lease_lost");
  await lease.release();
  await append(taken);
  const waiting = here!.leases.wait("job/a");
  await taken.release();
  const again = await waiting;
  assert.ok(again.token > taken.token);
  await again.release();
  assert.deepEqual(await there!.leases.held(""), []);

  async function expire(name: string) {
    await here!.database.transaction((query) =>
      query("UPDATE svc.leases SET expires = now() - interval '1 s' WHERE name = $1", [name])
    );
  }
});

test("leases and changes do not depend on the clock of a machine", async () => {
  const url = await server.database(withTables);
  await using one = await machine(url);
  await using two = await machine(url);
  const [here, there] = await Promise.all(
    [one, two].map(({ workspace }) => workspace.store!.open()),
  );
  const now = Date.now;
  Date.now = () => now() + 600_000;
  try {
    const lease = (await here!.leases.take("job/a"))!;
    await one.workspace.asks.park(QUESTION);
    Date.now = () => now() - 600_000;
    assert.equal(await there!.leases.take("job/a"), undefined);
    await two.workspace.asks.park(QUESTION);
    await one.workspace.store!.refresh();
    assert.equal(one.workspace.asks.list().length, 2);
    await there!.leases.renew();
    await here!.leases.renew();
    assert.equal(lease.lost.aborted, false);
    await lease.release();
  } finally {
    Date.now = now;
  }
});

test("a machine that follows the store sees what others change, also after its connection was cut", async () => {
  const url = await server.database(withTables);
  await using one = await machine(url);
  await using two = await machine(url);
  await two.workspace.store!.follow();
  const { asks } = two.workspace;
  await one.workspace.asks.park(QUESTION);
  await until(() => asks.list().length === 1);
  await server.cut(url.split("/").at(-1)!);
  await one.workspace.asks.park(QUESTION);
  await until(() => asks.list().length === 2);
});

test("a copy has what is written after a crash, when the ids of transactions begin again", async () => {
  const url = await server.database(withTables);
  await using one = await machine(url);
  await using two = await machine(url);
  await one.workspace.asks.park(QUESTION);
  // Their ids were given to transactions that wrote nothing.
  const ids = "DO 'BEGIN FOR i IN 1..100 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END'";
  await server.query(ids);
  await two.workspace.store!.refresh();
  await server.restart("kill");
  await one.workspace.asks.park(QUESTION);
  await two.workspace.store!.refresh();
  assert.deepEqual(two.workspace.asks.list().map(({ id }) => id), [1, 2]);
});

test("a copy follows a store that was restored from a backup, whose numbers of transactions begin anew", async () => {
  const url = await server.database(withTables);
  await using one = await machine(url);
  await using two = await machine(url);
  const ids = ({ workspace }: typeof one) => workspace.asks.list().map(({ id }) => id);
  for (const _ of [1, 2, 3]) await one.workspace.asks.park(QUESTION);
  await two.workspace.store!.refresh();
  const [here, there] = [one, two].map(({ workspace }) => workspace.spending.ledger);
  const time = "2026-01-02T03:04:05.000Z";
  const used = (tokens: number) =>
    here!.append({
      ...{ time, for: "turn", provider: "openai", model: "test", in: tokens, out: 0, chars: 40 },
      ...{ cached: 0, reasoning: 0, cost: null, calls: 0 },
    });
  for (const tokens of [1, 2]) used(tokens);
  await here!.flush();
  await there!.refresh();
  // On a new server the rows of the backup have ids of transactions that are yet to come.
  const { database } = await one.workspace.store!.open();
  const later = 1_000_000_000;
  await database.query("DELETE FROM svc.requests WHERE seq = 2");
  await database.query("SELECT setval('svc.requests_seq_seq', 1)");
  await database.query("DELETE FROM svc.records WHERE kind = 'ask' AND key = '3'");
  await database.query(
    "UPDATE svc.records SET xid = (xid::text::bigint + $1)::text::xid8 WHERE project = 'shop'",
    [later],
  );
  for (const { path } of [one, two]) {
    const file = join(path, ".svc/store/ask.json");
    const position = JSON.parse(await Deno.readTextFile(file));
    position.cursor = `${Number(position.cursor) + later}`;
    await Deno.writeTextFile(file, JSON.stringify(position));
  }
  assert.deepEqual(await migrate(await one.workspace.store!.connect()), []);
  assert.equal((await one.workspace.asks.park(QUESTION)).id, 3);
  await two.workspace.store!.refresh();
  assert.deepEqual([ids(one), ids(two)], [[1, 2, 3], [1, 2, 3]]);
  used(3);
  await here!.flush();
  await there!.refresh();
  const lines = there!.read("2026-01-02").map((line) => "in" in line && line.in);
  assert.deepEqual(lines, [1, 2, 3]);
  assert.deepEqual(two.warnings, []);
  const position = await Deno.readTextFile(join(two.path, ".svc/store/ask.json"));
  await two.workspace.store!.refresh();
  assert.equal(await Deno.readTextFile(join(two.path, ".svc/store/ask.json")), position);
});

test("a broken file of a copy is written anew, and what something else wrote is kept", async () => {
  const url = await server.database(withTables);
  await using one = await machine(url);
  const { asks, store } = one.workspace;
  const context = jobContext(one.workspace);
  await asks.park(QUESTION);
  await createJob(context, { name: "a", schedule: { interval: 60 }, task: "" });
  const files = ["asks.json", "jobs.json"].map((name) => join(one.path, ".svc", name));
  const before = files.map((path) => Deno.readTextFileSync(path));
  for (const text of ["{ broken", "[]\n", undefined]) {
    for (const path of files) {
      if (text === undefined) await Deno.remove(path);
      else await Deno.writeTextFile(path, text);
    }
    await store!.refresh();
    assert.deepEqual(files.map((path) => Deno.readTextFileSync(path)), before, `${text}`);
  }
  await asks.park(QUESTION);
  assert.deepEqual(asks.list().map(({ id }) => id), [1, 2]);
  const kept = [...Deno.readDirSync(join(one.path, ".svc"))].filter(({ name }) =>
    name.includes(".broken-")
  );
  assert.equal(kept.length, 4);
});

test("files of a worktree and those of a project are not mixed", async () => {
  const url = await server.database(withTables);
  await using place = await project({ ".svc/asks.json": "[]" });
  const own = linkOf(place.path, url);
  await assert.rejects(own.open(), { code: "store_other", hint: /svc store import/ });
  await own.close();
  await Deno.remove(join(place.path, ".svc/asks.json"));
  const shop = linkOf(place.path, url);
  await shop.open();
  await shop.close();
  const farm = linkOf(place.path, url, { project: "farm" });
  await assert.rejects(farm.open(), {
    message: /copy of the project shop of this store, not of farm/,
  });
  await farm.close();
});

test("the cost of a change does not grow with what the store has", async () => {
  const url = await server.database(withTables);
  await using one = await machine(url);
  const store = await one.workspace.store!.open();
  const copy: RecordCopy = {
    name: "thing",
    kinds: ["thing"],
    path: join(one.path, ".svc/thing"),
    stamp: () => "",
    apply: (rows) => void (applied += rows.length),
    entries: () => [],
    keep: () => {},
  };
  let applied = 0;
  const rows = Array.from({ length: 5000 }, (_, i) => ({ kind: "thing", key: `${i}`, value: i }));
  await store.records.put(copy, rows);
  await store.records.pull(copy);
  assert.equal(applied, 5000);
  const change = (key: string) =>
    store.records.change(copy, () => ({ rows: [{ kind: "thing", key, value: 1 }], result: 1 }));
  await change("a");
  await change("b");
  await store.records.pull(copy);
  assert.ok(applied < 5010, `${applied} rows were read`);
  const { database } = store;
  await database.query("ANALYZE svc.records");
  const [now] = await database.query("SELECT pg_current_xact_id()::text AS xid");
  const [origin] = await database.query("SELECT xmin::text FROM svc.store");
  const plan = await database.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${CHANGED}`, [
    ...["shop", ["thing"], now!.xid, new Date().toISOString(), origin!.xmin],
  ]);
  const read = JSON.stringify(plan).matchAll(/"(?:Actual Rows|Rows Removed by \w+)":(\d+)/g);
  assert.ok(Math.max(...Array.from(read, ([, rows]) => Number(rows))) < 10, JSON.stringify(plan));
});

test("records that are files come in pages of one instant, and what changes meanwhile comes next", async () => {
  const url = await server.database(withTables);
  await using one = await machine(url);
  const { records } = await one.workspace.store!.open();
  const held = new Map<string, unknown>();
  const pages: number[] = [];
  let meanwhile = async () => {};
  const copy: RecordCopy = {
    name: "thing",
    kinds: ["thing"],
    path: join(one.path, ".svc/thing"),
    stamp: () => "",
    async apply(rows, whole) {
      assert.equal(whole, false);
      pages.push(rows.length);
      for (const { key, value } of rows) {
        if (value === undefined) held.delete(key);
        else held.set(key, value);
      }
      await meanwhile();
      meanwhile = async () => {};
    },
    entries: () => [],
    known: () => [...held.keys()].map((key) => ({ kind: "thing", key })),
  };
  const row = (key: unknown, value?: unknown) => ({ kind: "thing", key: `${key}`, value });
  await records.put(copy, Array.from({ length: 1050 }, (_, i) => row(i, "first")));
  held.set("stray", "not in the store");
  meanwhile = () => records.put(copy, [row(0), row(1049, "second"), row("new", "second")]);
  await records.pull(copy);
  assert.equal(held.size, 1050);
  assert.deepEqual([...new Set(held.values())], ["first"]);
  assert.ok(Math.max(...pages) <= 100, `${pages}`);
  pages.length = 0;
  await records.pull(copy);
  assert.deepEqual(pages, [3, 0], "what was read once is not read again");
  assert.deepEqual([held.size, held.has("0"), held.get("1049"), held.get("new")], [
    ...[1050, false, "second", "second"],
  ]);
});

test("a list of sessions is a page with the number of all", async () => {
  const url = await server.database(withTables);
  await using one = await machine(url);
  const { database, index } = await one.workspace.store!.open();
  await database.query(
    `INSERT INTO svc.sessions (project, name, id, created_at, role, job, parent_id, first_prompt,
        turns, bytes, updated_at, open, last, removed)
      SELECT CASE WHEN i = 31 THEN 'farm' ELSE 'shop' END, 'ses_' || i, i, '', '', '', '', 'go', 1, 9,
        to_char(i, '00'), false, 1, i = 30 FROM generate_series(1, 31) AS i`,
  );
  const page = async (filter: SessionFilter) => {
    const { total, sessions } = await index.page(filter);
    return [total, sessions.map(({ name }) => Number(name.slice("ses_".length)))];
  };
  assert.deepEqual(await page({ limit: 2 }), [29, [29, 28]]);
  assert.deepEqual(await page({ limit: 10, offset: 20 }), [29, [9, 8, 7, 6, 5, 4, 3, 2, 1]]);
  assert.deepEqual(await page({ limit: 10, offset: 40 }), [29, []]);
  assert.deepEqual(await page({ limit: 0 }), [29, []]);
  assert.deepEqual(await page({ prefix: "ses_1", limit: 2 }), [11, [19, 18]]);
  assert.deepEqual(await page({ since: " 28" }), [2, [29, 28]]);
  assert.deepEqual(await page({ since: " 27", prefix: "ses_2", limit: 1 }), [3, [29]]);
  assert.deepEqual(await page({ prefix: "none" }), [0, []]);
});

test("a notification that svc has not sent, and a listener that fails, end nothing", async () => {
  const url = await server.database(withTables);
  await using one = await machine(url);
  const { database, events } = await one.workspace.store!.open();
  const heard: unknown[] = [];
  using _ = await events.on("thing", () => {
    throw new Error("another version sends other data");
  });
  using _1 = await events.on("thing", ({ key }) => heard.push(key));
  const [{ channel }] = await database.query<{ channel: string }>(
    "SELECT 'svc_' || left(encode(sha256('shop'), 'hex'), 16) AS channel",
  ) as [{ channel: string }];
  for (const text of ["no JSON", "null", "[]"]) {
    await database.query("SELECT pg_notify($1, $2)", [channel, text]);
  }
  await events.notify({ kind: "thing", key: "a" });
  await until(() => heard.length > 0);
  assert.deepEqual(heard, ["a"]);
});

test("events arrive when the store answers again after a first attempt that failed", async () => {
  const url = new URL(await server.database(withTables));
  const closed = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = closed.addr;
  closed.close();
  const behind = Number(url.port);
  url.port = `${port}`;
  const database = new Postgres({ connection: url.href, address: "", timeout: () => 0.2 });
  const events = new PostgresEvents("shop", database);
  const heard: unknown[] = [];
  const listen = () => events.on("thing", ({ key }) => heard.push(key));
  await assert.rejects(listen(), { code: "store_unreachable" });
  const listener = Deno.listen({ hostname: "127.0.0.1", port });
  const serve = async () => {
    for await (const client of listener) {
      const to = await Deno.connect({ hostname: "127.0.0.1", port: behind });
      client.readable.pipeTo(to.writable).catch(() => {});
      to.readable.pipeTo(client.writable).catch(() => {});
    }
  };
  const serving = serve();
  using _ = await listen();
  await events.notify({ kind: "thing", key: "a" });
  await until(() => heard.length > 0);
  assert.deepEqual(heard, ["a"]);
  await database.close();
  listener.close();
  await serving.catch(() => {});
});

test("a change that the store has is made once, also when the copy cannot be written", async () => {
  const url = await server.database(withTables);
  await using one = await machine(url);
  const store = await one.workspace.store!.open();
  let full = false;
  const applied: unknown[] = [];
  const copy: RecordCopy = {
    name: "thing",
    kinds: ["thing"],
    path: join(one.path, ".svc/thing"),
    stamp: () => "",
    apply(rows) {
      const more = rows.some(({ key }) => !applied.includes(key));
      if (full && more) throw new SvcError("registry_write", "no space left on device");
      applied.push(...rows.map(({ key }) => key));
    },
    entries: () => [],
    keep: () => {},
  };
  const add = (key: string) =>
    store.records.change(copy, () => ({ rows: [{ kind: "thing", key, value: 1 }], result: key }));
  await add("a");
  full = true;
  assert.equal(await add("b"), "b"); // an error would say that nothing was written
  assert.deepEqual(await store.records.get("thing", "b"), 1);
  await assert.rejects(add("c"), { code: "registry_write" });
  assert.equal(await store.records.get("thing", "c"), undefined);
  full = false;
  await store.records.pull(copy);
  assert.ok(applied.includes("b"));
});

/** A proxy in front of the server that cuts a connection once, in place of passing on what the server sends. */
function cuttingProxy(
  server: number,
): Disposable & { port: number; cutAt?: (bytes: string) => boolean } {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const proxy: ReturnType<typeof cuttingProxy> = {
    port: listener.addr.port,
    [Symbol.dispose]: () => listener.close(),
  };
  const serve = async (client: Deno.TcpConn) => {
    const behind = await Deno.connect({ hostname: "127.0.0.1", port: server });
    const close = () => {
      for (const each of [client, behind]) {
        try {
          each.close();
        } catch { /* it is closed already */ }
      }
    };
    client.readable.pipeTo(behind.writable).catch(() => {}).finally(close);
    try {
      const writer = client.writable.getWriter();
      for await (const bytes of behind.readable) {
        if (proxy.cutAt?.(new TextDecoder("latin1").decode(bytes))) {
          proxy.cutAt = undefined;
          break;
        }
        await writer.write(bytes);
      }
    } catch {
      /* the client is gone */
    } finally {
      close();
    }
  };
  (async () => {
    for await (const client of listener) serve(client).catch(() => {});
  })().catch(() => {});
  return proxy;
}
