import { join } from "node:path";
import { jsonOr, makeFolder, mintId, readTextIfExists, withFileLock } from "../platform/files.ts";
import type { Database, Decision, Events, Query, RecordCopy, RecordRow, Records } from "./port.ts";
import { LOCK } from "./postgres.ts";

/** Days for which the removal of a record is kept. A copy that is older is read anew. */
const KEPT = 30;
const STALE = 20;
/** Rows that are read at a time. */
const PAGE = 100;

/**
 * The rows of kinds ($2) that a copy lacks, or all of them. The condition on `xid` is one that PostgreSQL finds in an
 * index. Rows of a backup may have ids of transactions that are yet to come here: they come with all of them.
 */
export const CHANGED =
  `SELECT cursor, next, at, origin, whole, kind, key, value, xid::text::bigint FROM (
    SELECT *, CASE WHEN whole THEN '0' ELSE $3 END::xid8 AS since,
      CASE WHEN whole THEN '18446744073709551615' ELSE next::text END::xid8 AS before FROM (
      SELECT *, $3 = '0' OR $5 <> origin OR $4::timestamptz < now() - interval '${STALE} days' AS whole
      FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS cursor,
        pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next, now()::text AS at,
        (SELECT xmin::text FROM svc.store) AS origin) AS asked
    ) AS asked
  ) AS asked LEFT JOIN svc.records ON project = $1 AND kind = ANY($2) AND xid >= since
    AND xid < before AND (value IS NOT NULL OR NOT whole)
  ORDER BY place`;

/** How far a copy has followed the records: `.svc/store/<name>.json`. */
interface Position {
  /** All transactions before this one are in the copy, or have written nothing. */
  cursor: string;
  /** `RecordCopy.stamp` when it was written. */
  stamp: string;
  /** When it was written, by PostgreSQL's clock. */
  at: string;
  /** The transaction that wrote the row of the store, by `svc store migrate` or from a backup: numbers begin anew. */
  origin: string;
}

/** Records as rows of the table `svc.records`, and their copies in files. */
export class PostgresRecords implements Records {
  /** In the events of changes that were made here: these copies have them. */
  readonly id = mintId();
  readonly #project: string;
  /** `<worktree>/.svc/store` */
  readonly #folder: string;
  readonly #database: Database;
  readonly #events: Events;
  /** The versions of rows that a copy has and the next read may bring again, by its name: they are not written again. */
  readonly #applied = new Map<string, Set<string>>();

  constructor(project: string, state: string, database: Database, events: Events) {
    this.#project = project;
    this.#folder = join(state, "store");
    this.#database = database;
    this.#events = events;
  }

  async change<T>(
    copy: RecordCopy,
    decide: () => Decision<T> | Promise<Decision<T>>,
  ): Promise<T> {
    return await withFileLock(copy.path, async () => {
      const { rows, result, written } = await this.#database.transaction(async (query) => {
        // Two statements, so that the second sees what the holder before has committed.
        await Promise.all([
          query(LOCK, [
            `svc.records ${copy.name} ${this.#project}`,
          ]),
          this.#follow(copy, query),
        ]);
        const decided = await decide();
        if (decided.rows.length > 0) await this.#write(copy, decided.rows, query);
        return decided;
      });
      if (rows.length > 0) {
        try {
          await copy.apply(rows, false);
          this.#save(copy, { ...this.#position(copy)!, stamp: copy.stamp() });
        } catch {
          // The store has them, so that an error would have them made again. The next read brings them.
        }
      }
      written?.();
      return result;
    });
  }

  async pull(copy: RecordCopy): Promise<void> {
    await withFileLock(
      copy.path,
      () => this.#database.transaction((query) => this.#follow(copy, query)),
    );
  }

  async get(kind: string, key: string): Promise<unknown> {
    const [row] = await this.#database.query(
      "SELECT value FROM svc.records WHERE project = $1 AND kind = $2 AND key = $3",
      [this.#project, kind, key],
    );
    return row?.value ?? undefined;
  }

  async add({ kind, key, value }: RecordRow): Promise<void> {
    await this.#database.transaction((query) =>
      query(
        `INSERT INTO svc.records (project, kind, key, value) VALUES ($1, $2, $3, $4)
          ON CONFLICT DO NOTHING`,
        [this.#project, kind, key, JSON.stringify(value)],
      )
    );
  }

  async take(kind: string, prefix: string): Promise<unknown[]> {
    const rows = await this.#database.transaction((query) =>
      query(
        `WITH taken AS (
          DELETE FROM svc.records WHERE project = $1 AND kind = $2 AND starts_with(key, $3)
          RETURNING value, place
        ) SELECT value FROM taken ORDER BY place`,
        [this.#project, kind, prefix],
      )
    );
    return rows.map(({ value }) => value);
  }

  /** Writes rows whatever the copy has: for an import. */
  async put(copy: RecordCopy, rows: RecordRow[]): Promise<void> {
    await this.#database.transaction((query) => this.#write(copy, rows, query));
  }

  /** How many records of a copy's kinds there are. */
  async count(kinds: readonly string[]): Promise<number> {
    const [row] = await this.#database.query<{ count: number }>(
      `SELECT count(*) AS count FROM svc.records
        WHERE project = $1 AND kind = ANY($2) AND value IS NOT NULL`,
      [this.#project, kinds],
    );
    return row!.count;
  }

  /** Removes what is kept of records that were removed long ago, and of connections. */
  async clean(): Promise<void> {
    await this.#database.query("DELETE FROM svc.commits WHERE at < now() - interval '1 day'");
    await this.#database.query(
      `DELETE FROM svc.records
        WHERE value IS NULL AND changed_at < now() - interval '${KEPT} days'`,
    );
  }

  /**
   * Writes the rows that the copy may lack into it. A transaction that runs now may commit rows later, and so the next
   * read begins with the oldest of these: rows may come twice. It begins at the latest with the first transaction after
   * those that were read: PostgreSQL gives the ids of transactions that have written nothing once more after a crash.
   *
   * @param query that of a transaction, whose cursor shows the records of one instant in pages
   */
  async #follow(copy: RecordCopy, query: Query): Promise<void> {
    const known = this.#position(copy);
    const isAsLeft = known !== undefined && known.stamp === copy.stamp();
    const cursor = isAsLeft ? known.cursor : "0";
    const next = () => query(`FETCH ${PAGE} FROM changed`);
    const [, first] = await Promise.all([
      query(`DECLARE changed NO SCROLL CURSOR FOR ${CHANGED}`, [
        this.#project,
        copy.kinds,
        cursor,
        known?.at ?? "-infinity",
        known?.origin ?? "",
      ]),
      next(),
    ]);
    const { cursor: oldest, next: future, at, origin, whole } = first[0]!;
    const applied = whole ? undefined : this.#applied.get(copy.name);
    const again = new Set<string>();
    const before = whole ? copy.known?.() ?? [] : [];
    const keys = new Set<string>();
    const gathered: RecordRow[] = [];
    let [last, found] = [0, 0];
    for (let page = first;; page = await next()) {
      const rows = page.flatMap(({ kind, key, value, xid }) => {
        if (kind === null) return [];
        found++;
        if (xid < future) last = Math.max(last, xid);
        const version = `${xid} ${kind} ${key}`;
        if (xid >= oldest && xid < future) again.add(version);
        return applied?.has(version) ? [] : [{ kind, key, value: value ?? undefined }];
      });
      if (copy.known === undefined) gathered.push(...rows);
      else if (rows.length > 0) await copy.apply(rows, false);
      if (whole) { for (const { key } of rows) keys.add(key); }
      if (page.length < PAGE) break;
    }
    const age = Date.parse(at) - Date.parse(known?.at ?? at);
    if (found === 0 && !whole && age < 86_400_000) return;
    if (copy.known !== undefined) {
      await copy.apply(before.filter(({ key }) => !keys.has(key)), false);
    } else {
      if (whole && !isAsLeft) {
        const entries = await copy.entries();
        const isNew = known === undefined && entries.length === 0;
        if (!isNew && !sameRecords(entries, gathered)) copy.keep?.();
      }
      if (whole || gathered.length > 0) await copy.apply(gathered, whole);
    }
    const position = found === 0 && !whole ? cursor : `${Math.min(oldest, last + 1)}`;
    this.#save(copy, { cursor: position, at, origin, stamp: copy.stamp() });
    this.#applied.set(copy.name, again);
  }

  async #write(copy: RecordCopy, rows: RecordRow[], query: Query): Promise<void> {
    const [implied, others] = [
      rows.filter((row) => row.implied),
      rows.filter((row) => !row.implied),
    ];
    const columns = (some: RecordRow[]) => [
      this.#project,
      some.map(({ kind }) => kind),
      some.map(({ key }) => key),
    ];
    const sent: Promise<unknown>[] = [];
    if (implied.length > 0) {
      sent.push(query(
        `DELETE FROM svc.records AS r USING unnest($2::text[], $3::text[]) AS given(kind, key)
          WHERE r.project = $1 AND r.kind = given.kind AND r.key = given.key`,
        columns(implied),
      ));
    }
    if (others.length > 0) {
      sent.push(query(
        `INSERT INTO svc.records AS r (project, kind, key, value)
          SELECT $1, kind, key, value::json
            FROM unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS g(kind, key, value, n)
            ORDER BY n
          ON CONFLICT (project, kind, key) DO UPDATE SET
            value = excluded.value, xid = excluded.xid, changed_at = excluded.changed_at,
            place = CASE WHEN r.value IS NULL THEN excluded.place ELSE r.place END`,
        [
          ...columns(others),
          others.map(({ value }) => value === undefined ? null : JSON.stringify(value)),
        ],
      ));
    }
    sent.push(this.#events.notify({ kind: copy.name, data: this.id }, query));
    await Promise.all(sent);
  }

  #position(copy: RecordCopy): Position | undefined {
    return jsonOr(readTextIfExists(this.#path(copy)) ?? "", undefined);
  }

  #save(copy: RecordCopy, position: Position): void {
    makeFolder(this.#folder);
    // Not synced: a copy with a broken position is read anew.
    Deno.writeTextFileSync(this.#path(copy), JSON.stringify(position) + "\n");
  }

  #path({ name }: RecordCopy): string {
    return join(this.#folder, `${name}.json`);
  }
}

function sameRecords(some: RecordRow[], others: RecordRow[]): boolean {
  if (some.length !== others.length) return false;
  const text = (rows: RecordRow[]) =>
    rows.map(({ kind, key, value }) => JSON.stringify([kind, key, value])).sort().join();
  return text(some) === text(others);
}
