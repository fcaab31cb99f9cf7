import { lstatIfExists } from "../platform/files.ts";
import type { Clock } from "../platform/clock.ts";
import { timestamp } from "../platform/clock.ts";
import { SvcError } from "../platform/error.ts";
import { decode, type LogState } from "./layout.ts";
import { type LogFile, writeError } from "./log_file.ts";
import type { LogPaths } from "./log_paths.ts";
import type { Operation } from "./operations.ts";
import { ownerGone } from "./rewrite.ts";
import type { NewPart, Part, PermissionEntry, SessionDocument } from "./schema.ts";
import type { Turn, TurnStatus } from "./schema.ts";
import { tryTurnLock, type TurnLock } from "./turn_lock.ts";

/** How often a waiting handle looks whether the running turn is over, in milliseconds. */
const TURN_POLL = 50;

/** What a session needs of the store that opened it. */
export interface SessionOptions {
  name: string;
  log: LogFile;
  paths: LogPaths;
  clock: Clock;
  read: () => SessionDocument | undefined;
  turns: () => Promise<Turn[] | undefined>;
}

/**
 * A handle for appending to one session (specification 2.1). It does not hold the log in memory, and
 * several handles, also of several processes, may append at the same time. What was appended when a
 * call returns survives the end of the process.
 *
 * All methods that append throw SvcError `session_write` when they could not; nothing has changed then.
 */
export class Session {
  readonly name: string;
  /** Six characters; empty for a name that a user chose. */
  readonly id: string;
  /** Whether this handle made the session. */
  readonly created: boolean;
  readonly #log: LogFile;
  readonly #options: SessionOptions;
  /** Held from `acquireTurn` to the end of the turn. */
  #turnLock: TurnLock | undefined;
  #turnBegun = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#log = options.log;
    this.name = options.name;
    this.id = options.log.session_id;
    this.created = options.log.created;
    this.#closeDeadTurn();
  }

  /**
   * The whole log as it is now.
   *
   * @throws SvcError `session_removed` when it is no longer there or no longer loads
   */
  document(): SessionDocument {
    return this.#there(this.#options.read());
  }

  /**
   * All turns as they are now, read a slice at a time.
   *
   * @throws as `document` does
   */
  async turns(): Promise<Turn[]> {
    return this.#there(await this.#options.turns());
  }

  /**
   * Waits until no other handle has a turn open, and keeps others from opening one until this handle's
   * next turn has ended.
   *
   * @param onWait called once when it does have to wait
   * @throws the signal's reason when it aborts first
   */
  async acquireTurn(signal?: AbortSignal, onWait?: () => void): Promise<void> {
    signal?.throwIfAborted();
    for (let waited = false;; waited = true) {
      const lock = this.#tryLock();
      if (lock !== undefined) {
        this.#turnLock = lock;
        return;
      }
      if (!waited) onWait?.();
      await this.#options.clock.sleep(TURN_POLL, signal);
    }
  }

  /** Opens a turn with status `running`. `acquireTurn` comes first. */
  beginTurn(head: Pick<Turn, "model" | "provider" | "mode" | "reasoning">): TurnLog {
    const lock = this.#turnLock;
    if (lock === undefined || this.#turnBegun) {
      throw new TypeError("A turn begins after acquireTurn().");
    }
    let index = 0;
    try {
      this.#log.commit((state) => {
        index = state.turns + 1;
        const turn = { index, started_at: this.#now(), ...head };
        return [...this.#endOfDead(state), { op: "begin", turn }];
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

  recordPermission(entry: Omit<PermissionEntry, "timestamp">): void {
    const stamped = { ...entry, timestamp: this.#now() };
    this.#log.commit(() => [{ op: "entry", region: "permissions", entry: stamped }]);
  }

  /** @param code the HTTP status where there is one, otherwise 0 (specification 2.3) */
  recordError(code: number, message: string): void {
    const stamped = { code, message, timestamp: this.#now() };
    this.#log.commit(() => [{ op: "entry", region: "errors", entry: stamped }]);
  }

  /** Links a session that this one spawned; once is enough. */
  addSubSession(name: string): void {
    this.#log.commit(({ regions: { sub_sessions } }, read) => {
      const known = JSON.parse(`[${decode(read(sub_sessions.start, sub_sessions.used))}]`);
      return known.includes(name) ? [] : [{ op: "entry", region: "sub_sessions", entry: name }];
    });
  }

  /** Appends a finished turn of one user part, also while another turn runs (specification 3.2). */
  appendUser(text: string): void {
    this.#appendWhole({ type: "user", text });
  }

  /**
   * Appends a finished turn that holds a compaction record (specification 2.2), also while another turn
   * runs.
   *
   * @param record.compact_from index of the first turn that the summary does not stand for
   */
  appendCompaction(record: { text: string; summary: string; compact_from: number }): void {
    this.#appendWhole({ type: "command", ...record });
  }

  #there<T>(found: T | undefined): T {
    if (found !== undefined) return found;
    throw new SvcError("session_removed", `Session ${this.name} can no longer be read.`, {
      hint: "Start another session.",
    });
  }

  #appendWhole(content: NewPart): void {
    this.#log.commit((state) => {
      const started_at = this.#now();
      const index = state.turns + 1;
      const served = { model: "", provider: "", mode: "", reasoning: false };
      const part = { ...content, timestamp: started_at };
      return [{ op: "user", turn: { index, started_at, ...served }, part }];
    });
  }

  /** Lets go of the session's files. A turn still open is closed, as failed, by the next open. */
  close(): void {
    this.#releaseTurn();
    this.#log.close();
  }

  /** A running turn whose lock is free has lost its process, and so has a lock that is free. */
  #closeDeadTurn(): void {
    const running = this.#log.running() !== undefined;
    if (!running && lstatIfExists(this.#options.paths.turn) === undefined) return;
    const lock = this.#tryLock();
    try {
      if (lock && running) this.#log.commit((state) => this.#endOfDead(state));
    } finally {
      lock?.release();
    }
  }

  #releaseTurn(): void {
    this.#turnLock?.release();
    this.#turnLock = undefined;
    this.#turnBegun = false;
  }

  #tryLock(): TurnLock | undefined {
    try {
      return tryTurnLock(this.#options.paths.turn);
    } catch (error) {
      throw writeError(this.name, error);
    }
  }

  #endOfDead({ open }: LogState): Operation[] {
    if (open === undefined) return [];
    const ended_at = this.#now();
    const error = ownerGone(open.index, ended_at);
    return [{ op: "end", index: open.index, status: "error", ended_at, error }];
  }

  #now(): string {
    return timestamp(this.#options.clock);
  }
}

/** The running turn of a session, in the hands of the one who runs it. */
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

  /** Adds a part; it is logged for good when this returns. */
  append(part: NewPart): void {
    const { type, ...rest } = part;
    const stamped = { type, ...rest, timestamp: timestamp(this.#clock) } as Part;
    this.#log.commit((state) => {
      this.#mustBeOpen(state);
      return [{ op: "part", index: this.index, part: stamped }];
    });
  }

  /**
   * Ends the turn, and returns when it would survive a power failure. Others may then open theirs, even
   * if this throws. Ending it again does nothing.
   *
   * @param head the model or provider that served the turn, where it is not the one it began with
   */
  end(
    status: Exclude<TurnStatus, "running">,
    head: { model?: string; provider?: string } = {},
  ): void {
    if (this.#ended) return;
    try {
      this.#log.commit((state) => {
        this.#mustBeOpen(state);
        const ended_at = timestamp(this.#clock);
        return [{ op: "end", index: this.index, status, ended_at, ...head }];
      });
      this.#ended = true;
      this.#log.sync();
    } finally {
      this.#release();
    }
  }

  #mustBeOpen({ open }: LogState): void {
    if (open?.index === this.index) return;
    throw new SvcError("turn_closed", `Turn ${this.index} is no longer open.`);
  }
}
