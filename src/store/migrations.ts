import { SvcError, usageError } from "../platform/error.ts";
import type { Query, SharedStore } from "./port.ts";

/** A step of the schema. Steps that were released never change. */
export interface Migration {
  /** One phrase for people. */
  readonly name: string;
  readonly sql: string;
}

/** The steps in their order: the version of a schema is the number of its steps. */
export const MIGRATIONS: readonly Migration[] = [
  {
    name: "records, leases and requests",
    // A record is `json`, which keeps the text as it is: `jsonb` would sort its keys and refuse U+0000.
    sql: `
      CREATE TABLE svc.records (
        project text NOT NULL,
        kind text NOT NULL,
        key text NOT NULL,
        value json,
        place bigserial NOT NULL,
        xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
        changed_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (project, kind, key)
      );
      CREATE INDEX records_xid ON svc.records (project, kind, xid);
      CREATE INDEX records_removed ON svc.records (changed_at) WHERE value IS NULL;

      CREATE SEQUENCE svc.tokens;
      CREATE TABLE svc.leases (
        project text NOT NULL,
        name text NOT NULL,
        token bigint NOT NULL,
        holder text NOT NULL,
        expires timestamptz NOT NULL,
        PRIMARY KEY (project, name)
      );
      CREATE FUNCTION svc.fence(text, text, bigint) RETURNS void LANGUAGE plpgsql AS $$
      BEGIN
        PERFORM 1 FROM svc.leases WHERE project = $1 AND name = $2 AND token = $3 FOR SHARE;
        IF NOT FOUND THEN
          RAISE EXCEPTION 'the lease % was lost', $2 USING ERRCODE = 'SV001';
        END IF;
      END $$;

      CREATE TABLE svc.requests (
        seq bigserial PRIMARY KEY,
        project text NOT NULL,
        copy text NOT NULL,
        day text NOT NULL,
        line json NOT NULL
      );
      CREATE INDEX requests_project ON svc.requests (project, seq);
      CREATE INDEX requests_day ON svc.requests (project, day);
    `,
  },
  {
    name: "sessions",
    // A record is JSON as text, which keeps each character.
    sql: `
      CREATE TABLE svc.journal (
        project text NOT NULL,
        session text NOT NULL,
        seq int NOT NULL,
        token bigint NOT NULL,
        record text NOT NULL,
        position text NOT NULL,
        PRIMARY KEY (project, session, seq)
      );
      CREATE TABLE svc.sessions (
        project text NOT NULL,
        name text NOT NULL,
        id text NOT NULL,
        created_at text NOT NULL,
        role text NOT NULL,
        job text NOT NULL,
        parent_id text NOT NULL,
        first_prompt text NOT NULL,
        turns int NOT NULL,
        bytes bigint NOT NULL,
        updated_at text COLLATE "C" NOT NULL,
        open boolean NOT NULL,
        last int NOT NULL,
        removed boolean NOT NULL DEFAULT false,
        PRIMARY KEY (project, name)
      );
      CREATE INDEX sessions_newest ON svc.sessions (project, updated_at, name) WHERE NOT removed;
      CREATE INDEX sessions_id ON svc.sessions (project, id);
      CREATE TABLE svc.answers (
        project text NOT NULL,
        session text NOT NULL,
        marker text NOT NULL,
        text text NOT NULL,
        appended boolean NOT NULL DEFAULT false,
        PRIMARY KEY (project, session, marker)
      );
    `,
  },
  {
    name: "commits",
    // The last transaction of each connection: a COMMIT without an answer is looked up here.
    sql: `
      CREATE TABLE svc.commits (
        connection uuid PRIMARY KEY,
        number bigint NOT NULL,
        at timestamptz NOT NULL DEFAULT now()
      );
    `,
  },
  {
    name: "what sessions keep next to their logs",
    sql: `
      CREATE TABLE svc.contents (
        project text NOT NULL,
        session text NOT NULL,
        name text NOT NULL,
        seq int NOT NULL,
        content bytea NOT NULL,
        PRIMARY KEY (project, session, name)
      );
    `,
  },
];

/** Guards the schema: one process at a time changes it. */
const LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('svc.schema', 0))";

/** The version of the schema, 0 without one, and the id of the store. */
export async function schemaOf(query: Query): Promise<{ version: number; id: string }> {
  const [found] = await query("SELECT to_regclass('svc.store') IS NOT NULL AS present");
  if (!found!.present) return { version: 0, id: "" };
  const [row] = await query<{ version: number; id: string }>("SELECT version, id FROM svc.store");
  return row ?? { version: 0, id: "" };
}

/**
 * Brings the schema of a store to the version of this program, in one transaction.
 *
 * @returns the names of the steps that were missing
 * @throws SvcError `store_schema` (exit 2) for a schema of a newer program
 */
export async function migrate(
  { database, address }: Pick<SharedStore, "database" | "address">,
  steps: readonly Migration[] = MIGRATIONS,
): Promise<string[]> {
  return await database.transaction(async (query) => {
    await query(LOCK);
    const { version } = await schemaOf(query);
    refuseNewer(version, address, steps.length);
    if (version === 0) {
      await query("CREATE SCHEMA IF NOT EXISTS svc");
      await query(`CREATE TABLE svc.store (
        id uuid NOT NULL DEFAULT gen_random_uuid(), version int NOT NULL
      )`);
      await query("INSERT INTO svc.store (version) VALUES (0)");
    }
    const missing = steps.slice(version);
    for (const { sql } of missing) await query(sql);
    // After a backup was restored, this row and these numbers say so to machines that have followed the store further.
    await query("UPDATE svc.store SET version = $1", [steps.length]);
    for (const sequence of ["svc.requests_seq_seq", "svc.tokens"]) {
      await query("SELECT setval($1::regclass, nextval($1::regclass) + 1000000)", [sequence]);
    }
    return missing.map(({ name }) => name);
  });
}

/**
 * The id of a store whose schema is that of this program.
 *
 * @throws SvcError `store_schema` (exit 2)
 */
export async function checkSchema(query: Query, address: string): Promise<string> {
  const { version, id } = await schemaOf(query);
  refuseNewer(version, address, MIGRATIONS.length);
  if (version === MIGRATIONS.length) return id;
  const what = version === 0
    ? "has no tables of svc yet"
    : `has the tables of an earlier svc (version ${version}, this one needs ${MIGRATIONS.length})`;
  throw usageError("store_schema", `The store ${address} ${what}.`, "Run: svc store migrate");
}

function refuseNewer(version: number, address: string, own: number): void {
  if (version <= own) return;
  throw new SvcError(
    "store_schema",
    `The store ${address} has the tables of a newer svc: version ${version}, this one knows ${own}.`,
    { hint: "Update this svc.", exit: 2 },
  );
}
