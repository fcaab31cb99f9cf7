import { join } from "node:path";
import type { Clock } from "../platform/clock.ts";
import { nearest, usageError } from "../platform/error.ts";
import {
  entryName,
  type EntrySpan,
  type Layout,
  parseEntry,
  type RegisterContent,
  RegisterText,
  renderEntry,
  withAttempt,
  withReplaced,
} from "./register_file.ts";
import { type HistoryEntry, historyEntry, type Job, job as jobSchema } from "./schema.ts";

/** What is to become of a job: fields to set (`undefined` removes one), and an attempt for its history. */
export interface Change {
  set?: Partial<Job>;
  append?: HistoryEntry;
}

/** Milliseconds between two looks at a file that is broken. */
const REPAIR = 5000;

interface Known {
  signature: string;
  layout: Layout;
  /** As many as there are entries; undefined for those that are not understood. */
  jobs: (Job | undefined)[];
}

/**
 * The jobs of one worktree, `.svc/jobs.json` (specification 2.6). The file belongs to whoever edits it: a
 * change is made to the entry as it is on disk now, and the bytes of all others stay as they are. A file
 * that has not changed is not read again, and histories are parsed only when they are asked for.
 */
export class JobRegister {
  readonly path: string;
  readonly #text: RegisterText;
  #known: Known | undefined;

  /** @param options.state `<worktree>/.svc` */
  constructor(options: { state: string; clock: Clock; warn: (message: string) => void }) {
    const { state, clock, warn } = options;
    this.path = join(state, "jobs.json");
    this.#text = new RegisterText(this.path, clock, warn);
  }

  /** The jobs that are understood, in the file's order. They are not to be changed in place. */
  list(): Job[] {
    const signature = this.#text.signature();
    if (signature === undefined || this.#known?.signature !== signature) this.#load();
    return this.#known?.jobs.filter((job) => job !== undefined) ?? [];
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

  /** The history of every job, or of one, oldest attempt first. */
  histories(name?: string): Map<string, HistoryEntry[]> {
    const found = new Map<string, HistoryEntry[]>();
    const content = this.#load();
    for (const [place, job] of this.#known?.jobs.entries() ?? []) {
      if (content === undefined || job === undefined || (name ?? job.name) !== job.name) continue;
      found.set(job.name, this.#history(content.bytes, content.layout.entries[place]!, job.name));
    }
    return found;
  }

  /** The history of one job, oldest attempt first; empty when there is no such job. */
  history(name: string): HistoryEntry[] {
    return this.histories(name).get(name) ?? [];
  }

  /**
   * Adds a job.
   *
   * @throws SvcError `duplicate_job` (exit 2), also when the entry of that name is not understood;
   * `register_write`
   */
  async add(job: Job): Promise<void> {
    await this.#text.locked(() => {
      const { bytes, layout: { entries, list } } = this.#load() ?? this.#text.fresh();
      if (entries.some((entry) => entryName(bytes, entry) === job.name)) {
        throw usageError(
          "duplicate_job",
          `There is a job ${job.name} already.`,
          `Take another name, or remove it first: svc jobs remove ${job.name}`,
        );
      }
      const text = renderEntry({ fields: job, history: "[]" });
      const last = entries.at(-1)?.end;
      if (last === undefined) this.#text.replace(bytes, list, `[\n    ${text}\n  ]`);
      else this.#text.replace(bytes, { start: last, end: last }, `,\n    ${text}`);
    });
  }

  /**
   * Changes a job as it is in the file now.
   *
   * @param decide gets the job and returns what is to change, or undefined to leave it alone
   * @returns the job afterwards; undefined when there is none of that name (any more)
   * @throws SvcError `register_write`; what `decide` throws as such passes, and nothing is written then
   */
  async change(name: string, decide: (job: Job) => Change | undefined): Promise<Job | undefined> {
    let result: Job | undefined;
    await this.#text.locked(() => {
      const content = this.#load();
      const place = this.#known?.jobs.findIndex((job) => job?.name === name) ?? -1;
      if (content === undefined || place < 0) return;
      const { bytes, layout } = content;
      result = this.#known!.jobs[place]!;
      const change = decide(result);
      if (change === undefined) return;
      const entry = parseEntry(bytes, layout.entries[place]!);
      const fields = { ...entry.fields, ...change.set };
      const history = change.append === undefined
        ? entry.history
        : this.#appended(entry.history, change.append, name);
      const { inserted, signature } = this.#text.replace(
        bytes,
        layout.entries[place]!,
        renderEntry({ fields, history }),
      );
      result = jobSchema.parse(JSON.parse(JSON.stringify(fields)));
      this.#known = {
        signature,
        layout: withReplaced(layout, place, inserted),
        jobs: this.#known!.jobs.with(place, result),
      };
    });
    return result;
  }

  /** Removes the definition of a job; says whether there was one. Its sessions and files stay. */
  async remove(name: string): Promise<boolean> {
    let found = false;
    await this.#text.locked(() => {
      const content = this.#load();
      const entries = content?.layout.entries ?? [];
      const place = entries.findIndex((entry) => entryName(content!.bytes, entry) === name);
      if (place < 0) return;
      const { start, end } = entries[place]!;
      const span = place > 0
        ? { start: entries[place - 1]!.end, end }
        : { start, end: entries[1]?.start ?? end };
      this.#text.replace(content!.bytes, span, "");
      found = true;
    });
    return found;
  }

  /**
   * Waits while the file is there and cannot be understood, so that nothing that is to be written into it
   * is lost; or until `signal` aborts.
   */
  async whenReadable(clock: Clock, signal: AbortSignal): Promise<void> {
    while (true) {
      const signature = this.#text.signature();
      if (signature === undefined || this.#known?.signature === signature) return;
      if (this.#load() !== undefined) return;
      if (!await clock.sleep(REPAIR, signal).then(() => true, () => false)) return;
    }
  }

  /** Removes what dying processes left beside the file. */
  async removeRemains(): Promise<void> {
    await this.#text.locked(() => this.#text.removeRemains());
  }

  /** Reads the file, and understands it unless it looks as it did. */
  #load(): RegisterContent | undefined {
    const content = this.#text.read(this.#known);
    if (content === undefined) {
      this.#known = undefined;
    } else if (this.#known?.signature !== content.signature) {
      const { signature, layout } = content;
      this.#known = { signature, layout, jobs: this.#understand(content) };
    }
    return content;
  }

  #understand({ bytes, layout }: RegisterContent): (Job | undefined)[] {
    const names = new Set<string>();
    return layout.entries.map((entry, place) => {
      const what = `entry ${place + 1}`;
      let fields: unknown;
      try {
        fields = parseEntry(bytes, entry).fields;
      } catch {
        this.#text.warnOnce(`has a job that is left out (${what}): it is no JSON object`);
        return undefined;
      }
      const { success, data, error } = jobSchema.safeParse(fields);
      if (!success) {
        const { path, message } = error.issues[0]!;
        const about = entryName(bytes, entry) || what;
        this.#text.warnOnce(`has a job that is left out (${about}): ${path.join(".")} ${message}`);
        return undefined;
      }
      if (names.has(data.name)) {
        this.#text.warnOnce(`has a second job ${data.name} (${what}), which is left out`);
        return undefined;
      }
      names.add(data.name);
      return data;
    });
  }

  #history(bytes: Uint8Array, entry: EntrySpan, name: string): HistoryEntry[] {
    let attempts: unknown[];
    try {
      attempts = JSON.parse(parseEntry(bytes, entry).history);
      if (!Array.isArray(attempts)) throw new SyntaxError("It is no array.");
    } catch {
      this.#text.warnOnce(`has a history that cannot be read (${name})`);
      return [];
    }
    return attempts.flatMap((attempt) => {
      const { success, data } = historyEntry.safeParse(attempt);
      if (!success) this.#text.warnOnce(`has an attempt that is not understood (${name})`);
      return success ? [data] : [];
    });
  }

  #appended(history: string, attempt: HistoryEntry, name: string): string {
    try {
      return withAttempt(history, attempt);
    } catch {
      this.#text.keep(history, `${name}-history`);
      return withAttempt("[]", attempt);
    }
  }
}
