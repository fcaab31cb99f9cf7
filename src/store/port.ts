/**
 * The types of the shared store: what several machines that work on one project share. Files are the default and need
 * none of it; PostgreSQL implements it (`postgres.ts`). Everything here is reached through {@linkcode StoreLink}, so
 * that nothing of the implementation is loaded before its first use.
 */

/** `Workspace.store`: the store that the setting `store` names. */
export interface StoreLink {
  /** `postgres://<user>@<host>:<port>/<database>`, never with a password. */
  readonly address: string;
  /** Names the rows of this worktree; several machines have the same project. */
  readonly project: string;
  /** This process, in records and lists: `<host>/<process id>`. */
  readonly worker: string;
  /**
   * The store, connected and its schema checked by the first call.
   *
   * @throws SvcError `store_unreachable`, `store_refused`, `store_schema`, `store_other` (exit 2)
   */
  open(): Promise<SharedStore>;
  /** Makes a copy known to `refresh` and `follow`. */
  register(copy: RecordCopy): void;
  /** Brings the registered copies up to date. */
  refresh(): Promise<void>;
  /** Keeps the registered copies up to date until the store is closed. */
  follow(): Promise<void>;
  /** Whether the store answers now; for `/ready`. Never throws. */
  answers(): Promise<boolean>;
  /** Closes the connections; a store that was never opened has none. */
  close(): Promise<void>;
}

/** An open store. All its parts read and write rows of one project only. */
export interface SharedStore {
  readonly address: string;
  readonly project: string;
  readonly database: Database;
  readonly records: Records;
  readonly leases: Leases;
  readonly events: Events;
  readonly requests: Requests;
  readonly queue: RunQueue;
  readonly journal: Journal;
  readonly index: SessionIndex;
}

// ---------------------------------------------------------------------------------------------- database

/** A row of a result; `bigint` columns are numbers, `jsonb` columns are values. */
// deno-lint-ignore no-explicit-any
export type Row = Record<string, any>;

/** Sends a statement with its values. */
export type Query = <R extends Row = Row>(text: string, values?: unknown[]) => Promise<R[]>;

export interface Database {
  /**
   * One statement outside of a transaction. It is sent again after the connection was lost only when it is a SELECT.
   *
   * @throws SvcError `store_unreachable` after `store_timeout`
   */
  query: Query;
  /**
   * Runs statements in one transaction and commits it. After a serialization failure or a lost connection, `work` runs
   * again in a new transaction, unless the first one was committed.
   *
   * @throws SvcError `store_unreachable` after `store_timeout`; `lease_lost` of `svc.fence`
   */
  transaction<T>(work: (query: Query) => Promise<T>): Promise<T>;
}

// ----------------------------------------------------------------------------------------------- records

/** An entry of a registry. The key is unique in its kind. Without a value the entry is removed. */
export interface RecordRow {
  kind: string;
  key: string;
  value?: unknown;
  /** Removes it without a trace, since the copies remove it as a consequence of the other rows. */
  implied?: true;
}

/** The copy of the records of some kinds in files of the worktree. */
export interface RecordCopy {
  /** Name of the copy, which is that of its main kind, for example `ask`. */
  readonly name: string;
  /** All kinds in the copy. */
  readonly kinds: readonly string[];
  /** The file whose lock guards the copy. */
  readonly path: string;
  /** Differs when the files may have been changed by something else. */
  stamp(): string;
  /** Writes rows into the files. `whole`: these are all records, and the copy has no others afterwards. */
  apply(rows: RecordRow[], whole: boolean): void | Promise<void>;
  /** All records of the files; none of a broken one. */
  entries(): RecordRow[] | Promise<RecordRow[]>;
  /** Keeps the files under other names: something else has changed or broken them. */
  keep?(): void;
  /**
   * The records that the files have. A copy that has it, since each of its records is a file, gets its rows in pages, and
   * none of them as `whole`: those that the store does not have are removed by rows too.
   */
  known?(): Pick<RecordRow, "kind" | "key">[];
}

/** The rows that a change writes, and what it returns. */
export interface Decision<T> {
  rows: RecordRow[];
  result: T;
  /** Called when the rows are written, before anything else can change the copy. */
  written?: () => void;
}

export interface Records {
  /**
   * Changes records: locks the kind of this project, brings the copy up to date, calls `decide`, which reads the copy and
   * returns the rows to write, commits them, and writes them into the copy. May call `decide` again after a lost
   * connection.
   *
   * @throws what `decide` throws, and nothing is written then; SvcError `store_unreachable`
   */
  change<T>(copy: RecordCopy, decide: () => Decision<T> | Promise<Decision<T>>): Promise<T>;
  /** Brings a copy up to date. */
  pull(copy: RecordCopy): Promise<void>;
  /** The value of one record, as it is in the store; undefined without one. */
  get(kind: string, key: string): Promise<unknown>;
  /** Adds a record that no copy has, unless there is one with its key. */
  add(row: RecordRow): Promise<void>;
  /** Removes records that no copy has, whose keys begin with a prefix, and returns their values in their order. */
  take(kind: string, prefix: string): Promise<unknown[]>;
}

// ------------------------------------------------------------------------------------------------ leases

/** A right that one holder in the project has at a time: to write a session, to run a job. */
export interface Lease {
  readonly name: string;
  /** Larger for each lease of the store that is taken. Writes on its behalf state it (`svc.fence`). */
  readonly token: number;
  /** Aborts with SvcError `lease_lost` when another holder took the lease over. */
  readonly lost: AbortSignal;
  release(): Promise<void>;
}

export interface Leases {
  /** Who holds leases taken here: `<host>/<process id>`, or the name of the worker. */
  readonly holder: string;
  /** Takes a lease, which is renewed until it is released; undefined while another holder has it. */
  take(name: string): Promise<Lease | undefined>;
  /** Takes a lease as soon as it is free. Rejects with the signal's reason when that aborts first. */
  wait(name: string, signal?: AbortSignal): Promise<Lease>;
  /** The leases that are held now and whose names begin with a prefix. */
  held(prefix: string): Promise<{ name: string; holder: string; token: number }[]>;
}

// ------------------------------------------------------------------------------------------------ events

/** Says that something changed; the content is read from its rows. */
export interface StoreEvent {
  kind: string;
  /** Undefined: any of the kind may have changed, since the connection was lost meanwhile. */
  key?: string;
  /** Small: an event has at most 8,000 bytes as JSON. */
  data?: unknown;
}

export interface Events {
  /**
   * Sends an event to all listeners of the project, this process among them.
   *
   * @param query that of a transaction: the event is sent when it commits
   */
  notify(event: StoreEvent, query?: Query): Promise<void>;
  /**
   * Calls `listener` for the events of a kind until the result is disposed of. After the connection was lost it is
   * called once without a key.
   */
  on(kind: string, listener: (event: StoreEvent) => void): Promise<Disposable>;
}

// ---------------------------------------------------------------------------------------------- requests

/** A line of the ledger, and the UTC day whose file has it. */
export interface RequestRow {
  day: string;
  line: unknown;
}

/** The requests to models of all machines. The files of the ledger are the copy. */
export interface Requests {
  /** Adds the lines that `take` returns; the files have them already. They are in the store when this resolves. */
  append(take: () => RequestRow[]): Promise<void>;
  /**
   * Runs `work` while no other process of any machine adds lines. The files are up to date when it runs.
   *
   * @param work gets the names of the processes that live (leases `live/<name>`), and returns the lines that it has
   * added to the files
   */
  exclusive<T>(
    work: (alive: ReadonlySet<string>) => { lines: RequestRow[]; result: T },
  ): Promise<T>;
  /** Removes the lines of the days before one. */
  clean(day: string): Promise<void>;
  /** Brings the files up to date. */
  pull(): Promise<void>;
}

// ----------------------------------------------------------------------------------------------- journal

/** An operation of a session as JSON text, and the position of a copy that has applied it. */
export interface JournalRow {
  seq: number;
  record: string;
  position: string;
}

/** What a session keeps next to its log. */
export interface SessionContent {
  /** Unique in the session. Of those that begin with `result/`, the newest are kept. */
  name: string;
  content: Uint8Array;
}

/** What the index has of a session after its newest row. */
export interface SessionRow {
  turns: number;
  /** ISO 8601 in UTC. */
  updated_at: string;
  bytes: number;
  /** Whether its last turn has not ended. */
  open: boolean;
  /** The beginning of the first prompt, where there is one among the rows. */
  first_prompt?: string;
  /** With the first row of a session. */
  head?: { id: string; created_at: string; role: string; job: string; parent_id: string };
  /** The markers of the answers that are among the rows. */
  answers: string[];
}

/** An answer that the next process that may append to the session appends to it. */
export interface Answer {
  /** Begins the text, and identifies the answer in its session. */
  marker: string;
  text: string;
}

/** The operations of sessions. The first row of a session is its document as it was when it came into the store. */
export interface Journal {
  /**
   * Appends rows after the sequence number `after`, the last one that the writer knows, and notifies those who follow
   * the session (kind `session`).
   *
   * @param contents what these rows, or later ones, name
   * @returns whether answers wait for the session
   * @throws SvcError `lease_lost` when the lease has another token
   */
  append(
    session: string,
    lease: Lease,
    rows: {
      after: number;
      rows: Omit<JournalRow, "seq">[];
      entry: SessionRow;
      contents?: SessionContent[];
    },
  ): Promise<boolean>;
  /**
   * The sequence numbers of the newest row, and of the newest one with a position; 0 for none.
   *
   * @returns also whether the session was removed, and not created again, whether answers wait for it, and whether the
   * rows between have contents
   */
  find(session: string, position: string): Promise<JournalState>;
  /** The rows after a sequence number, up to another one, the oldest first. */
  read(session: string, after: number, last: number): AsyncIterable<JournalRow>;
  /** The contents that came with these rows. */
  contents(session: string, after: number, last: number): AsyncIterable<SessionContent>;
  /** Removes the rows of a session. @throws as `append` */
  remove(session: string, lease: Lease): Promise<void>;
  /**
   * Saves an answer for a session, once for each marker.
   *
   * @returns the text that was saved first; undefined when there is no such session
   */
  answer(session: string, answer: Answer): Promise<string | undefined>;
  /** The answers that wait for a session. */
  waiting(session: string): Promise<Answer[]>;
}

/** What the store has of a session; see `Journal.find`. */
export interface JournalState {
  last: number;
  found: number;
  removed: boolean;
  waiting: boolean;
  contents: boolean;
}

/** The sessions that a list shows. */
export interface SessionFilter {
  /** The beginning of their names. Default: all. */
  prefix?: string;
  /** ISO 8601 in UTC: written then or later. Default: all. */
  since?: string;
  /** Most sessions. Default: all. */
  limit?: number;
  offset?: number;
}

/** What lists show of a session. */
export interface SessionSummary {
  name: string;
  /** The beginning of the first prompt; empty when there is none. */
  first_prompt: string;
  turns: number;
  /** Whether a turn runs in it now. */
  running: boolean;
  /** Where it runs, with a store. */
  worker?: string;
  /** ISO 8601 in UTC. */
  created_at: string;
  updated_at: string;
  /** Size of its files. */
  bytes: number;
  role: string;
  /** The job whose run created it; empty for none. */
  job: string;
  /** The session that spawned it; empty for none. */
  parent_id: string;
}

/** What lists show of sessions. */
export interface SessionIndex {
  /** Sessions, those that were written last first, and the number of all that match. */
  page(filter: SessionFilter): Promise<{ total: number; sessions: SessionSummary[] }>;
  /** The sorted names of all sessions. */
  names(): Promise<string[]>;
  /** The name and time of the session that was written last; empty without one. */
  newest(): Promise<string>;
  /** The names of the sessions with an id, of which two machines may have made one each; also of removed ones. */
  named(id: string): Promise<string[]>;
}

// ------------------------------------------------------------------------------------------------- queue

/** A job or an accepted run that is due. */
export interface QueueItem {
  kind: "job" | "run";
  /** Name of the job, or id of the run. */
  name: string;
  /** Items with the key of an item that has not ended are not put again. */
  key: string;
  /** The larger the earlier. Default: 0 */
  priority?: number;
  /** It goes on with what has begun: it is taken before others of its priority. */
  begun?: true;
  /** Only workers with this label take it. */
  label?: string;
  /** Items of a group run one after another. */
  group?: string;
  /** ISO 8601: not before this time. */
  after?: string;
}

/** Which items a worker takes. */
export interface WorkOptions {
  /** Default: all */
  kinds?: readonly QueueItem["kind"][];
  /** Takes items with one of these labels, in addition to those without one. */
  labels: readonly string[];
  /** How many run at once; asked before one is taken. */
  concurrency: () => number;
}

/** What is to be run, by any worker. */
export interface RunQueue {
  /** @returns false when an item with this key waits or runs already */
  put(item: QueueItem): Promise<boolean>;
  /**
   * Takes items and runs them: those with the largest priority first, of one group one after another. An item whose
   * handler rejects, or whose worker died, is run again, by any worker.
   */
  work(
    options: WorkOptions,
    handler: (item: QueueItem) => Promise<void>,
  ): QueueWorker;
  /** Items that wait for a worker, by label; the empty label is that of items without one. */
  depth(): Promise<Map<string, number>>;
  close(): Promise<void>;
}

/** Who takes items of a queue. */
export interface QueueWorker {
  /** Takes what it has room for now, instead of at its next look. */
  look(): void;
  /** Resolves when nothing that it has taken runs. */
  idle(): Promise<void>;
  /** Takes no more items; resolves when nothing that it has taken runs. */
  close(): Promise<void>;
}
