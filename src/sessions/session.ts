import { type Clock, timestamp } from "../platform/clock.ts";
import { SvcError } from "../platform/error.ts";
import { lstatIfExists, tryRemove, unlock } from "../platform/files.ts";
import { decode, type LogState, ownerGone } from "./document.ts";
import { type HeldFile, hold, infoIfSame, type LogPaths, openRegular } from "./files.ts";
import type { Operation } from "./journal.ts";
import { type LogFile, type SharedLog, writeError } from "./log_file.ts";
import { Attachments, MOST_KEPT } from "./attachments.ts";
import { LeftOutResults } from "./results.ts";
import type {
  NewPart,
  Part,
  PermissionEntry,
  SessionDocument,
  Turn,
  TurnStatus,
} from "./schema.ts";

/** Milliseconds between the attempts of a waiting handle to get the turn lock. */
const TURN_POLL = 50;

/** The files of a session, and what an engine knows of the log, which outlive the handle (see `SessionStore.keepOpen`). */
export interface OpenLog {
  log: LogFile;
  /** The role that owns the session and the session that spawned it, where they were read. */
  origin?: { role: string; parent_id: string };
  /** Set by the engine of one handle for that of the next. Others only pass it on. */
  known?: object;
  /** The environment that a turn of this process has begun with. */
  environment?: string;
}

/** Given by the store that opens the session. */
export interface SessionOptions {
  name: string;
  opened: OpenLog;
  /** Whether an earlier handle left the files open. Default: no. */
  reused?: boolean;
  /** Called once, when the handle is closed. */
  close: () => void;
  paths: LogPaths;
  clock: Clock;
  read: () => SessionDocument;
  turns: () => Promise<Turn[]>;
  /** The session in the shared store of this worktree. Default: there is none. */
  shared?: () => Promise<SharedSession>;
}

/** The error for a session that cannot be deleted now. */
export function busyError(name: string): SvcError {
  return new SvcError("session_busy", `Session ${name} has a turn running.`, {
    hint: "Cancel the turn, then delete the session.",
  });
}

/** A session of a shared store, as one process has it: its handles there hold it together. */
export interface SharedSession extends SharedLog {
  /**
   * Waits until no other process may append to the session, brings the copy up to date, and closes a turn that its
   * process has left open.
   *
   * @param created whether the handle has created the session
   * @param onWait called once when it has to wait
   * @returns a signal that aborts, with the reason, when another process has taken the session over
   * @throws SvcError `session_removed`, `store_unreachable`; the signal's reason when it aborts first
   */
  hold(log: LogFile, options: {
    created: boolean;
    signal?: AbortSignal;
    onWait?: () => void;
  }): Promise<AbortSignal>;
  /** Resolves when the store has what this process has appended, and the session is free where all released it. */
  flush(): Promise<void>;
  /** Lets other processes append, when `flush` would resolve. */
  release(): void;
}

/**
 * A handle for appending to one session (specification 2.1). It does not keep the log in memory. Several
 * handles, also of several processes, may append at the same time. Appended data survives the end of the
 * process as soon as the call returns.
 *
 * All methods that append throw SvcError `session_write` when they fail; nothing has changed then.
 */
export class Session {
  readonly name: string;
  /** Six characters; empty for a name that a user chose. */
  readonly id: string;
  /** Whether this handle created the session. */
  readonly created: boolean;
  /** The tool results that the log leaves out. */
  readonly results: LeftOutResults;
  /** What was attached to its prompts. */
  readonly attachments: Attachments;
  /** What tools gave: images, and the whole of results that are too long. */
  readonly kept: Attachments;
  /** See {@linkcode OpenLog}. */
  readonly opened: OpenLog;
  readonly #log: LogFile;
  readonly #options: SessionOptions;
  #closed = false;
  /** Held from `acquireTurn` until the end of the turn. */
  #turnLock: TurnLock | undefined;
  #turnBegun = false;
  /** Held from `acquireTurn` until the end of the turn. */
  #shared: SharedSession | undefined;
  /** What `share` waits for, after the end of the turn too. */
  #flushing: SharedSession | undefined;

  constructor(options: SessionOptions) {
    const { opened, reused = false } = options;
    this.#options = options;
    this.opened = opened;
    this.#log = opened.log;
    this.name = options.name;
    this.id = opened.log.session_id;
    this.created = opened.log.created && !reused;
    this.results = new LeftOutResults(
      options.paths.results,
      (result) => this.#log.shared?.leftOut(result),
    );
    this.attachments = new Attachments(options.paths.attached);
    this.kept = new Attachments(options.paths.kept, MOST_KEPT);
    if (!this.created && !reused && options.shared === undefined) this.#closeDeadTurn();
  }

  /** The path of the log's document. */
  get path(): string {
    return this.#options.paths.document;
  }

  /** Bytes of the log's document. */
  get bytes(): number {
    return this.#log.size;
  }

  /**
   * The whole current log.
   *
   * @throws SvcError `session_removed`, or `session_unreadable` (exit 2) for a damaged log
   */
  document(): SessionDocument {
    return this.#options.read();
  }

  /**
   * All current turns, read in slices.
   *
   * @throws as `document` does
   */
  turns(): Promise<Turn[]> {
    return this.#options.turns();
  }

  /**
   * Takes the turn lock: waits until no other handle has a turn open. The lock is held until the end of this
   * handle's next turn.
   *
   * @param onWait called when it has to wait
   * @returns with a shared store, a signal that aborts with the reason when the turn must end: another machine has
   * taken the session over, or the store cannot be reached
   * @throws the signal's reason when it aborts first
   */
  async acquireTurn(signal?: AbortSignal, onWait?: () => void): Promise<AbortSignal | undefined> {
    signal?.throwIfAborted();
    for (let waited = false;; waited = true) {
      const lock = this.#tryLock();
      if (lock !== undefined) {
        this.#turnLock = lock;
        break;
      }
      if (!waited) onWait?.();
      await this.#options.clock.sleep(TURN_POLL, signal);
    }
    let lost: AbortSignal | undefined;
    if (this.#options.shared !== undefined) {
      try {
        lost = await this.#hold(signal, onWait);
      } catch (error) {
        this.#releaseTurn();
        throw error;
      }
    }
    this.#log.prepare();
    return lost;
  }

  /**
   * Calls `append`, which appends outside of a turn. With a shared store it waits until no other process may append,
   * and resolves when the store has what was appended.
   */
  async appending<T>(append: () => T, signal?: AbortSignal): Promise<T> {
    if (this.#options.shared === undefined || this.#shared !== undefined) return append();
    await this.#hold(signal);
    let result: T;
    try {
      result = append();
    } finally {
      this.#unhold();
    }
    await this.share();
    return result;
  }

  /** Begins a turn with status `running`. Requires `acquireTurn`. */
  beginTurn(
    head: Pick<Turn, "model" | "provider" | "mode" | "reasoning" | "environment">,
  ): TurnLog {
    const lock = this.#turnLock;
    if (lock === undefined || this.#turnBegun) {
      throw new TypeError("A turn begins after acquireTurn().");
    }
    let index = 0;
    try {
      this.#log.commit((state) => {
        index = state.turns + 1;
        const turn = { index, started_at: this.#now(), ...head };
        return [...endOfDead(state, this.#now()), { op: "begin", turn }];
      });
    } catch (error) {
      this.#releaseTurn();
      throw error;
    }
    this.#turnBegun = true;
    return new TurnLog(this.#log, index, this.#options.clock, () => {
      if (this.#turnLock === lock) this.#releaseTurn();
    });
  }

  /**
   * Resolves when everything appended so far survives a power failure, and other machines have it.
   *
   * @throws SvcError `session_write`; as `share`
   */
  async flush(): Promise<void> {
    if (this.#flushing === undefined) return await this.#log.flush();
    await Promise.all([this.#log.flush(), this.#flushing.flush()]);
  }

  /**
   * Resolves when other machines have everything appended so far; without a shared store at once.
   *
   * @throws SvcError `lease_lost` when another machine has taken the session over; `store_unreachable`
   */
  async share(): Promise<void> {
    await this.#flushing?.flush();
  }

  recordPermission(entry: Omit<PermissionEntry, "timestamp">): void {
    const stamped = { ...entry, path: entry.path || undefined, timestamp: this.#now() };
    this.#log.commit(() => [{ op: "entry", region: "permissions", entry: stamped }]);
  }

  /** @param code the HTTP status where there is one, otherwise 0 (specification 2.3) */
  recordError(code: number, message: string): void {
    const stamped = { code, message, timestamp: this.#now() };
    this.#log.commit(() => [{ op: "entry", region: "errors", entry: stamped }]);
  }

  /** Links a session that this one spawned. A second link has no effect. */
  addSubSession(name: string): void {
    this.#log.commit(({ regions: { sub_sessions } }, read) => {
      const known = JSON.parse(`[${decode(read(sub_sessions.start, sub_sessions.used))}]`);
      return known.includes(name) ? [] : [{ op: "entry", region: "sub_sessions", entry: name }];
    });
  }

  /** Appends a finished turn of one user part, even while another turn runs (specification 3.2). */
  appendUser(text: string): void {
    this.#appendWhole({ type: "user", text });
  }

  /**
   * Appends a finished turn with a compaction record (specification 2.2), even while another turn runs.
   *
   * @param record.compact_from index of the first turn that the summary does not cover
   */
  appendCompaction(record: { text: string; summary: string; compact_from: number }): void {
    this.#appendWhole({ type: "command", ...record });
  }

  #appendWhole(content: NewPart): void {
    this.#log.commit((state) => [wholeTurn(state, content, this.#now())]);
  }

  /** Closes the session's files. The next open closes a turn that is still open as failed. */
  close(): void {
    this.#releaseTurn();
    if (!this.#closed) this.#options.close();
    this.#closed = true;
  }

  /** Closes a running turn whose lock is free, since its process has ended, and removes an unused lock file. */
  #closeDeadTurn(): void {
    const running = this.#log.running() !== undefined;
    if (!running && lstatIfExists(this.#options.paths.turn) === undefined) return;
    const lock = this.#tryLock();
    try {
      if (lock && running) this.#log.commit((state) => endOfDead(state, this.#now()));
    } finally {
      lock?.release();
    }
  }

  #releaseTurn(): void {
    this.#unhold();
    this.#turnLock?.release();
    this.#turnLock = undefined;
    this.#turnBegun = false;
  }

  async #hold(signal?: AbortSignal, onWait?: () => void): Promise<AbortSignal> {
    const shared = await this.#options.shared!();
    const { created } = this;
    const lost = await shared.hold(this.#log, { created, signal, onWait });
    this.#shared = this.#flushing = this.#log.shared = shared;
    return lost;
  }

  #unhold(): void {
    this.#log.shared = undefined;
    this.#shared?.release();
    this.#shared = undefined;
  }

  #tryLock(): TurnLock | undefined {
    try {
      return tryTurnLock(this.#options.paths.turn);
    } catch (error) {
      throw writeError(this.name, error);
    }
  }

  #now(): string {
    return timestamp(this.#options.clock);
  }
}

/** Closes a running turn whose process has ended. */
export function endOfDead({ open }: LogState, ended_at: string): Operation[] {
  if (open === undefined) return [];
  const error = ownerGone(open.index, ended_at);
  return [{ op: "end", index: open.index, status: "error", ended_at, error }];
}

/** A finished turn of one part, after the others. */
export function wholeTurn(state: LogState, content: NewPart, started_at: string): Operation {
  const index = state.turns + 1;
  const unserved = { model: "", provider: "", mode: "", reasoning: false };
  const part = { ...content, timestamp: started_at };
  return { op: "user", turn: { index, started_at, ...unserved }, part };
}

/** The running turn of a session, for its owner. */
export class TurnLog {
  /** 1-based position in the session. */
  readonly index: number;
  readonly #log: LogFile;
  readonly #clock: Clock;
  readonly #release: () => void;
  #ended = false;

  constructor(log: LogFile, index: number, clock: Clock, release: () => void) {
    this.#log = log;
    this.index = index;
    this.#clock = clock;
    this.#release = release;
  }

  /** Appends a part. */
  append(part: NewPart): void {
    const { type, ...rest } = part;
    const stamped = { type, ...rest, timestamp: timestamp(this.#clock) } as Part;
    this.#log.commit((state) => {
      this.#assertOpen(state);
      return [{ op: "part", index: this.index, part: stamped }];
    });
  }

  /**
   * Ends the turn and releases the turn lock, even when it throws. A second call has no effect. `Session.flush`
   * resolves when it survives a power failure.
   *
   * @param head the model or provider that served the turn, when it differs from that of the start; what it used
   */
  end(
    status: Exclude<TurnStatus, "running">,
    { usage = {}, cost, ...head }: {
      model?: string;
      provider?: string;
      usage?: NonNullable<Turn["usage"]>;
      cost?: number | null;
    } = {},
  ): void {
    if (this.#ended) return;
    const counted = {
      ...(Object.keys(usage).length > 0 && { usage }),
      ...(cost !== undefined && cost !== null && { cost }),
    };
    try {
      this.#log.commit((state) => {
        this.#assertOpen(state);
        const ended_at = timestamp(this.#clock);
        return [{ op: "end", index: this.index, status, ended_at, ...head, ...counted }];
      });
      this.#ended = true;
    } finally {
      this.#release();
    }
  }

  #assertOpen({ open }: LogState): void {
    if (open?.index === this.index) return;
    throw new SvcError("turn_closed", `Turn ${this.index} is no longer open.`);
  }
}

/** The kernel's lock that shows that the owner of a turn is alive. It ends with the process. */
export interface TurnLock {
  /** Never throws. */
  release(): void;
}

/**
 * Takes the turn lock of a session.
 *
 * @returns undefined while another handle, of this process or another, holds it
 */
export function tryTurnLock(path: string): TurnLock | undefined {
  while (true) {
    const held = openOrCreate(path);
    if (held === undefined) continue;
    const { file } = held;
    if (!file.tryLockSync(true)) {
      file.close();
      return undefined;
    }
    if (infoIfSame(held, path) !== undefined) {
      return {
        release() {
          // Removed before the unlock, so that a waiting handle sees that its file is gone.
          tryRemove(path);
          unlock(file);
        },
      };
    }
    file.close();
  }
}

/** Opens a file for writing; undefined when another process removes it at this moment. Never follows a link. */
export function openOrCreate(
  path: string,
  options: Deno.OpenOptions = { write: true },
): HeldFile | undefined {
  try {
    return hold(Deno.openSync(path, { ...options, createNew: true }));
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
  return openRegular(path, options);
}
