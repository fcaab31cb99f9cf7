import { systemClock } from "../platform/clock.ts";
import { PostgresQueue } from "./boss.ts";
import { PostgresEvents } from "./events.ts";
import { PostgresJournal } from "./journal.ts";
import { PostgresLeases } from "./leases.ts";
import { workerName } from "./link.ts";
import { checkSchema } from "./migrations.ts";
import type { SharedStore } from "./port.ts";
import { Postgres } from "./postgres.ts";
import { PostgresRecords } from "./records.ts";
import { PostgresRequests } from "./requests.ts";

export interface StoreOptions {
  /** A `postgres://` URL, with the password if there is one. */
  connection: string;
  /** The same without the password. */
  address: string;
  project: string;
  /** `<worktree>/.svc` */
  state: string;
  /** The setting `store_timeout`. */
  timeout: () => number;
  /** The setting `project_concurrency`. Default: no limit. */
  most?: () => number;
  warn: (message: string) => void;
}

/** How many entries a project has of each kind. */
export type Counts = Record<
  "sessions" | "jobs" | "asks" | "runs" | "memories" | "requests",
  number
>;

/** The store of a project in PostgreSQL. */
export class PostgresStore implements SharedStore {
  readonly address: string;
  readonly project: string;
  readonly database: Postgres;
  readonly events: PostgresEvents;
  readonly leases: PostgresLeases;
  readonly records: PostgresRecords;
  readonly requests: PostgresRequests;
  readonly queue: PostgresQueue;
  readonly journal: PostgresJournal;
  readonly index: PostgresJournal;

  constructor({ connection, address, project, state, timeout, most, warn }: StoreOptions) {
    this.address = address;
    this.project = project;
    this.database = new Postgres({ connection, address, timeout });
    this.events = new PostgresEvents(project, this.database);
    this.leases = new PostgresLeases(project, workerName(), this.database, this.events);
    this.records = new PostgresRecords(project, state, this.database, this.events);
    this.requests = new PostgresRequests(project, state, this.database);
    const { database, events } = this;
    this.queue = new PostgresQueue({ database, events, project, clock: systemClock, warn, most });
    this.journal = this.index = new PostgresJournal(project, database, events);
  }

  /**
   * Checks the schema.
   *
   * @returns the id of the store
   * @throws SvcError `store_schema` (exit 2)
   */
  check(): Promise<string> {
    return checkSchema(this.database.query, this.address);
  }

  /** How many entries the store has of the project. */
  async counts(): Promise<Counts> {
    const [row] = await this.database.query(
      `SELECT
        (SELECT count(*) FROM svc.sessions WHERE project = $1 AND NOT removed) AS sessions,
        ${
        ["job", "ask", "run", "memory"].map((kind) =>
          `(SELECT count(*) FROM svc.records
            WHERE project = $1 AND kind = '${kind}' AND value IS NOT NULL) AS ${kind}`
        )
      },
        (SELECT count(*) FROM svc.requests WHERE project = $1) AS requests`,
      [this.project],
    );
    const { sessions, job: jobs, ask: asks, run: runs, memory: memories, requests } = row!;
    return { sessions, jobs, asks, runs, memories, requests };
  }

  /** Whether the store has anything of the project. */
  async hasProject(): Promise<boolean> {
    return Object.values(await this.counts()).some((count) => count > 0);
  }

  async close(): Promise<void> {
    await this.queue.close();
    await this.leases.close();
    await this.database.close();
  }
}
