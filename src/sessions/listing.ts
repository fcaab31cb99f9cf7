import { systemClock } from "../platform/clock.ts";
import { lstatIfExists } from "../platform/files.ts";
import { logPaths } from "./files.ts";
import { isSessionName } from "./names.ts";

/** A session in a list. */
export interface ListedSession {
  name: string;
  /** When its files were written last, in milliseconds since the epoch. */
  updated: number;
}

/** The sessions that a list shows. */
export interface SessionFilter {
  /** The beginning of their names, such as `job_`. Default: all. */
  prefix?: string;
  /** Milliseconds since the epoch: written then or later. Default: all. */
  since?: number;
}

/** Milliseconds after which a directory that changes again is certain to have another time. */
const SETTLED = 2000;

/**
 * The names and times of the sessions of a directory. While nothing is created or removed in it, the directory is not
 * read again, and only sessions with a journal can have another time: every writer has one.
 */
export class SessionListing {
  readonly #directory: string;
  #known: Listed | undefined;

  /** @param directory of the sessions; it may be missing */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** The sorted names of all sessions. */
  names(): readonly string[] {
    return this.#listed().names;
  }

  /** The sessions by their times, the newest first. Reads no file. */
  newest({ prefix = "", since = 0 }: SessionFilter = {}): ListedSession[] {
    const listed = this.#listed();
    const changed = [...listed.journals].filter((name) =>
      listed.newest?.get(name)?.updated !== this.#updated(name, true)
    );
    if (listed.newest === undefined || changed.length > 0) listed.newest = this.#sorted(listed);
    const all = [...listed.newest.values()];
    if (prefix === "" && since === 0) return all;
    return all.filter(({ name, updated }) => name.startsWith(prefix) && updated >= since);
  }

  #listed(): Listed {
    const stamp = modified(this.#directory);
    if (this.#known?.stamp === stamp) return this.#known;
    const names: string[] = [];
    const journals = new Set<string>();
    for (const file of filesOf(this.#directory)) {
      if (file.startsWith(".")) {
        if (file.endsWith(".journal")) journals.add(file.slice(1, -".journal".length));
        continue;
      }
      const name = file.slice(0, -".json".length);
      if (file.endsWith(".json") && isSessionName(name)) names.push(name);
    }
    const listed = { stamp, names: names.sort(), journals };
    // The time of a directory that changed a moment ago may be that of its next change too.
    this.#known = systemClock.now() - stamp > SETTLED ? listed : undefined;
    return listed;
  }

  #sorted({ names, journals, newest }: Listed): Map<string, ListedSession> {
    const all = names.map((name) => {
      const live = journals.has(name);
      const known = live ? undefined : newest?.get(name);
      return known ?? { name, updated: this.#updated(name, live) };
    });
    all.sort((one, other) => other.updated - one.updated || (one.name < other.name ? 1 : -1));
    return new Map(all.map((each) => [each.name, each]));
  }

  #updated(name: string, live: boolean): number {
    const written = modified(`${this.#directory}/${name}.json`); // `logPaths` would take most of the time
    if (!live) return written;
    return Math.max(written, modified(logPaths(this.#directory, name).journal));
  }
}

interface Listed {
  /** The time of the directory before it was read. */
  stamp: number;
  names: string[];
  /** The sessions that a process has open, or had when it ended. */
  journals: Set<string>;
  newest?: Map<string, ListedSession>;
}

/** The names of the files in a directory; none when it is missing. */
export function filesOf(directory: string): string[] {
  const names: string[] = [];
  try {
    for (const { name, isDirectory } of Deno.readDirSync(directory)) {
      if (!isDirectory) names.push(name);
    }
  } catch (error) {
    const { NotFound, NotADirectory } = Deno.errors;
    if (!(error instanceof NotFound || error instanceof NotADirectory)) throw error;
  }
  return names;
}

/** Milliseconds since the epoch; 0 for a missing file. */
export function modified(path: string): number {
  return lstatIfExists(path)?.mtime?.getTime() ?? 0;
}
