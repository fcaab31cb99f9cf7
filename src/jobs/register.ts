import { join } from "node:path";
import { type Clock } from "../platform/clock.ts";
import { errorMessage, SvcError, usageError } from "../platform/error.ts";
import { writeFileAtomic } from "../platform/files.ts";
import { withFileLock } from "../platform/lock.ts";
import { setAside } from "../platform/registry_file.ts";
import { decode, type EntrySpan, type Layout, readEntry, readLayout } from "./layout.ts";
import { renderEntry } from "./render.ts";
import { type HistoryEntry, historyEntry, type Job, job as jobSchema } from "./schema.ts";

/** What is to become of a job: fields to set (`undefined` removes one), and an attempt for its history. */
export interface Change {
  set?: Partial<Job>;
  append?: HistoryEntry;
}

export interface RegisterOptions {
  /** `<worktree>/.svc` */
  state: string;
  clock: Clock;
  warn: (message: string) => void;
}

interface Known {
  /** What the file looked like when it was read; while it looks so, it is not read again. */
  signature: string;
  layout: Layout;
  /** As many as there are entries; undefined for those that are not understood. */
  jobs: (Job | undefined)[];
}

/**
 * The jobs of one worktree, `.svc/jobs.json` (specification 2.6). The file belongs to whoever edits it: a
 * change is made to the entry as it is on disk now, and the bytes of all others stay as they are. Histories
 * are read only when they are asked for.
 */
export class JobRegister {
  readonly path: string;
  readonly #clock: Clock;
  readonly #warn: (message: string) => void;
  readonly #warned = new Set<string>();
  #known: Known | undefined;

  constructor({ state, clock, warn }: RegisterOptions) {
    this.path = join(state, "jobs.json");
    this.#clock = clock;
    this.#warn = warn;
  }

  /** The jobs that are understood, in the file's order. Costs a look at the file while it is unchanged. */
  list(): Job[] {
    const jobs = this.#load()?.known.jobs ?? [];
    return jobs.filter((job) => job !== undefined);
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
    const job = this.get(name);
    if (job !== undefined) return job;
    const names = this.list().map((job) => job.name);
    throw usageError(
      "unknown_job",
      `There is no job ${JSON.stringify(name)}.`,
      names.length === 0 ? "Add one with `svc jobs add`." : "See them with `svc jobs list`.",
    );
  }

  /** The history of every job, oldest attempt first. */
  histories(): Map<string, HistoryEntry[]> {
    const found = new Map<string, HistoryEntry[]>();
    const loaded = this.#load(true);
    for (const [place, job] of loaded?.known.jobs.entries() ?? []) {
      if (job === undefined) continue;
      found.set(
        job.name,
        this.#history(loaded!.bytes!, loaded!.known.layout.entries[place]!, job.name),
      );
    }
    return found;
  }

  /** The history of one job, oldest attempt first; empty when there is no such job. */
  history(name: string): HistoryEntry[] {
    const loaded = this.#load(true);
    const place = loaded?.known.jobs.findIndex((job) => job?.name === name) ?? -1;
    if (place < 0) return [];
    return this.#history(loaded!.bytes!, loaded!.known.layout.entries[place]!, name);
  }

  /**
   * Adds a job.
   *
   * @throws SvcError `duplicate_job` (exit 2), also when the entry of that name is not understood;
   * `register_write`
   */
  async add(job: Job): Promise<void> {
    await this.#locked((loaded) => {
      const { bytes, layout } = loaded ?? fresh();
      if (loaded === undefined) this.#setAside();
      const names = layout.entries.map((entry) => nameOf(bytes, entry));
      if (names.includes(job.name)) {
        throw usageError(
          "duplicate_job",
          `There is a job ${job.name} already.`,
          `Choose another name, or remove it first: svc jobs remove ${job.name}`,
        );
      }
      const text = renderEntry(stored(job), "[]");
      const last = layout.entries.at(-1);
      const at = last?.end ?? layout.list.start + 1;
      const end = last?.end ?? layout.list.end - 1;
      this.#write(bytes, { start: at, end }, last ? `,\n    ${text}` : `\n    ${text}\n  `);
      this.#known = undefined;
    });
  }

  /**
   * Changes a job as it is in the file now.
   *
   * @param decide gets the job and returns what is to change, or undefined to leave it alone
   * @returns the job afterwards; undefined when there is none of that name (any more)
   * @throws SvcError `register_write`; what `decide` throws passes, and nothing is written then
   */
  async change(
    name: string,
    decide: (job: Job) => Change | undefined,
  ): Promise<Job | undefined> {
    let result: Job | undefined;
    await this.#locked((loaded) => {
      const place = loaded?.jobs.findIndex((job) => job?.name === name) ?? -1;
      if (loaded === undefined || place < 0) return;
      const { bytes, layout, jobs } = loaded;
      const entry = layout.entries[place]!;
      const change = decide(jobs[place]!);
      result = jobs[place]!;
      if (change === undefined) return;
      const { raw, history } = this.#parse(bytes, entry);
      const set = change.set ?? {};
      const kept = change.append === undefined
        ? history
        : this.#appended(history, change.append, name);
      const next = { ...raw, ...set };
      const inserted = this.#write(bytes, entry, renderEntry(next, kept));
      result = jobSchema.parse(JSON.parse(JSON.stringify(next)));
      this.#remember(loaded, place, result, inserted);
    });
    return result;
  }

  /** Removes the definition of a job; says whether there was one. Its sessions and files stay. */
  async remove(name: string): Promise<boolean> {
    let found = false;
    await this.#locked((loaded) => {
      const place = loaded?.layout.entries.findIndex((entry) =>
        nameOf(loaded.bytes, entry) === name
      ) ?? -1;
      if (loaded === undefined || place < 0) return;
      const { layout: { entries }, bytes } = loaded;
      const start = place > 0 ? entries[place - 1]!.end : entries[0]!.start;
      const end = place > 0 ? entries[place]!.end : entries[1]?.start ?? entries[0]!.end;
      this.#write(bytes, { start, end }, "");
      this.#known = undefined;
      found = true;
    });
    return found;
  }

  /** The file's content; undefined when there is none, or it is corrupt. `bytes` only when they are wanted. */
  #load(wanted = false): { known: Known; bytes?: Uint8Array } | undefined {
    let file: Deno.FsFile;
    try {
      const known = this.#known;
      if (!wanted && known?.signature === signature(Deno.statSync(this.path))) return { known };
      file = Deno.openSync(this.path);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) this.#warnOnce(unreadable(error));
      return undefined;
    }
    try {
      // Looked at before it is read: a change in between shows the next time.
      const seen = signature(file.statSync());
      const bytes = readAll(file);
      if (this.#known?.signature === seen) return { known: this.#known, bytes };
      const known = this.#understand(bytes, seen);
      if (known === undefined) return undefined;
      this.#known = known;
      return { known, bytes };
    } catch (error) {
      this.#warnOnce(unreadable(error));
      return undefined;
    } finally {
      file.close();
    }
  }

  #understand(bytes: Uint8Array, seen: string): Known | undefined {
    let layout: Layout;
    try {
      layout = readLayout(bytes);
      const { start, end } = layout.list;
      JSON.parse(
        `${decode(bytes, { start: 0, end: start })}[]${
          decode(bytes, { start: end, end: bytes.length })
        }`,
      );
    } catch {
      this.#warnOnce(
        "is corrupt; it is read as empty, and kept under another name once a job is added",
      );
      return undefined;
    }
    const names = new Set<string>();
    const jobs = layout.entries.map((entry, place) => {
      const what = `entry ${place + 1}`;
      try {
        const { success, data, error } = jobSchema.safeParse(this.#parse(bytes, entry).raw);
        if (success && !names.has(data.name)) {
          names.add(data.name);
          return data;
        }
        const [issue] = error?.issues ?? [];
        this.#warnOnce(
          success
            ? `has a second job ${data.name} (${what}); it is left out`
            : `has a job that is left out (${nameOf(bytes, entry) || what}): ` +
              `${issue!.path.join(".")} ${issue!.message}`.trim(),
        );
      } catch {
        this.#warnOnce(`has a job that is left out (${what}): it is no valid JSON`);
      }
      return undefined;
    });
    return { signature: seen, layout, jobs };
  }

  /** The fields of an entry, and the text of its history. */
  #parse(bytes: Uint8Array, { start, end, history }: EntrySpan) {
    if (history === undefined) {
      const { history: none, ...raw } = JSON.parse(decode(bytes, { start, end }));
      return { raw, history: JSON.stringify(Array.isArray(none) ? none : []) };
    }
    const { history: _, ...raw } = JSON.parse(
      `${decode(bytes, { start, end: history.start })}[]${
        decode(bytes, { start: history.end, end })
      }`,
    );
    return { raw, history: decode(bytes, history) };
  }

  #history(bytes: Uint8Array, entry: EntrySpan, name: string): HistoryEntry[] {
    let entries: unknown[] = [];
    try {
      entries = JSON.parse(this.#parse(bytes, entry).history);
    } catch {
      this.#warnOnce(`has a history that is no valid JSON (${name})`);
    }
    return entries.flatMap((entry) => {
      const { success, data } = historyEntry.safeParse(entry);
      if (!success) this.#warnOnce(`has a history entry that is not understood (${name})`);
      return success ? [data] : [];
    });
  }

  /** The text of a history with one more attempt; one that cannot be read is kept beside the register. */
  #appended(history: string, entry: HistoryEntry, name: string): string {
    let entries: unknown[] = [];
    try {
      entries = JSON.parse(history);
    } catch {
      writeFileAtomic(`${this.path}.${name}-history-${crypto.randomUUID()}`, history, 0o600);
    }
    const lines = [...entries, entry].slice(-MAX_HISTORY).map((each) => JSON.stringify(each));
    return `[\n        ${lines.join(",\n        ")}\n      ]`;
  }

  /** Runs a change under the file's lock, on what the file holds then; undefined: nothing, or nonsense. */
  async #locked(
    change: (loaded: (Known & { bytes: Uint8Array }) | undefined) => void,
  ): Promise<void> {
    try {
      await withFileLock(this.path, () => {
        const loaded = this.#load(true);
        change(loaded && { ...loaded.known, bytes: loaded.bytes! });
      });
    } catch (error) {
      if (error instanceof SvcError) throw error;
      throw new SvcError(
        "register_write",
        `${this.path} cannot be written: ${errorMessage(error)}`,
        {
          cause: error,
        },
      );
    }
  }

  /** Replaces a span of the file; returns the bytes that stand there now. */
  #write(
    bytes: Uint8Array,
    { start, end }: { start: number; end: number },
    text: string,
  ): Uint8Array {
    const inserted = new TextEncoder().encode(text);
    const parts = [bytes.subarray(0, start), inserted, bytes.subarray(end)];
    writeFileAtomic(this.path, parts, 0o600);
    return inserted;
  }

  /** Takes up our own change, so that the file need not be gone through again. */
  #remember({ layout, jobs }: Known, place: number, job: Job, inserted: Uint8Array): void {
    const { start, end } = layout.entries[place]!;
    const moved = inserted.length - (end - start);
    const entries = layout.entries.map((entry, other) =>
      other < place
        ? entry
        : other > place
        ? shift(entry, moved)
        : shift(readEntry(inserted), start)
    );
    const { list } = layout;
    this.#known = {
      signature: signature(Deno.statSync(this.path)),
      layout: { list: { start: list.start, end: list.end + moved }, entries },
      jobs: jobs.with(place, job),
    };
  }

  #setAside(): void {
    try {
      Deno.lstatSync(this.path);
    } catch {
      return;
    }
    setAside(this.path, this.#clock, this.#warn);
  }

  #warnOnce(what: string): void {
    if (!this.#warned.has(what)) this.#warn(`${this.path} ${what}.`);
    this.#warned.add(what);
  }
}

/** How many attempts a history keeps (specification 8). */
const MAX_HISTORY = 100;

function fresh(): { bytes: Uint8Array; layout: Layout } {
  const bytes = new TextEncoder().encode('{\n  "jobs": []\n}\n');
  return { bytes, layout: readLayout(bytes) };
}

/** What is written of a new job: what says nothing is left out. */
function stored({ running: _, ...job }: Job): Record<string, unknown> {
  return job;
}

function nameOf(bytes: Uint8Array, { start, end, history }: EntrySpan): string {
  try {
    const text = history === undefined
      ? decode(bytes, { start, end })
      : `${decode(bytes, { start, end: history.start })}[]${
        decode(bytes, { start: history.end, end })
      }`;
    return String(JSON.parse(text)?.name ?? "");
  } catch {
    return "";
  }
}

function shift({ start, end, history }: EntrySpan, by: number): EntrySpan {
  return {
    start: start + by,
    end: end + by,
    history: history && { start: history.start + by, end: history.end + by },
  };
}

function signature({ ino, size, mtime }: Deno.FileInfo): string {
  return [ino, size, mtime?.getTime()].join(":");
}

function readAll(file: Deno.FsFile): Uint8Array {
  const bytes = new Uint8Array(file.statSync().size);
  let length = 0;
  while (length < bytes.length) {
    const count = file.readSync(bytes.subarray(length));
    if (count === null) break;
    length += count;
  }
  return bytes.subarray(0, length);
}

function unreadable(error: unknown): string {
  return `cannot be read: ${errorMessage(error)}`;
}
