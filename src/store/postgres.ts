// @ts-types="./pg.d.ts"
import pg from "pg";
import type { Client, Config, Pool, Pooled, QueryResult } from "./pg.d.ts";
import { systemClock } from "../platform/clock.ts";
import { errorMessage, SvcError } from "../platform/error.ts";
import { leaseLost } from "./leases.ts";
import type { Database, Query, Row } from "./port.ts";

/** Connections of one process at most, besides the one that listens. */
const CONNECTIONS = 4;
/** Milliseconds that one attempt to connect may take. */
const CONNECTING = 10_000;
/** Milliseconds after which PostgreSQL ends a transaction whose machine stands still, with its locks. */
const STANDING = 10_000;
/** Locks a name until the transaction ends. */
export const LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
/** Milliseconds between two attempts: the first, and the longest. */
const BACKOFF = [50, 2000] as const;
/** Type ids of PostgreSQL that are read as numbers: `bigint`. */
const BIGINT = 20;

export interface PostgresOptions {
  /** A `postgres://` URL, with the password if there is one. `pg` reads what it leaves out from `PG*` variables. */
  connection: string;
  /** The same without the password, for errors. */
  address: string;
  /** Seconds for which a store that cannot be reached is tried again; read at every use. */
  timeout: () => number;
}

/** What a listening connection tells. */
export interface Listener {
  /** A notification of the channel. */
  notified(payload: string): void;
  /** The connection was made again: notifications may have been missed. */
  resumed(): void;
}

/**
 * A connection. It has a listener for errors as long as it lives: `pg` emits one also while nothing uses it, for example
 * in the moment between the end of its start and the first statement, and an error without a listener ends the process.
 */
class Connection extends pg.Client {
  /** Names it in `svc.commits`. */
  readonly id = crypto.randomUUID();
  /** How many transactions it was to commit. */
  commits = 0;

  constructor(config?: Config) {
    super(config);
    this.on("error", () => {});
  }
}

/** Connections to one database of a PostgreSQL server. */
export class Postgres implements Database {
  readonly #options: PostgresOptions;
  readonly #config: Config;
  readonly #pool: Pool<Connection>;
  readonly #closed = new AbortController();
  readonly #listening = new Map<string, Set<Listener>>();
  #listen: Promise<Client> | undefined;

  constructor(options: PostgresOptions) {
    this.#options = options;
    this.#config = {
      connectionString: options.connection,
      application_name: "svc",
      keepAlive: true,
      connectionTimeoutMillis: CONNECTING,
      query_timeout: options.timeout() * 1000,
      idle_in_transaction_session_timeout: STANDING,
      pipeline: true,
      types: {
        getTypeParser: (id: number, format?: string) =>
          id === BIGINT ? Number : pg.types.getTypeParser(id, format),
      },
    };
    this.#pool = new pg.Pool<Connection>({
      ...this.#config,
      Client: Connection,
      max: CONNECTIONS,
      idleTimeoutMillis: 30_000,
    });
    this.#pool.on("error", () => {}); // an idle connection was lost: the next use makes another
  }

  query: Query = (text, values) => this.#query(text, values, /^\s*SELECT\b/i.test(text));

  async transaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
    return await this.#retrying(async () => {
      const client = await this.#pool.connect();
      const query: Query = async <R extends Row>(text: string, values?: unknown[]) =>
        rowsOf<R>(await client.query(text, values));
      return await this.#using(client, async () => {
        // Sent together with the first statement of the work: nothing waits for the answer.
        const began = client.query("BEGIN");
        began.catch(() => {});
        try {
          const result = await work(query);
          await began;
          await client.query(`${commit(client.id, ++client.commits)}; COMMIT`).catch(
            async (error) => {
              if (!isLost(error) || !await this.#committed(client)) throw error;
            },
          );
          return result;
        } catch (error) {
          if (!isLost(error)) await client.query("ROLLBACK").catch(() => {});
          throw error;
        }
      });
    });
  }

  /** Whether the server answers now. */
  async answers(): Promise<boolean> {
    try {
      const client = await this.#pool.connect();
      await this.#using(client, () => client.query("SELECT 1"));
      return true;
    } catch {
      return false;
    }
  }

  /** The version of the server, and the milliseconds of one question and its answer. */
  async server(): Promise<{ version: string; latency: number }> {
    const [row] = await this.query("SELECT current_setting('server_version') AS version");
    const began = performance.now();
    await this.query("SELECT 1");
    const latency = Math.round((performance.now() - began) * 10) / 10;
    return { version: row!.version, latency };
  }

  /** Connects once, without trying again. @throws SvcError `store_unreachable`, `store_refused` (exit 2) */
  async check(): Promise<void> {
    try {
      const client = await this.#pool.connect();
      client.release();
    } catch (error) {
      throw this.#failure(error, 2);
    }
  }

  /** Listens to a channel until the result is disposed of. Notifications after this resolves are not missed. */
  async listen(channel: string, listener: Listener): Promise<Disposable> {
    const known = this.#listening.get(channel);
    const listeners = known ?? new Set();
    listeners.add(listener);
    this.#listening.set(channel, listeners);
    try {
      const client = await this.#retrying(() => this.#listen ??= this.#startListening());
      if (known === undefined) await client.query(`LISTEN ${channel}`);
    } catch (error) {
      if (known === undefined) this.#listening.delete(channel); // the next call asks again
      throw error;
    }
    return { [Symbol.dispose]: () => listeners.delete(listener) };
  }

  async close(): Promise<void> {
    this.#closed.abort();
    const listen = await this.#listen?.catch(() => undefined);
    await listen?.end().catch(() => {});
    await this.#pool.end();
  }

  async #using<T>(client: Pooled<Connection>, work: () => Promise<T>): Promise<T> {
    let lost = false;
    const failed = () => lost = true;
    client.on("error", failed);
    try {
      return await work();
    } catch (error) {
      lost ||= isLost(error);
      throw error;
    } finally {
      client.removeListener("error", failed);
      client.release(lost);
    }
  }

  /** Whether the last transaction of a connection was committed, whose COMMIT got no answer. Waits while it runs. */
  async #committed({ id, commits }: Connection): Promise<boolean> {
    const [row] = await this.#query(
      `INSERT INTO svc.commits AS known (connection, number) VALUES ($1, 0)
        ON CONFLICT (connection) DO UPDATE SET number = known.number RETURNING number`,
      [id],
      true,
    );
    return row!.number === commits;
  }

  async #query<R extends Row>(text: string, values?: unknown[], again = false): Promise<R[]> {
    return await this.#retrying(async (attempt) => {
      const client = await this.#pool.connect();
      return await this.#using(client, async () => {
        attempt.safe = again;
        try {
          return rowsOf<R>(await client.query(text, values));
        } catch (error) {
          // A text of several statements may have begun a transaction.
          if (!isLost(error)) await client.query("ROLLBACK").catch(() => {});
          throw error;
        }
      });
    });
  }

  /** Does a piece of work again after a lost connection or a conflict, until the time is over. */
  async #retrying<T>(work: (attempt: { safe: boolean }) => Promise<T>): Promise<T> {
    const end = performance.now() + this.#options.timeout() * 1000;
    for (let wait: number = BACKOFF[0];; wait = Math.min(2 * wait, BACKOFF[1])) {
      const attempt = { safe: true };
      try {
        return await work(attempt);
      } catch (error) {
        const again = attempt.safe && (isLost(error) || isConflict(error));
        if (!again || this.#closed.signal.aborted || performance.now() + wait > end) {
          throw this.#failure(error, 1);
        }
        await systemClock.sleep(wait, this.#closed.signal).catch(() => {});
      }
    }
  }

  /** A connection that notifications arrive on. When it is lost, it is made again, and listeners are told. */
  async #startListening(): Promise<Client> {
    const client = new Connection({ ...this.#config, query_timeout: undefined });
    try {
      await client.connect();
    } catch (error) {
      this.#listen = undefined;
      throw error;
    }
    client.on("notification", ({ channel, payload = "" }) => {
      for (const listener of [...this.#listening.get(channel) ?? []]) listener.notified(payload);
    });
    client.on("end", () => {
      this.#listen = undefined;
      if (!this.#closed.signal.aborted) this.#listenAgain();
    });
    return client;
  }

  async #listenAgain(): Promise<void> {
    const { signal } = this.#closed;
    for (let wait: number = BACKOFF[0]; !signal.aborted; wait = Math.min(2 * wait, BACKOFF[1])) {
      try {
        const client = await (this.#listen ??= this.#startListening());
        for (const channel of this.#listening.keys()) await client.query(`LISTEN ${channel}`);
        for (const listeners of this.#listening.values()) {
          for (const listener of [...listeners]) listener.resumed();
        }
        return;
      } catch {
        await systemClock.sleep(wait, signal).catch(() => {});
      }
    }
  }

  /** An error for people: with the host, and never the password. */
  #failure(error: unknown, exit: 1 | 2): unknown {
    if (error instanceof SvcError) return error;
    const { address } = this.#options;
    const code = codeOf(error);
    if (code === "SV001") {
      return leaseLost(/lease (.*) was lost/.exec(errorMessage(error))?.[1] ?? "its work");
    }
    if (isLost(error)) {
      return new SvcError(
        "store_unreachable",
        `The store ${address} cannot be reached: ${reasonOf(error)}.`,
        { hint: "Check that PostgreSQL runs there, and the setting store.", exit },
      );
    }
    if (isRefusal(error)) {
      return new SvcError("store_refused", `The store ${address} refuses: ${reasonOf(error)}.`, {
        hint:
          "The password is that of svc store password, of SVC_STORE, PGPASSWORD or PGPASSWORD_FILE.",
        exit: 2,
      });
    }
    return error;
  }
}

/**
 * The statement that notes a transaction as the last one of its connection, if it has written anything. Its id would not
 * do: after a crash of PostgreSQL, which forgets transactions that were not committed, another one can have the same.
 */
function commit(connection: string, number: number): string {
  return `INSERT INTO svc.commits AS known (connection, number)
    SELECT '${connection}', ${number} WHERE pg_current_xact_id_if_assigned() IS NOT NULL
    ON CONFLICT (connection) DO UPDATE SET number = excluded.number, at = excluded.at`;
}

/** The rows of a statement, or of all statements of a text. */
function rowsOf<R>(results: QueryResult | QueryResult[]): R[] {
  return [results].flat().flatMap(({ rows }) => rows);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** Operating system errors, and classes of SQLSTATE, that say the connection is lost or cannot be made now. */
const LOST =
  /^(E(CONN\w+|PIPE|TIMEDOUT|NOTFOUND|HOSTUNREACH|NETUNREACH|AI_AGAIN|HOSTDOWN|ADDRNOTAVAIL)|08\w{3}|57P0[1235]|53300|25P03)$/;
/** What `pg` says, without a code, of a connection that is gone. */
const GONE =
  /Connection terminated|connection error and is not queryable|not queryable|timeout exceeded when trying to connect|Query read timeout|timeout expired|Client was closed/i;

function isLost(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isLost);
  if (error instanceof SvcError) return false;
  const code = codeOf(error);
  return code === "" ? GONE.test(errorMessage(error)) : LOST.test(code);
}

/** A serialization failure or a deadlock: the same work succeeds later. */
function isConflict(error: unknown): boolean {
  return ["40001", "40P01"].includes(codeOf(error));
}

/** The user, the password, the database or a right is refused. */
function isRefusal(error: unknown): boolean {
  return /^(28\w{3}|3D000|42501)$/.test(codeOf(error)) ||
    /SASL|password/i.test(errorMessage(error));
}

function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return reasonOf(error.errors[0]);
  return errorMessage(error).replace(
    /^SASL: SCRAM-SERVER-FIRST-MESSAGE: .*must be a .*string/,
    "it asks for a password",
  )
    .replace(/\.$/, "");
}
