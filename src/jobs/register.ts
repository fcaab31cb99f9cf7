import { join } from "node:path";
import { atOnce, type Clock, Pace } from "../platform/clock.ts";
import { nearest, usageError } from "../platform/error.ts";
import type { Decision, RecordCopy, RecordRow, StoreLink } from "../store/port.ts";
import {
  decode,
  type EntrySpan,
  type Layout,
  MAX_HISTORY,
  type OpenRegister,
  parseHistory,
  readFields,
  readHistory,
  RegisterFile,
  renderEntry,
  renderHistory,
  type Span,
  withReplaced,
} from "./register_file.ts";
import {
  appendRows,
  attemptRows,
  byJob,
  fieldsOf,
  jobRow,
  KINDS,
  withRows,
} from "./register_rows.ts";
import { isSince, MIN_INTERVAL } from "./schedule.ts";
import { type HistoryEntry, historyEntry, isShort, type Job, job as jobSchema } from "./schema.ts";

/** A change of a job: fields to set (`undefined` removes a field), and an attempt to append to its history. */
export interface Change {
  set?: Partial<Job>;
  append?: HistoryEntry;
}

/** Milliseconds between two reads of a broken file. */
const REPAIR = 5000;
/** Bytes at the end of a history in which its newest attempts are looked for first. */
const TAIL = 4096;

/** Entries that are parsed before other work gets its turn. */
const BATCH = 20;

interface Known {
  signature: string;
  layout: Layout;
  /** One for each entry; empty for those without a name. */
  names: string[];
  /** One for each entry; undefined for invalid ones. */
  jobs: (Job | undefined)[];
}

/**
 * The jobs of one worktree, `.svc/jobs.json` (specification 2.6). Users may edit the file at any time: a change
 * applies to the current entry on disk, and the bytes of all other entries stay as they are. A file that has
 * not changed is not read again, and histories are parsed only when they are requested.
 */
export class JobRegister {
  readonly path: string;
  readonly #file: RegisterFile;
  readonly #state: string;
  readonly #store: StoreLink | undefined;
  readonly #copy: RecordCopy;
  readonly #pace = new Pace();
  #known: Known | undefined;
  #refreshing: Promise<void> | undefined;

  /**
   * @param options.state `<worktree>/.svc`
   * @param options.store shares the jobs with other machines
   */
  constructor({ state, clock, warn, store }: {
    state: string;
    clock: Clock;
    warn: (message: string) => void;
    store?: StoreLink;
  }) {
    const path = this.path = join(state, "jobs.json");
    const file = this.#file = new RegisterFile(path, clock, warn, store === undefined);
    this.#state = state;
    this.#store = store;
    this.#copy = {
      name: "job",
      kinds: KINDS,
      path,
      stamp: () => file.signature() ?? "",
      apply: (rows, whole) => this.#apply(rows, whole),
      entries: () => this.#rows(),
      keep: () => file.setAside(),
    };
    store?.register(this.#copy);
  }

  /** The valid jobs, in the order of the file. Callers must not modify them. */
  list(): Job[] {
    if (this.#changed) atOnce(this.#load());
    return this.#known?.jobs.filter((job) => job !== undefined) ?? [];
  }

  /** Reads a file that has changed, in pieces, so that a server can answer other requests. `list` then reads nothing. */
  async refresh(): Promise<void> {
    if (!this.#changed) return;
    this.#refreshing ??= this.#pace.run(this.#load()).finally(() => this.#refreshing = undefined);
    await this.#refreshing;
  }

  /** Whether there is a file that the last read could not understand. */
  get broken(): boolean {
    const signature = this.#file.signature();
    return signature !== undefined && this.#known?.signature !== signature;
  }

  get(name: string): Job | undefined {
    return this.list().find((job) => job.name === name);
  }

  /**
   * The job of a name.
   *
   * @throws SvcError `unknown_job` (exit 2)
   */
  need(name: string): Job {
    const jobs = this.list();
    const job = jobs.find((job) => job.name === name);
    if (job !== undefined) return job;
    const guess = nearest(name, jobs.map((job) => job.name));
    throw usageError(
      "unknown_job",
      `There is no job ${JSON.stringify(name)}.`,
      guess === undefined ? "See the jobs with: svc jobs list" : `Did you mean "${guess}"?`,
    );
  }

  /**
   * Histories by job name, the oldest attempt first. Only those that are requested are read.
   *
   * @param options.names the jobs. Default: all
   * @param options.since milliseconds: of each history, at least its newest attempt and those that ended since then.
   * Default: all
   */
  histories(
    { names, since }: { names?: readonly string[]; since?: number } = {},
  ): Map<string, HistoryEntry[]> {
    const found = new Map<string, HistoryEntry[]>();
    this.list();
    using file = this.#open();
    if (file === undefined) return found;
    const { jobs, layout } = this.#known!;
    const wanted = names && new Set(names);
    for (const [index, job] of jobs.entries()) {
      if (job === undefined || wanted?.has(job.name) === false) continue;
      const entry = layout.entries[index]!;
      found.set(job.name, this.#history(entry, file.read, { name: job.name, since }));
    }
    return found;
  }

  /** The history of one job, the oldest attempt first; empty when there is no such job. */
  history(name: string): HistoryEntry[] {
    return this.histories({ names: [name] }).get(name) ?? [];
  }

  /**
   * Adds a job.
   *
   * @param history its attempts so far, the oldest first
   * @throws SvcError `duplicate_job` (exit 2), also when the entry of that name is invalid;
   * `register_write`
   */
  async add(job: Job, history: HistoryEntry[] = []): Promise<void> {
    await this.#change(() => {
      if (this.#known?.names.includes(job.name)) {
        throw usageError(
          "duplicate_job",
          `There is a job ${job.name} already.`,
          `Take another name, or remove it first: svc jobs remove ${job.name}`,
        );
      }
      const attempts = attemptRows(job.name, history.slice(-MAX_HISTORY));
      return { rows: [this.#row(job), ...attempts], result: undefined };
    });
  }

  /**
   * Changes a job in the file.
   *
   * @param decide gets the current job and returns its change, or undefined for none
   * @returns the job afterwards; undefined when there is none of that name
   * @throws SvcError `register_write`; an SvcError of `decide`, in which case nothing is written
   */
  change(name: string, decide: (job: Job) => Change | undefined): Promise<Job | undefined> {
    return this.#change((file) => {
      const index = this.#known?.jobs.findIndex((job) => job?.name === name) ?? -1;
      if (file === undefined || index < 0) return { rows: [], result: undefined };
      const result = this.#known!.jobs[index]!;
      const change = decide(result);
      if (change === undefined) return { rows: [], result };
      const span = this.#known!.layout.entries[index]!;
      const before = readFields(span, file.read);
      if (isShort(before.schedule)) {
        this.#file.warnOnce(
          `has an interval under ${MIN_INTERVAL} seconds, which counts as ${MIN_INTERVAL} (${name})`,
        );
      }
      const fields = JSON.parse(JSON.stringify({ ...before, ...change.set }));
      const rows = [this.#row(fields)];
      if (change.append !== undefined) {
        const history = this.#attempts(span, file.read, name);
        rows.push(...appendRows(name, history, change.append));
      }
      return { rows, result: jobSchema.parse(fields) };
    });
  }

  /** Removes a job, except its sessions and files. Returns whether there was one. */
  remove(name: string): Promise<boolean> {
    return this.#change((file) => {
      const index = this.#known?.names.indexOf(name) ?? -1;
      if (file === undefined || index < 0) return { rows: [], result: false };
      const history = this.#attempts(this.#known!.layout.entries[index]!, file.read, name);
      const attempts = attemptRows(name, history).map(({ kind, key }) => ({ kind, key }));
      return { rows: [{ kind: "job", key: name }, ...attempts], result: true };
    });
  }

  /**
   * Waits while the file exists and is broken, so that a change that follows is not lost; or until `signal`
   * aborts.
   */
  async whenReadable(clock: Clock, signal: AbortSignal): Promise<void> {
    while (true) {
      await this.refresh();
      if (!this.broken) return;
      if (!await clock.sleep(REPAIR, signal).then(() => true, () => false)) return;
    }
  }

  /** Removes temporary files of processes that died. */
  async removeTemporaryFiles(): Promise<void> {
    await this.#file.locked(() => this.#file.removeTemporaryFiles());
  }

  #row(fields: Record<string, unknown>): RecordRow {
    return jobRow(fields, this.#store && this.#state);
  }

  /** Runs a change under the lock of the file, and with a store in a transaction; then writes its rows. */
  async #change<T>(decide: (file: OpenRegister | undefined) => Decision<T>): Promise<T> {
    const prepared = async () => {
      await this.refresh();
      using file = this.#open();
      return decide(file);
    };
    if (this.#store !== undefined) {
      return await (await this.#store.open()).records.change(this.#copy, prepared);
    }
    let result!: T;
    await this.#file.locked(async () => {
      const decided = await prepared();
      if (decided.rows.length > 0) await this.#apply(decided.rows, false);
      result = decided.result;
    });
    return result;
  }

  /** Writes rows into the file. A single entry is replaced in it, and the bytes of the others stay as they are. */
  async #apply(rows: RecordRow[], whole: boolean): Promise<void> {
    await this.refresh();
    using file = this.#open();
    const { layout, names = [], jobs = [] } = this.#known ?? {};
    /** Texts by the positions of entries that are replaced; undefined removes one. */
    const replaced = new Map<number, string | undefined>();
    const changed = [...jobs];
    const added: string[] = [];
    for (const [name, { job, attempts }] of byJob(rows)) {
      let index = jobs.findIndex((job) => job?.name === name);
      if (index < 0) index = names.indexOf(name);
      const span = index < 0 ? undefined : layout!.entries[index]!;
      const fields = job === undefined
        ? span && readFields(span, file!.read)
        : job.value === undefined
        ? undefined
        : fieldsOf(this.#state, job);
      const before = span === undefined || whole ? "[]" : readHistory(span, file!.read);
      const text = fields && renderEntry(fields, this.#withRows(before, attempts, name));
      if (index >= 0) {
        replaced.set(index, text);
        changed[index] = jobSchema.safeParse(fields).data;
      } else if (text !== undefined) added.push(text);
    }
    if (file === undefined) return this.#file.create(listOf(added));
    const { entries, list } = layout!;
    const [index] = replaced.keys();
    const texts = [...replaced].sort(([one], [other]) => one - other);
    if (!whole && added.length === 0 && texts.every(([, text]) => text !== undefined)) {
      const signature = await file.replace(
        ...texts.map(([i, text]) => [entries[i]!, text!] as const),
      );
      let moved = layout!;
      for (const [i, text] of texts) moved = withReplaced(moved, i, text!);
      this.#known = { signature, layout: moved, names, jobs: changed };
    } else if (!whole && replaced.size === 1 && added.length === 0) {
      const { start, end } = entries[index!]!;
      const from = index! > 0 ? entries[index! - 1]!.end : start;
      await file.replace([{ start: from, end: index! > 0 ? end : entries[1]?.start ?? end }, ""]);
    } else if (!whole && replaced.size === 0 && entries.length > 0) {
      const { end } = entries.at(-1)!;
      await file.replace([{ start: end, end }, added.map((text) => `,\n    ${text}`).join("")]);
    } else {
      const kept = entries.flatMap((span, i) =>
        replaced.has(i) ? replaced.get(i) ?? [] : whole ? [] : file.read(span)
      );
      await file.replace([list, listOf([...kept, ...added])]);
    }
  }

  /** All jobs and attempts of the file as rows. */
  async #rows(): Promise<RecordRow[]> {
    await this.refresh();
    using file = this.#open();
    if (file === undefined) return [];
    const { layout, jobs } = this.#known!;
    return layout.entries.flatMap((span, index) => {
      const name = jobs[index]?.name ?? `?${index}`; // one that is left out is kept too
      try {
        const fields = readFields(span, file.read);
        const history = attemptRows(name, this.#attempts(span, file.read, name));
        return [jobRow(fields, this.#state, name), ...history];
      } catch {
        return [];
      }
    });
  }

  /** Whether the file must be read again. */
  get #changed(): boolean {
    return this.#known === undefined || this.#known.signature !== this.#file.signature();
  }

  /** The file that `#known` describes, which is read again when it has just been changed. */
  #open(): OpenRegister | undefined {
    while (this.#known !== undefined) {
      const file = this.#file.open(this.#known.signature);
      if (file !== undefined) return file;
      atOnce(this.#load());
    }
    return undefined;
  }

  *#load(): Generator<void, void> {
    const content = yield* this.#file.content();
    if (content === undefined) {
      this.#known = undefined;
      return;
    }
    const { bytes, layout, signature } = content;
    const known: Known = { signature, layout, names: [], jobs: [] };
    const taken = new Set<string>();
    for (const [index, entry] of layout.entries.entries()) {
      if (index > 0 && index % BATCH === 0) yield;
      let fields: Record<string, unknown> | undefined;
      try {
        fields = readFields(entry, (span) => decode(bytes, span));
      } catch { /* the job is left out */ }
      const job = this.#job(fields, `entry ${index + 1}`, taken);
      known.names.push(String(fields?.name ?? ""));
      known.jobs.push(job);
    }
    bytes.buffer.transfer(0); // frees them: an idle process collects no garbage for minutes
    this.#known = known;
  }

  #job(
    fields: Record<string, unknown> | undefined,
    what: string,
    taken: Set<string>,
  ): Job | undefined {
    if (fields === undefined) {
      this.#file.warnOnce(`has a job that is left out (${what}): it is no JSON object`);
      return undefined;
    }
    const { success, data, error } = jobSchema.safeParse(fields);
    if (!success) {
      const { path, message } = error.issues[0]!;
      const about = fields.name || what;
      this.#file.warnOnce(`has a job that is left out (${about}): ${path.join(".")} ${message}`);
      return undefined;
    }
    if (taken.has(data.name)) {
      this.#file.warnOnce(`has a second job ${data.name} (${what}), which is left out`);
      return undefined;
    }
    taken.add(data.name);
    return data;
  }

  #history(
    entry: EntrySpan,
    read: (span: Span) => string,
    { name, since }: { name: string; since?: number },
  ): HistoryEntry[] {
    try {
      const from = since === undefined ? undefined : new Date(since).toISOString();
      const newest = from && newestOf(entry, from, read);
      const attempts = newest || JSON.parse(readHistory(entry, read));
      if (!Array.isArray(attempts)) throw new SyntaxError("It is no array.");
      return this.#valid(attempts, name);
    } catch {
      this.#file.warnOnce(`has a history that cannot be read (${name})`);
      return [];
    }
  }

  #valid(attempts: unknown[], name: string): HistoryEntry[] {
    return attempts.flatMap((attempt) => {
      const { success, data } = historyEntry.safeParse(attempt);
      if (!success) this.#file.warnOnce(`has an attempt that is not understood (${name})`);
      return success ? [data] : [];
    });
  }

  /** All attempts as they are in the file; none of a history that cannot be read. */
  #attempts(entry: EntrySpan, read: (span: Span) => string, name: string): unknown[] {
    try {
      return parseHistory(readHistory(entry, read));
    } catch {
      this.#file.warnOnce(`has a history that cannot be read (${name})`);
      return [];
    }
  }

  /** The text of a history after rows were written. One that cannot be read is kept in a file of its own. */
  #withRows(history: string, rows: RecordRow[], name: string): string {
    if (rows.length === 0) return history;
    try {
      return renderHistory(withRows(name, parseHistory(history), rows));
    } catch {
      this.#file.keep(history, `${name}-history`);
      return renderHistory(withRows(name, [], rows));
    }
  }
}

/** The text of the array `jobs`. */
function listOf(entries: string[]): string {
  return entries.length === 0 ? "[]" : `[\n    ${entries.join(",\n    ")}\n  ]`;
}

/** The newest attempts of a history; undefined where it is not written as svc does: one attempt a line. */
function newestOf(
  { history }: EntrySpan,
  since: string,
  read: (span: Span) => string,
): unknown[] | undefined {
  if (history === undefined) return undefined;
  const { start, end } = history;
  const attempts: { finished_at: string }[] = [];
  for (let size = TAIL;; size *= 2) {
    const from = Math.max(start, end - size);
    const lines = read({ start: from, end }).split("\n").slice(1, -1 - attempts.length);
    try {
      while (lines.length > 0) {
        const attempt = JSON.parse(lines.pop()!.replace(/,$/, ""));
        if (attempts.length > 0 && !isSince(attempt.finished_at, since)) return attempts.reverse();
        attempts.push(attempt);
      }
    } catch {
      return undefined;
    }
    if (from === start) return attempts.length > 0 ? attempts.reverse() : undefined;
  }
}
