import { dirname, join } from "node:path";
import { type Clock, NO_REASON, Pace, timestamp } from "../platform/clock.ts";
import { SvcError, usageError } from "../platform/error.ts";
import {
  fileStamp,
  lstatIfExists,
  makeFolder,
  removeIfExists,
  removeTree,
  writeAllSync,
  writeFileAtomic,
} from "../platform/files.ts";
import type { StoreLink } from "../store/port.ts";
import { convertedFile, freshFile, type Rewritten } from "./document.ts";
import {
  type HeldFile,
  infoIfSame,
  type LogPaths,
  logPaths,
  openRegular,
  PRIVATE,
  removeCheckpoints,
} from "./files.ts";
import { type CreatedLog, LogFile, type SessionHead, writeError } from "./log_file.ts";
import {
  checkNewName,
  checkSessionName,
  idOf,
  isHandle,
  isId,
  isSessionName,
  mintName,
  NAMED,
  type SessionKind,
  TakenIds,
} from "./names.ts";
import {
  filesOf,
  type ListedSession,
  modified,
  type SessionFilter,
  SessionListing,
} from "./listing.ts";
import { LogFollower, type SessionSummary, summaryOf, unreadable } from "./look.ts";
import { fileHas, readFiles, readFirstLine, readLog, Snapshot } from "./read.ts";
import type { Repair } from "./repair.ts";
import type { SessionDocument, Turn } from "./schema.ts";
import { busyError, type OpenLog, openOrCreate, Session, tryTurnLock } from "./session.ts";
import type { SharedSessions } from "./shared.ts";

export interface SessionStoreOptions {
  /** `<worktree>/.svc/sessions`; created with the first session. */
  directory: string;
  /** The version of svc, for new sessions (specification 9.1). */
  version: string;
  clock: Clock;
  /** Called for every unreadable file, which stays unchanged. */
  warn?: (message: string) => void;
  /** The shared store that has the sessions; the files are then a copy. Default: none. */
  shared?: StoreLink;
}

const HOUR = 3_600_000;
const TEMPORARY = /^\..*\.(?:json|journal)\.tmp$/;

interface Origin {
  /** Name of the session that spawned this one, for a sub-agent. */
  parent_id?: string;
  /** The role that owns the session. */
  role?: string;
  /** The job whose run creates the session. */
  job?: string;
}

/** A log that stays open between two handles. */
interface KeptLog {
  opened: OpenLog;
  /** See `LogFile.rest`. */
  rest: string;
  /** In milliseconds. */
  since: number;
}

/** Milliseconds for which a log stays open. */
const KEEP = 10_000;

/** A page of a long log. */
export interface SessionPage {
  head: Omit<SessionDocument, "turns">;
  turns: Turn[];
  /** Number of all turns. */
  count: number;
  /** The number of the page and of all pages, from 1. */
  at: number;
  pages: number;
}

type AskDelivery = (
  session: string,
  part: { marker: string; text: string },
) => Promise<string | undefined>;

/** A part of the list of sessions. */
export interface SessionIndexPage {
  /** Number of all sessions that match. */
  total: number;
  names: string[];
  /** What lists show of them. */
  summaries(): Promise<SessionSummary[]>;
}

/** The sessions of one worktree (specification 2.1). */
export class SessionStore {
  readonly #directory: string;
  readonly #version: string;
  readonly #clock: Clock;
  readonly #warn: (message: string) => void;
  readonly #ids: TakenIds;
  readonly #listing: SessionListing;
  readonly #pace = new Pace();
  /** Logs that stay open, by name; those that were closed last are last. */
  readonly #kept = new Map<string, KeptLog>();
  /** Number of logs that stay open. */
  #keeps = 0;
  /** Ends the wait for the time at which they are closed; undefined while there are none. */
  #expiry: AbortController | undefined;
  /** The logs that are being closed. */
  readonly #closing = new Set<Promise<void>>();
  readonly #link: StoreLink | undefined;
  #shared: Promise<SharedSessions> | undefined;
  /** See `AskSessions.deliver`. */
  readonly deliver: AskDelivery | undefined;

  constructor({ directory, version, clock, warn = () => {}, shared }: SessionStoreOptions) {
    this.#directory = directory;
    this.#version = version;
    this.#clock = clock;
    this.#warn = warn;
    this.#ids = new TakenIds(directory);
    this.#listing = new SessionListing(directory);
    this.#link = shared;
    if (shared !== undefined) {
      this.deliver = async (name, part) => await (await this.#sharing()).deliver(name, part);
    }
  }

  /**
   * Resolves when the files of a session have all that any machine has appended to it. To be called before a session
   * is read or opened that others may have written; without a shared store nothing is done.
   *
   * @param given a name or a handle; empty: none
   * @throws SvcError `store_unreachable`
   */
  async current(given = ""): Promise<void> {
    if (this.#link !== undefined && given !== "") await (await this.#sharing()).current(given);
  }

  /** The name that a caller means, as `resolve`, with its files up to date, as `current`. */
  async locate(given: string): Promise<string> {
    await this.current(given);
    return this.resolve(given);
  }

  /**
   * Has other machines find a session that was added here, and warns of one that cannot be read, which stays in its
   * file alone. Without a shared store nothing is done.
   */
  async publish(name: string): Promise<void> {
    if (this.#link === undefined) return;
    try {
      await this.closeDead(name);
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== "session_unreadable") throw error;
      this.#warn(`Session ${name} stays out of the store: ${error.message}`);
    }
  }

  /** Closes a turn of a session as failed when its process has ended. */
  async closeDead(name: string): Promise<void> {
    await this.current(name);
    const session = this.open(name);
    try {
      await session.appending(() => {});
    } finally {
      session.close();
    }
  }

  /**
   * Deletes a session on all machines; see `remove`.
   *
   * @returns false when it does not exist
   * @throws SvcError `session_busy` while a turn runs in it
   */
  async delete(name: string): Promise<boolean> {
    const shared = this.#link !== undefined && await (await this.#sharing()).remove(name);
    return this.remove(name) || shared;
  }

  /** Resolves when the shared store has everything that was appended here. */
  async settled(): Promise<void> {
    await (await this.#shared)?.settled();
  }

  /** Creates a session with a new name and id. */
  create(kind: SessionKind, origin: Origin = {}): Session {
    while (true) {
      const name = mintName(kind, this.#clock);
      const created = this.#take(name) ? this.#begin(name, origin, true) : undefined;
      if (created === undefined) continue;
      try {
        return this.#open(name, origin, created);
      } catch (error) {
        const { document, journal } = logPaths(this.#directory, name);
        for (const path of [journal, document]) removeIfExists(path); // not used by others yet
        throw error;
      }
    }
  }

  /**
   * Opens a session for appending, or creates it with `origin` when it is missing. Repairs it after a crash,
   * and closes a turn whose process has ended as failed.
   *
   * @param given a name, or the handle of a session that exists
   * @throws SvcError `session_name`, `no_session`, or `session_unreadable` for a broken file or an old format (all
   * exit 2)
   */
  open(given: string, origin: Origin = {}): Session {
    const name = this.resolve(given);
    checkSessionName(name);
    const kept = this.#keptLog(name);
    this.#kept.delete(name);
    return this.#open(name, origin, kept ? undefined : this.#begin(name, origin), kept?.opened);
  }

  /**
   * Keeps the files of sessions open for ten seconds after their handles were closed, with their journals, so that the
   * next handle reads nothing again. For servers, whose turns in one session follow each other. The end of it closes
   * them.
   *
   * @param most number of sessions
   */
  keepOpen(most: number): AsyncDisposable {
    this.#keeps = most;
    return {
      [Symbol.asyncDispose]: async () => {
        this.#expiry?.abort(NO_REASON);
        this.#keeps = 0;
        for (const name of [...this.#kept.keys()]) this.#release(name);
        await Promise.all(this.#closing);
      },
    };
  }

  /** The whole log; undefined when it is missing or unreadable. Never writes. */
  read(name: string): SessionDocument | undefined {
    if (!isSessionName(name)) return undefined;
    return readLog(name, logPaths(this.#directory, name), this.#warn);
  }

  /** The turns of a log from an index on, read in slices so that other work continues; undefined as for `read`. */
  async turns(name: string, from = 1): Promise<Turn[] | undefined> {
    return await this.#turns(name, from) ?? this.read(name)?.turns.slice(from - 1);
  }

  /**
   * Some turns of a log with everything around the turns; undefined as for `read`.
   *
   * @param size most turns
   * @param at the number of the page, from 1. Default: the last one
   */
  async page(name: string, size: number, at?: number): Promise<SessionPage | undefined> {
    const bounds = (count: number) => {
      const pages = Math.max(1, Math.ceil(count / size));
      const page = Math.min(Math.max(1, at ?? pages), pages);
      return {
        count,
        pages,
        at: page,
        from: (page - 1) * size + 1,
        to: Math.min(page * size, count),
      };
    };
    using snapshot = this.snapshot(name);
    if (snapshot !== undefined) {
      try {
        const { from, to, ...found } = bounds(snapshot.count);
        return {
          ...found,
          head: snapshot.head(),
          turns: await snapshot.turns(this.#pace, from, to),
        };
      } catch {
        // `readLog` says where it is damaged.
      }
    }
    const document = this.read(name);
    if (document === undefined) return undefined;
    const { turns, ...head } = document;
    const { from, to, ...found } = bounds(turns.length);
    return { ...found, head, turns: turns.slice(from - 1, to) };
  }

  /** The turns of a long log; undefined for a short one, and for one that is missing or damaged. */
  async #turns(name: string, from = 1): Promise<Turn[] | undefined> {
    using snapshot = this.snapshot(name);
    try {
      return await snapshot?.turns(this.#pace, from);
    } catch {
      return undefined; // `readLog` says where
    }
  }

  /**
   * The whole log.
   *
   * @throws SvcError `session_removed`, `session_unreadable` (exit 2)
   */
  #need(name: string): SessionDocument {
    let fault = "";
    const paths = logPaths(this.#directory, name);
    const document = readLog(name, paths, (message) => void (fault = message));
    if (document !== undefined) return document;
    if (fault === "") {
      throw new SvcError("session_removed", `Session ${name} was removed.`, {
        hint: "Start another session.",
      });
    }
    const hint = `To see what can be kept: svc sessions repair ${name}`;
    throw usageError("session_unreadable", fault, hint);
  }

  /** A snapshot of a long log; undefined for a short log, which is read whole, and a missing one. */
  snapshot(name: string): Snapshot | undefined {
    if (!isSessionName(name)) return undefined;
    return Snapshot.open(logPaths(this.#directory, name));
  }

  /** The origin of a session, without reading its turns; undefined for one that is missing or unreadable. */
  origin(name: string): Required<Omit<Origin, "job">> | undefined {
    if (!isSessionName(name)) return undefined;
    const kept = this.#keptLog(name)?.opened;
    if (kept?.origin !== undefined) return kept.origin;
    const { document } = logPaths(this.#directory, name);
    const head = readFirstLine(document);
    if (kept !== undefined) kept.origin = head;
    if (head !== undefined) return head;
    if (lstatIfExists(document) === undefined) return undefined;
    // No warning: opening an unreadable log reports it.
    const found = readLog(name, logPaths(this.#directory, name), () => {});
    return found && { role: found.role, parent_id: found.parent_id };
  }

  /**
   * Appends a user part of `marker` and `text` to a session (specification 3.2), unless one with this marker
   * was appended at `since` (ISO 8601 UTC) or later. The caller excludes concurrent calls with the same
   * marker.
   *
   * @returns the text after the marker in the log; undefined when the session is missing
   * @throws SvcError `session_unreadable` (exit 2), `session_write`
   */
  appendUserOnce(
    name: string,
    { marker, text, since }: { marker: string; text: string; since: string },
  ): string | undefined {
    if (!this.#exists(name)) return undefined;
    const paths = logPaths(this.#directory, name);
    const json = JSON.stringify(marker).slice(1, -1);
    // A long log takes many times as long to parse as to look through.
    const found = fileHas(paths.document, json) || fileHas(paths.journal, json);
    const document = found ? this.read(name) : undefined;
    for (const { model, provider, started_at, parts: [part] } of document?.turns ?? []) {
      // Appended turns have no model or provider, so a user's prompt is never taken for one.
      if (model !== "" || provider !== "" || started_at < since || part?.type !== "user") continue;
      if (part.text.startsWith(marker)) return part.text.slice(marker.length);
    }
    const session = this.open(name);
    try {
      session.appendUser(marker + text);
    } finally {
      session.close();
    }
    return text;
  }

  /** A page of the sessions of all machines, those that were written last first. */
  async index(
    { prefix, since, offset = 0, limit = Infinity }: SessionFilter & {
      offset?: number;
      limit?: number;
    },
  ): Promise<SessionIndexPage> {
    if (this.#link !== undefined) {
      const { index } = await this.#link.open();
      const { total, sessions } = await index.page({
        prefix,
        since: since === undefined ? undefined : new Date(since).toISOString(),
        offset,
        limit: limit === Infinity ? undefined : limit,
      });
      const names = sessions.map(({ name }) => name);
      return { total, names, summaries: () => Promise.resolve(sessions) };
    }
    const all = this.newest({ prefix, since });
    const page = all.slice(offset, offset + limit);
    const summaries = async () => {
      const found: SessionSummary[] = [];
      for (const each of page) {
        await this.#pace.turn();
        found.push(this.listed(each));
      }
      return found;
    };
    return { total: all.length, names: page.map(({ name }) => name), summaries };
  }

  /** The name and time of the session that was written last, of all machines. */
  async lastWritten(): Promise<string> {
    if (this.#link === undefined) {
      const [newest] = this.newest();
      return `${newest?.name} ${newest?.updated}`;
    }
    return await (await this.#link.open()).index.newest();
  }

  /** The number of all sessions of all machines. */
  async count(): Promise<number> {
    return this.#link === undefined ? this.list().length : (await this.index({ limit: 0 })).total;
  }

  /** The names of all sessions of all machines, sorted. */
  async names(): Promise<readonly string[]> {
    return this.#link === undefined ? this.list() : await (await this.#link.open()).index.names();
  }

  /** What lists show of a session that `newest` returned; of one that cannot be read, its time. */
  listed({ name, updated }: ListedSession): SessionSummary {
    return this.summary(name) ?? unreadable(name, updated);
  }

  /** What lists show of a session, without reading a long log whole; undefined as for `read`, without a warning. */
  summary(name: string): SessionSummary | undefined {
    return isSessionName(name) ? summaryOf(name, logPaths(this.#directory, name)) : undefined;
  }

  /** The names of the sessions that a session has spawned, without reading a long log whole. */
  subSessions(name: string): string[] {
    using snapshot = this.snapshot(name);
    const head = snapshot === undefined ? this.read(name) : snapshot.head();
    return head?.sub_sessions ?? [];
  }

  /** Differs when a log may have changed; empty when it is missing. Reads no file. */
  stamp(name: string): string {
    if (!isSessionName(name)) return "";
    const { document, journal } = logPaths(this.#directory, name);
    return `${fileStamp(document)} ${fileStamp(journal)}`.trim();
  }

  /** The size of a log's document; 0 when it is missing. Reads no file. */
  bytes(name: string): number {
    if (!isSessionName(name)) return 0;
    return lstatIfExists(logPaths(this.#directory, name).document)?.size ?? 0;
  }

  /** Follows a session while other processes append to it; undefined when its name is no name. */
  follow(name: string): LogFollower | undefined {
    return isSessionName(name) ? new LogFollower(logPaths(this.#directory, name)) : undefined;
  }

  /**
   * What can be kept of a damaged log.
   *
   * @param name of the repaired session; it is created, and the damaged file stays as it is. Default: nothing is
   * written
   * @returns undefined when the file is missing, or svc did not write it
   * @throws SvcError `session_exists` (exit 2), `session_write`
   */
  async repair(damaged: string, name?: string): Promise<Repair | undefined> {
    const { repairLog } = await import("./repair.ts");
    const bytes = readFiles(logPaths(this.#directory, damaged));
    const repair = bytes && repairLog(name ?? damaged, new TextDecoder().decode(bytes));
    if (repair === undefined || name === undefined) return repair;
    if (!this.add(name, repair.document)) {
      throw usageError(
        "session_exists",
        `There is a session ${name} already.`,
        "Use another name.",
      );
    }
    return repair;
  }

  /**
   * Adds a session that was not logged here. A turn that runs in it has no process, and is closed as failed.
   *
   * @returns false when there is a session of this name, which stays as it is
   * @throws SvcError `session_name` (exit 2), `session_write`
   */
  add(name: string, document: SessionDocument): boolean {
    checkNewName(name);
    const session_id = idOf(name);
    if (session_id !== "") this.#take(name);
    const named = { ...document, session_name: name, session_id };
    const added = this.#claim(name, () => convertedFile(named, timestamp(this.#clock)));
    added?.held.file.close();
    const time = new Date(document.updated_at);
    // Lists and `keep_days` go by the time of the file.
    if (added !== undefined && !isNaN(time.getTime())) {
      Deno.utimeSync(logPaths(this.#directory, name).document, time, time);
    }
    return added !== undefined;
  }

  /** Removes temporary files and empty documents, an hour after the process that wrote them was killed. */
  tidy(): void {
    const before = this.#clock.now() - HOUR;
    for (const name of filesOf(this.#directory)) {
      const path = join(this.#directory, name);
      if (!TEMPORARY.test(name) && !name.endsWith(".json")) continue;
      if (modified(path) > before) continue;
      if (TEMPORARY.test(name) || lstatIfExists(path)?.size === 0) removeIfExists(path);
    }
  }

  /** The names of all sessions, sorted, including unreadable ones. */
  list(): readonly string[] {
    return this.#listing.names();
  }

  /** Sessions by the time of their files, the newest first. Reads no file. */
  newest(filter?: SessionFilter): ListedSession[] {
    return this.#listing.newest(filter);
  }

  /** The sessions with this id, given as `<id>` or `#<id>`. Reads file names only. */
  withId(id: string): string[] {
    const plain = id.startsWith("#") ? id.slice(1) : id;
    return plain === "" ? [] : this.list().filter((name) => idOf(name) === plain);
  }

  /**
   * The session with this id, given as `<id>` or `#<id>`.
   *
   * @throws SvcError `ambiguous_id` (exit 2) when several have it: machines that share a store make ids on their own
   */
  findById(id: string): string | undefined {
    const [name, ...others] = this.withId(id);
    if (others.length === 0) return name;
    throw usageError(
      "ambiguous_id",
      `${id} is the id of ${others.length + 1} sessions: ${[name, ...others].join(", ")}.`,
      "Write the name of the one that is meant.",
    );
  }

  /**
   * The name that a caller means: a handle (`#<id>`, `session:<name>`) is the name of a session that exists, anything
   * else is a name itself. A new name that is the id of a session is most likely a handle without its `#`.
   *
   * @throws SvcError `no_session` (exit 2) for a handle of no session, `ambiguous_id` for one of several, `session_id`
   * for an id as a name
   */
  resolve(given: string): string {
    if (!isHandle(given)) {
      const meant = isId(given) && !this.#exists(given) ? this.findById(given) : undefined;
      if (meant === undefined) return given;
      throw usageError(
        "session_id",
        `${given} is the id of a session, and no name: ${meant}.`,
        `Write #${given} to continue it, or use another name for a new session.`,
      );
    }
    const name = given.startsWith("#") ? this.findById(given) : given.slice(NAMED.length);
    if (name !== undefined && this.#exists(name)) return name;
    throw usageError(
      "no_session",
      `There is no session ${JSON.stringify(given.slice(0, 80))}.`,
      "See them with: svc sessions",
    );
  }

  /**
   * Deletes a session with all its files, readable or not.
   *
   * @returns false when it does not exist
   * @throws SvcError `session_busy` while a turn runs in it
   */
  remove(name: string): boolean {
    const paths = logPaths(this.#directory, name);
    const info = isSessionName(name) ? lstatIfExists(paths.document) : undefined;
    if (info === undefined || info.isDirectory) return false;
    const lock = tryTurnLock(paths.turn);
    if (lock === undefined) throw busyError(name);
    // A link is removed itself. Its target is not locked and stays.
    const held = info.isFile ? openRegular(paths.document, { write: true }) : undefined;
    try {
      held?.file.lockSync(true);
      // The document last: without it, the name is free for a new session.
      removeIfExists(paths.journal);
      removeIfExists(paths.results);
      removeTree(paths.attached);
      removeTree(paths.kept);
      removeIfExists(paths.replacement);
      removeCheckpoints(dirname(this.#directory), name);
      removeIfExists(paths.document);
    } finally {
      held?.file.close();
      lock.release();
    }
    return true;
  }

  #sharing(): Promise<SharedSessions> {
    return this.#shared ??= import("./shared.ts").then(({ SharedSessions }) =>
      new SharedSessions(this.#link!, {
        paths: (name) => {
          this.#makeDirectory(name);
          return logPaths(this.#directory, name);
        },
        open: (name) => this.#exists(name) ? this.#log(name, {}, undefined) : undefined,
        replace: (name, text) => {
          const { journal, document } = logPaths(this.#directory, name);
          removeIfExists(journal);
          const mode = lstatIfExists(document)?.mode ?? PRIVATE;
          writeFileAtomic(document, text, mode & 0o777);
        },
        drop: (name) => {
          const { journal, document, results, attached, kept } = logPaths(this.#directory, name);
          for (const path of [journal, results, document]) removeIfExists(path);
          for (const folder of [attached, kept]) removeTree(folder);
        },
      }, this.#clock)
    );
  }

  #exists(name: string): boolean {
    return isSessionName(name) &&
      lstatIfExists(logPaths(this.#directory, name).document) !== undefined;
  }

  /** Takes the id of a generated name; false when a session has or had it. */
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
      makeFolder(this.#directory);
      if (first) keepOutOfGit(dirname(this.#directory));
    } catch (error) {
      throw writeError(name, error); // also when a file or a dangling link is in its place
    }
  }

  /**
   * Creates the document of a new session; undefined when the name is taken.
   *
   * @param minted whether no session has had the name
   */
  #begin(name: string, origin: Origin, minted = false): CreatedLog | undefined {
    const content = () => freshFile(this.#head(name, origin), timestamp(this.#clock));
    return this.#claim(name, content, minted);
  }

  /**
   * Creates a document, whole at once; undefined when the name is taken. A process that is killed
   * meanwhile leaves at most a hidden temporary file.
   */
  #claim(name: string, content: () => Rewritten, minted = false): CreatedLog | undefined {
    const paths = logPaths(this.#directory, name);
    try {
      while (lstatIfExists(paths.document) === undefined) {
        this.#makeDirectory(name);
        const held = openOrCreate(paths.replacement, {
          read: true,
          write: true,
          mode: PRIVATE,
        });
        if (held === undefined) continue;
        let created: HeldFile | undefined;
        try {
          held.file.lockSync(true);
          // Otherwise another process has created the session meanwhile.
          if (infoIfSame(held, paths.replacement) === undefined) continue;
          const made = content();
          created = this.#create(name, held, paths, made.bytes, minted);
          return created && { held: created, content: made };
        } finally {
          if (created !== held) held.file.close();
        }
      }
      return undefined;
    } catch (error) {
      throw writeError(name, error);
    }
  }

  /**
   * Writes a document under its temporary name and gives it its own.
   *
   * @returns the file of the document; undefined when there is one
   */
  #create(
    name: string,
    held: HeldFile,
    paths: LogPaths,
    content: Uint8Array,
    minted: boolean,
  ): HeldFile | undefined {
    let moved = false;
    try {
      held.file.truncateSync();
      writeAllSync(held.file, content);
      if (minted) {
        Deno.renameSync(paths.replacement, paths.document);
        moved = true;
        return held;
      }
      // Of a document that was removed by hand.
      removeIfExists(paths.journal);
      removeIfExists(paths.results);
      removeTree(paths.attached);
      removeTree(paths.kept);
      removeCheckpoints(dirname(this.#directory), name);
      try {
        Deno.linkSync(paths.replacement, paths.document);
        return held;
      } catch (error) {
        if (error instanceof Deno.errors.AlreadyExists) return undefined;
        // A file system without links.
        Deno.writeFileSync(paths.document, content, { createNew: true, mode: PRIVATE });
        return openRegular(paths.document, { read: true, write: true });
      }
    } catch (error) {
      if (error instanceof Deno.errors.AlreadyExists) return undefined;
      throw error;
    } finally {
      if (!moved) removeIfExists(paths.replacement);
    }
  }

  #head(name: string, { parent_id = "", role = "", job }: Origin): SessionHead {
    return {
      session_name: name,
      session_id: idOf(name),
      created_at: timestamp(this.#clock),
      parent_id,
      role,
      ...(job !== undefined && { job }),
      version: this.#version,
    };
  }

  #open(
    name: string,
    origin: Origin,
    created: CreatedLog | undefined,
    kept?: OpenLog,
  ): Session {
    const paths = logPaths(this.#directory, name);
    const opened = kept ?? { log: this.#log(name, origin, created) };
    const read = () => this.#need(name);
    const turns = async () => await this.#turns(name) ?? this.#need(name).turns;
    const close = () => this.#keep(name, opened);
    const reused = kept !== undefined;
    const shared = this.#link && (async () => (await this.#sharing()).session(name));
    const clock = this.#clock;
    return new Session({ name, opened, reused, close, paths, clock, read, turns, shared });
  }

  #log(name: string, origin: Origin, created: CreatedLog | undefined): LogFile {
    const paths = logPaths(this.#directory, name);
    const now = () => timestamp(this.#clock);
    const head = this.#head(name, origin);
    const copy = this.#link !== undefined;
    return new LogFile({ name, paths, created, head, now, warn: this.#warn, copy });
  }

  /** The open log of a session that no handle has; undefined for none, and for one that others have changed. */
  #keptLog(name: string): KeptLog | undefined {
    const kept = this.#kept.get(name);
    if (kept === undefined || kept.opened.log.rest() === kept.rest) return kept;
    this.#kept.delete(name);
    kept.opened.log.close();
    return undefined;
  }

  /** Keeps a log open, or closes it. */
  #keep(name: string, opened: OpenLog): void {
    const rest = this.#keeps > 0 && !this.#kept.has(name) ? opened.log.rest() : "";
    if (rest === "") return opened.log.close();
    this.#kept.set(name, { opened, rest, since: this.#clock.now() });
    const [first] = this.#kept.keys();
    if (this.#kept.size > this.#keeps) this.#release(first!);
    if (this.#expiry === undefined) void this.#expire();
  }

  /** Closes the logs whose time is over, until none is open. */
  async #expire(): Promise<void> {
    const { signal } = this.#expiry = new AbortController();
    while (this.#kept.size > 0) {
      await this.#clock.sleep(KEEP, signal).catch(() => {});
      if (signal.aborted) break; // the store is closed
      const before = this.#clock.now() - KEEP;
      for (const [name, { since }] of [...this.#kept]) if (since <= before) this.#release(name);
    }
    this.#expiry = undefined;
  }

  /** Closes an open log, once its document is safe on the disk. */
  #release(name: string): void {
    const { log } = this.#kept.get(name)!.opened;
    this.#kept.delete(name);
    const closing = log.flush(true).catch(() => {}).then(() => {
      log.close();
      this.#closing.delete(closing);
    });
    this.#closing.add(closing);
  }
}

/**
 * Creates `.svc/.gitignore` with the first session of a worktree. Logs and other state quote files, so they
 * are not committed; settings, roles, plugins and jobs are. From then on the file is the user's.
 */
function keepOutOfGit(state: string): void {
  const path = join(state, ".gitignore");
  try {
    if (lstatIfExists(path) === undefined) writeFileAtomic(path, GITIGNORE);
  } catch {
    // A session works without it.
  }
}

const GITIGNORE = `# Made by svc with the first session, and yours from then on.
/asks.json
/console/
/exports/
/fleet/
/fleet.lock
/fleet.pid
/fleet.state.json
/jobs.daemon.*
/jobs.digest.json
/logs/
/memory/
/quota.json
/sessions/
/store/
/store.json
/usage/
.*.lock
.*.tmp
*.broken-*
`;
