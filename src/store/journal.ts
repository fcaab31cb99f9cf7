import type {
  Answer,
  Database,
  Events,
  Journal,
  JournalRow,
  JournalState,
  Lease,
  Query,
  SessionContent,
  SessionFilter,
  SessionIndex,
  SessionSummary,
} from "./port.ts";

/** Rows that are read at a time. */
const ROWS = 200;
/** Contents that are read at a time. */
const CONTENTS = 8;
/** Bytes of the newest contents that are kept of a session, by the beginning of their names. */
const NEWEST = { "result/": 8 * 1024 * 1024, "kept/": 16 * 1024 * 1024 };

/** Sessions as rows: their operations in order, and the index that lists use. */
export class PostgresJournal implements Journal, SessionIndex {
  readonly #project: string;
  readonly #database: Database;
  readonly #events: Events;

  constructor(project: string, database: Database, events: Events) {
    this.#project = project;
    this.#database = database;
    this.#events = events;
  }

  async append(
    session: string,
    lease: Lease,
    { after, rows, entry, contents = [] }: Parameters<Journal["append"]>[2],
  ): Promise<boolean> {
    const { head, turns, updated_at, bytes, open, first_prompt = "", answers } = entry;
    const { id = "", created_at = "", role = "", job = "", parent_id = "" } = head ?? {};
    const texts = [id, created_at, role, job, parent_id, first_prompt, updated_at].map(storable);
    return await this.#write(session, lease, async (query) => {
      const own = [this.#project, session];
      const written = contents.map(({ name, content }) =>
        query(
          `INSERT INTO svc.contents (project, session, name, seq, content)
            VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
          [...own, name, after + 1, content],
        )
      );
      for (const [kind, most] of Object.entries(NEWEST)) {
        if (!contents.some(({ name }) => name.startsWith(kind))) continue;
        written.push(query(
          `DELETE FROM svc.contents WHERE project = $1 AND session = $2
            AND starts_with(name, $3) AND seq < (SELECT min(seq) FROM (
              SELECT seq, sum(length(content)) OVER (ORDER BY seq DESC, name) AS size
                FROM svc.contents
                WHERE project = $1 AND session = $2 AND starts_with(name, $3)
            ) AS newest WHERE size <= ${most})`,
          [...own, kind],
        ));
      }
      if (rows.length > 0) {
        written.push(
          query(
            `INSERT INTO svc.journal (project, session, seq, token, record, position)
            SELECT $1, $2, $3 + n, $4, record, position
            FROM unnest($5::text[], $6::text[]) WITH ORDINALITY AS rows (record, position, n)`,
            [
              ...own,
              after,
              lease.token,
              rows.map(({ record }) => record),
              rows.map(({ position }) => position),
            ],
          ),
          query(
            `INSERT INTO svc.sessions AS known (project, name, last, turns, bytes, open,
              id, created_at, role, job, parent_id, first_prompt, updated_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
            ON CONFLICT (project, name) DO UPDATE SET
              removed = false, last = excluded.last, turns = excluded.turns, bytes = excluded.bytes,
              open = excluded.open, updated_at = excluded.updated_at,
              ${head === undefined ? LATER : FIRST}`,
            [...own, after + rows.length, turns, bytes, open, ...texts],
          ),
        );
      }
      if (answers.length > 0) {
        written.push(query(
          `UPDATE svc.answers SET appended = true
            WHERE project = $1 AND session = $2 AND marker = ANY($3)`,
          [...own, answers],
        ));
      }
      const waiting = query<{ waiting: boolean }>(`SELECT ${WAITING} AS waiting`, own);
      await Promise.all([...written, waiting]);
      return (await waiting)[0]!.waiting;
    });
  }

  async find(session: string, position: string): Promise<JournalState> {
    const [row] = await this.#database.query<JournalState>(
      `SELECT last, removed, ${WAITING} AS waiting, found, EXISTS (SELECT FROM svc.contents
          WHERE project = $1 AND session = $2 AND seq > found AND seq <= last) AS contents
        FROM (SELECT last, removed, coalesce((
          SELECT seq FROM svc.journal
            WHERE project = $1 AND session = $2 AND position = $3 AND position <> ''
            ORDER BY seq DESC LIMIT 1), 0) AS found
        FROM svc.sessions WHERE project = $1 AND name = $2) AS known`,
      [this.#project, session, position],
    );
    return row ?? { last: 0, found: 0, removed: false, waiting: false, contents: false };
  }

  async *contents(session: string, after: number, last: number): AsyncGenerator<SessionContent> {
    for (let [seq, name] = [after + 1, ""];;) {
      const rows = await this.#database.query<SessionContent & { seq: number }>(
        `SELECT seq, name, content FROM svc.contents
          WHERE project = $1 AND session = $2 AND (seq, name) > ($3, $4) AND seq <= $5
          ORDER BY seq, name LIMIT ${CONTENTS}`,
        [this.#project, session, seq, name, last],
      );
      yield* rows;
      if (rows.length < CONTENTS) return;
      ({ seq, name } = rows.at(-1)!);
    }
  }

  async *read(session: string, after: number, last: number): AsyncGenerator<JournalRow> {
    while (true) {
      const rows = await this.#database.query<JournalRow>(
        `SELECT seq, record, position FROM svc.journal
          WHERE project = $1 AND session = $2 AND seq > $3 AND seq <= $4
          ORDER BY seq LIMIT ${ROWS}`,
        [this.#project, session, after, last],
      );
      yield* rows;
      if (rows.length < ROWS) return;
      after = rows.at(-1)!.seq;
    }
  }

  async remove(session: string, lease: Lease): Promise<void> {
    await this.#write(session, lease, async (query) => {
      const values = [this.#project, session];
      await Promise.all([
        query("DELETE FROM svc.journal WHERE project = $1 AND session = $2", values),
        query("DELETE FROM svc.contents WHERE project = $1 AND session = $2", values),
        query("DELETE FROM svc.answers WHERE project = $1 AND session = $2", values),
        query(
          "UPDATE svc.sessions SET removed = true, last = 0 WHERE project = $1 AND name = $2",
          values,
        ),
      ]);
    });
  }

  async answer(session: string, { marker, text }: Answer): Promise<string | undefined> {
    const [row] = await this.#database.transaction((query) =>
      query<{ text: string }>(
        `INSERT INTO svc.answers AS known (project, session, marker, text)
          SELECT project, name, $3, $4 FROM svc.sessions
            WHERE project = $1 AND name = $2 AND NOT removed
          ON CONFLICT (project, session, marker) DO UPDATE SET marker = known.marker
          RETURNING text`,
        [this.#project, session, marker, storable(text)],
      )
    );
    return row?.text;
  }

  async waiting(session: string): Promise<Answer[]> {
    return await this.#database.query<Answer>(
      `SELECT marker, text FROM svc.answers
        WHERE project = $1 AND session = $2 AND NOT appended ORDER BY marker`,
      [this.#project, session],
    );
  }

  async named(id: string): Promise<string[]> {
    const rows = await this.#database.query<{ name: string }>(
      "SELECT name FROM svc.sessions WHERE project = $1 AND id = $2",
      [this.#project, id],
    );
    return rows.map(({ name }) => name);
  }

  async names(): Promise<string[]> {
    const rows = await this.#database.query<{ name: string }>(
      "SELECT name FROM svc.sessions WHERE project = $1 AND NOT removed ORDER BY name",
      [this.#project],
    );
    return rows.map(({ name }) => name);
  }

  async newest(): Promise<string> {
    const [row] = await this.#database.query<{ newest: string }>(
      `SELECT name || ' ' || updated_at AS newest FROM svc.sessions
        WHERE project = $1 AND NOT removed ORDER BY updated_at DESC, name DESC LIMIT 1`,
      [this.#project],
    );
    return row?.newest ?? "";
  }

  async page(
    { prefix = "", since = "", limit, offset = 0 }: SessionFilter,
  ): ReturnType<SessionIndex["page"]> {
    const values: unknown[] = [this.#project];
    const given = (condition: (value: string) => string, value: unknown) =>
      value ? ` AND ${condition(`$${values.push(value)}`)}` : "";
    // Without what is not asked for, PostgreSQL counts in the index alone.
    const chosen = "project = $1 AND NOT removed" +
      given((value) => `updated_at >= ${value}`, since) +
      given((value) => `starts_with(name, ${value})`, prefix);
    const rows = await this.#database.query<
      Omit<SessionSummary, "worker"> & { worker: string | null }
    >(
      `SELECT name, first_prompt, turns, created_at, updated_at, bytes, role, job, parent_id,
          CASE WHEN open THEN (SELECT holder FROM svc.leases WHERE leases.project = $1
            AND leases.name = 'session/' || sessions.name AND expires > clock_timestamp()) END AS worker
        FROM svc.sessions WHERE ${chosen} ORDER BY updated_at DESC, name DESC
        LIMIT $${values.length + 1} OFFSET $${values.length + 2}`,
      [...values, limit ?? null, offset],
    );
    const sessions = rows.map(({ worker, ...session }) => {
      const running = worker !== null;
      return { ...session, running, ...running && { worker } };
    });
    const isLast = sessions.length < (limit ?? Infinity) && (sessions.length > 0 || offset === 0);
    if (isLast) return { total: offset + sessions.length, sessions };
    const [count] = await this.#database.query<{ total: number }>(
      `SELECT count(*) AS total FROM svc.sessions WHERE ${chosen}`,
      values,
    );
    return { total: count!.total, sessions };
  }

  /** Writes on behalf of the lease, and tells those who follow the session. */
  async #write<T>(
    session: string,
    { name, token }: Lease,
    work: (query: Query) => Promise<T>,
  ): Promise<T> {
    return await this.#database.transaction(async (query) => {
      // Sent together: nothing is written where the fence refuses.
      const [, result] = await Promise.all([
        query("SELECT svc.fence($1, $2, $3)", [this.#project, name, token]),
        work(query),
        this.#events.notify({ kind: "session", key: session }, query),
      ]);
      return result;
    });
  }
}

/** What the first rows of a session set, and what later ones may add. */
const FIRST = ["id", "created_at", "role", "job", "parent_id", "first_prompt"]
  .map((name) => `${name} = excluded.${name}`).join();
const LATER = "first_prompt = coalesce(nullif(known.first_prompt, ''), excluded.first_prompt)";

/** Whether answers wait for the session of a query. */
const WAITING = `EXISTS (SELECT FROM svc.answers
  WHERE answers.project = $1 AND answers.session = $2 AND NOT appended)`;

/** PostgreSQL has no U+0000 in texts. */
function storable(text: string): string {
  return text.replaceAll("\0", "\ufffd").toWellFormed();
}
