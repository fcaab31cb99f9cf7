import { dirname } from "node:path";
import { type Clock, Pace, timestamp } from "../platform/clock.ts";
import { SvcError } from "../platform/error.ts";
import { lstatIfExists, removeIfExists } from "../platform/files.ts";
import { keepOutOfGit } from "./keep_out_of_git.ts";
import { LogFile, writeError } from "./log_file.ts";
import { logPaths } from "./log_paths.ts";
import { checkSessionName, idOf, isSessionName, mintName, type SessionKind } from "./names.ts";
import { readLog } from "./read.ts";
import { openRegular } from "./regular_file.ts";
import type { SessionDocument, Turn } from "./schema.ts";
import { Session } from "./session.ts";
import { Snapshot } from "./snapshot.ts";
import { TakenIds } from "./taken_ids.ts";
import { tryTurnLock } from "./turn_lock.ts";

export interface SessionStoreOptions {
  /** `<worktree>/.svc/sessions`; made when the first session is. */
  directory: string;
  /** The service's version, stamped into every new session (specification 9.1). */
  version: string;
  clock: Clock;
  /** Told of every file that does not load; it stays as it is. */
  warn?: (message: string) => void;
}

interface Origin {
  /** Name of the spawning session, for a sub-agent's. */
  parent_id?: string;
  /** The role that owns the session. */
  role?: string;
}

/** The sessions of one worktree (specification 2.1). */
export class SessionStore {
  readonly #directory: string;
  readonly #version: string;
  readonly #clock: Clock;
  readonly #warn: (message: string) => void;
  readonly #ids: TakenIds;
  readonly #pace = new Pace();

  constructor({ directory, version, clock, warn = () => {} }: SessionStoreOptions) {
    this.#directory = directory;
    this.#version = version;
    this.#clock = clock;
    this.#warn = warn;
    this.#ids = new TakenIds(directory);
  }

  /** Makes a session with a name and an id that no other has. */
  create(kind: SessionKind, origin: Origin = {}): Session {
    while (true) {
      const name = mintName(kind, this.#clock);
      if (!this.#take(name) || !this.#claim(name)) continue;
      try {
        return this.#open(name, origin);
      } catch (error) {
        const { document, journal } = logPaths(this.#directory, name);
        for (const path of [journal, document]) removeIfExists(path); // nobody else knows of them
        throw error;
      }
    }
  }

  /**
   * Opens a session for appending, and creates it when it is missing; only then does `origin` count. What
   * a crash left is repaired, and a turn whose process is gone is closed as failed.
   *
   * @throws SvcError `session_name` or, for a file in an old format or a broken one,
   * `session_unreadable` (both exit 2)
   */
  open(name: string, origin: Origin = {}): Session {
    checkSessionName(name);
    this.#claim(name);
    return this.#open(name, origin);
  }

  /** The whole log, or undefined when there is none that loads. Never writes. */
  read(name: string): SessionDocument | undefined {
    if (!isSessionName(name)) return undefined;
    return readLog(name, logPaths(this.#directory, name), this.#warn);
  }

  /** The turns of a log, read without holding up other work for long; undefined as for `read`. */
  async turns(name: string): Promise<Turn[] | undefined> {
    using snapshot = this.snapshot(name);
    try {
      if (snapshot !== undefined) return await snapshot.turns(this.#pace);
    } catch {
      // What is wrong with it is found out, and said, below.
    }
    return this.read(name)?.turns;
  }

  /** A long log as it is now, unread; undefined for one that has to be read whole, and when there is none. */
  snapshot(name: string): Snapshot | undefined {
    if (!isSessionName(name)) return undefined;
    return Snapshot.open(logPaths(this.#directory, name));
  }

  /** Who made a session, for a long log without reading it; undefined as for `read`. */
  origin(name: string): Required<Origin> | undefined {
    const snapshot = this.snapshot(name);
    snapshot?.[Symbol.dispose](); // it says this without its file
    if (snapshot !== undefined) return snapshot.origin;
    if (!isSessionName(name)) return undefined;
    // Who goes on in a log that does not load is told so then, and once.
    const found = readLog(name, logPaths(this.#directory, name), () => {});
    return found && { role: found.role, parent_id: found.parent_id };
  }

  /** The names of all sessions, sorted; also of those that do not load. */
  list(): string[] {
    return this.#files(".json").filter(isSessionName).sort();
  }

  /** All sessions, the one that was last written to first. Looks at the files' times and reads none. */
  newest(): { name: string; updated: number }[] {
    const all = new Map<string, number>();
    const journals = new Set(this.#files(".journal", ".journal"));
    for (const name of this.#files(".json")) {
      if (!isSessionName(name)) continue;
      const { document, journal } = logPaths(this.#directory, name);
      const files = journals.has(`.${name}`) ? [document, journal] : [document];
      all.set(name, Math.max(...files.map(modified)));
    }
    return Array.from(all, ([name, updated]) => ({ name, updated }))
      .sort((one, other) => other.updated - one.updated || (one.name < other.name ? 1 : -1));
  }

  /** The session with this id, given as `<id>` or `#<id>`. Reads file names only. */
  findById(id: string): string | undefined {
    const wanted = id.startsWith("#") ? id.slice(1) : id;
    if (wanted === "") return undefined;
    return this.#files(`_${wanted}.json`).find((name) => idOf(name) === wanted);
  }

  /**
   * Deletes a session and what lies beside it, whether it loads or not.
   *
   * @returns false when there is none
   * @throws SvcError `session_busy` while a turn runs in it
   */
  remove(name: string): boolean {
    const paths = logPaths(this.#directory, name);
    const info = isSessionName(name) ? lstatIfExists(paths.document) : undefined;
    if (info === undefined || info.isDirectory) return false;
    const lock = tryTurnLock(paths.turn);
    if (lock === undefined) {
      throw new SvcError("session_busy", `Session ${name} has a turn running.`, {
        hint: "Cancel the turn, then delete the session.",
      });
    }
    // A link is removed itself; what it leads to is none of ours, and has no lock to take.
    const held = info.isFile ? openRegular(paths.document, { write: true }) : undefined;
    try {
      held?.file.lockSync(true);
      // The document last: without it, this name is free for a new session and its files.
      removeIfExists(paths.journal);
      removeIfExists(paths.replacement);
      removeIfExists(paths.document);
    } finally {
      held?.file.close();
      lock.release();
    }
    return true;
  }

  /** The names, less the extension, of the files whose name ends so; of what is no directory there are none. */
  #files(end: string, extension = ".json"): string[] {
    const names: string[] = [];
    try {
      for (const { name, isDirectory } of Deno.readDirSync(this.#directory)) {
        if (name.endsWith(end) && !isDirectory) names.push(name.slice(0, -extension.length));
      }
    } catch (error) {
      const { NotFound, NotADirectory } = Deno.errors;
      if (!(error instanceof NotFound || error instanceof NotADirectory)) throw error;
    }
    return names;
  }

  /** Takes the id that a minted name ends with; false when a session has it, or had it once. */
  #take(name: string): boolean {
    this.#makeDirectory(name);
    try {
      return this.#ids.take(idOf(name), () => this.list().map(idOf).filter((id) => id !== ""));
    } catch (error) {
      throw writeError(name, error);
    }
  }

  #makeDirectory(name: string): void {
    try {
      const first = lstatIfExists(this.#directory) === undefined;
      Deno.mkdirSync(this.#directory, { recursive: true });
      if (first) keepOutOfGit(dirname(this.#directory));
    } catch (error) {
      throw writeError(name, error); // also where a file or a dangling link has the directory's name
    }
  }

  /** Makes the empty file of a new session; false when there is one of this name. */
  #claim(name: string): boolean {
    const { document } = logPaths(this.#directory, name);
    this.#makeDirectory(name);
    try {
      if (lstatIfExists(document) !== undefined) return false;
      Deno.openSync(document, { write: true, createNew: true }).close();
      return true;
    } catch (error) {
      if (error instanceof Deno.errors.AlreadyExists) return false;
      throw writeError(name, error);
    }
  }

  #open(name: string, { parent_id = "", role = "" }: Origin): Session {
    const paths = logPaths(this.#directory, name);
    const now = () => timestamp(this.#clock);
    const log = new LogFile({
      name,
      paths,
      head: {
        session_name: name,
        session_id: idOf(name),
        created_at: now(),
        parent_id,
        role,
        version: this.#version,
      },
      now,
      warn: this.#warn,
    });
    const read = () => this.read(name);
    const turns = () => this.turns(name);
    return new Session({ name, log, paths, clock: this.#clock, read, turns });
  }
}

/** Milliseconds since the epoch; 0 for a file that has gone meanwhile. */
function modified(path: string): number {
  return lstatIfExists(path)?.mtime?.getTime() ?? 0;
}
