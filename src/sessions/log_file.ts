import { errorMessage, SvcError, usageError } from "../platform/error.ts";
import { removeIfExists } from "../platform/files.ts";
import { checkDocument } from "./check.ts";
import {
  convertedFile,
  copyPosition,
  copyState,
  decode,
  encode,
  freshFile,
  grownFile,
  type LogState,
  type ReadAt,
  readHead,
  REGIONS,
  type Rewritten,
  scan,
} from "./document.ts";
import { DocumentFile } from "./document_file.ts";
import type { HeldFile, LogPaths } from "./files.ts";
import {
  applyAll,
  baseOf,
  type Edits,
  JournalFile,
  line,
  type Operation,
  recover,
  replay,
} from "./journal.ts";
import { positionOf } from "./read.ts";
import type { SessionDocument } from "./schema.ts";
import type { LeftOut } from "./results.ts";

/** The first line of a session file. */
export type SessionHead = Omit<
  SessionDocument,
  "updated_at" | "sub_sessions" | "errors" | "permissions" | "turns"
>;

/** A document that the caller has created: its locked file, and its content. */
export interface CreatedLog {
  held: HeldFile;
  content: Rewritten;
}

export interface LogFileOptions {
  name: string;
  paths: LogPaths;
  /** Left out: the document exists. */
  created?: CreatedLog;
  /** The first line of a new file. */
  head: SessionHead;
  /** Whether the file is a copy of a shared session: an append then requires `LogFile.shared`. Default: no. */
  copy?: boolean;
  now: () => string;
  warn: (message: string) => void;
}

/** A session of a shared store, while this process may append to it. */
export interface SharedLog {
  /** @throws SvcError `lease_lost` when another process may append now */
  check(): void;
  /** Takes a tool result whose marker is in the next operation. */
  leftOut(result: LeftOut): void;
  /** Takes operations that this process has appended, in their order. */
  appended(operations: Operation[], state: LogState, position: string): void;
}

/** The error for a failed write to a session's files. */
export function writeError(name: string, error: unknown): SvcError {
  if (error instanceof SvcError) return error;
  return new SvcError(
    "session_write",
    `Session ${name} could not be written: ${errorMessage(error)}`,
    { hint: "What was logged before is kept. Make room or access, then go on.", cause: error },
  );
}

/**
 * A session's document and its journal, for appending.
 *
 * An operation takes effect when its line is in the journal. It is then written into the document, in place
 * and from the last settled byte on, so its cost does not grow with the log. After a crash, replaying the
 * journal repairs the document: it writes the same bytes again. Every operation holds the kernel's lock of
 * the document and first applies the operations that other handles appended.
 */
export class LogFile {
  readonly session_id: string;
  /** Whether the session was created for this handle. */
  readonly created: boolean;
  /** Set while this process may append to the shared session that the file is a copy of. */
  shared: SharedLog | undefined;
  readonly #options: LogFileOptions;
  readonly #document: DocumentFile;
  readonly #journal: JournalFile;
  /** The state after the accepted journal lines. */
  #state: LogState | undefined;
  /** Whether another handle changed the size of the document since the last lock. */
  #resized = false;
  #closed = false;
  /** Counts the changes of the document by this handle. */
  #changes = 0;
  /** `#changes` when a power failure would not have lost any of them, and when the document was safe on the disk. */
  #flushed = -1;
  #synced = -1;
  /** Counts the journals. */
  #journals = 0;
  /** The journal that was safe on the disk together with its document, which it can repair from then on. */
  #repairing = -1;
  /** Resolves when the journal that `prepare` started is safe on the disk. */
  #prepared: Promise<void> | undefined;
  /** What a scan of the document finds while it has this stamp. */
  #scanned: { stamp: string; found: ReturnType<typeof scan> } | undefined;

  /**
   * Opens a session and repairs it after a crash. An empty document, where the store could not create a whole one,
   * gets its first content.
   *
   * @throws SvcError `session_unreadable` (exit 2) for a file that cannot be appended to
   */
  constructor(options: LogFileOptions) {
    this.#options = options;
    const { paths, head, created: fresh } = options;
    this.#document = new DocumentFile(paths.document, paths.replacement, fresh?.held);
    this.#journal = new JournalFile(paths.journal);
    let created = fresh !== undefined;
    try {
      this.session_id = this.#locked(() => {
        if (fresh !== undefined) {
          const { bytes: { length: end }, state } = fresh.content;
          this.#scanned = { stamp: this.#document.stamp, found: { state, end } };
          return head.session_id;
        }
        if (this.#document.size > 0) return this.#inspect();
        created = true;
        return this.#create();
      });
    } catch (error) {
      this.#forget();
      this.#document.close();
      throw error;
    }
    this.created = created;
  }

  /** The index of the running turn in the log. */
  running(): number | undefined {
    // A document without a journal has no running turn.
    return this.#journal.held ? this.#locked(() => this.#sync().open?.index) : undefined;
  }

  /**
   * Appends the operations that `make` returns for the current state. When this returns, they survive the end
   * of the process. When it throws, none of them took effect.
   *
   * @throws SvcError `session_write`
   */
  commit(make: (state: LogState, read: ReadAt) => Operation[]): void {
    const { shared } = this;
    if (shared !== undefined) shared.check();
    else if (this.#options.copy) throw unheld(this.#options.name);
    this.#locked(() => {
      const state = this.#sync();
      const operations = make(state, this.#document.at);
      if (operations.length === 0) return;
      const next = this.#append(state, operations);
      shared?.appended(operations, next, copyPosition(next, this.#document.at));
    });
  }

  /** Applies operations of the shared session to this copy. */
  apply(make: (state: LogState) => Operation[]): void {
    this.#locked(() => {
      const state = this.#sync();
      const operations = make(state);
      if (operations.length > 0) this.#append(state, operations);
    });
  }

  /** See `copyPosition`; empty for a document that svc did not write. */
  position(): string {
    return this.#locked(() => {
      const known = this.#state !== undefined || this.#journal.exists;
      const state = known ? this.#sync() : this.#look()?.state;
      return state === undefined ? "" : copyPosition(state, this.#document.at);
    });
  }

  /** The bytes of the document. */
  bytes(): Uint8Array {
    return this.#locked(() => {
      this.#sync();
      return this.#document.at(0, this.#document.end);
    });
  }

  /** Appends operations to the files, and returns the state after them. */
  #append(state: LogState, operations: Operation[]): LogState {
    let { next, edits } = applyAll(state, operations);
    if (REGIONS.some((name) => next.regions[name].used > next.regions[name].capacity)) {
      // One after the other, so that all copies grow to the same size.
      if (operations.length > 1) {
        for (const each of operations) state = this.#append(state, [each]);
        return state;
      }
      state = this.#grow(state, next);
      ({ next, edits } = applyAll(state, operations));
    }
    const writes = edits.render(next);
    this.#document.reserve(writes[0]);
    this.#journalled(
      operations.flatMap((operation) => edits.line(operation)),
      () => this.#document.put(writes, this.#document.end),
    );
    this.#state = next;
    this.#changes++;
    if (next.open === undefined) this.#document.trim(); // before its space is allocated on the disk
    // Not when `flush` follows, which waits for the disk without holding the event loop.
    if (this.#journal.long && !operations.some(isLast)) this.#checkpoint(next);
    return next;
  }

  /**
   * Starts the journal before the first operation, which then does not wait for the disk: `flush` does. A power
   * failure within these milliseconds can cut the document off after its last settled byte.
   */
  prepare(): void {
    if (this.#state !== undefined) return;
    try {
      this.#locked(() => {
        if (this.#journal.exists) return;
        const state = this.#startJournal(this.#scan(), false);
        if (state.turns === 0) return;
        this.#prepared = this.#journal.flush();
        this.#prepared.catch(() => {}); // `flush` reports it
      });
    } catch {
      // The first operation reports it.
    }
  }

  /**
   * Resolves when everything appended so far survives a power failure. Other work continues meanwhile.
   *
   * @param whole whether the document must not need its journal then. Default: no
   * @throws SvcError `session_write`
   */
  async flush(whole = false): Promise<void> {
    const [changes, journals] = [this.#changes, this.#journals];
    const both = whole || this.#repairing !== journals || this.#journal.long;
    try {
      await Promise.all([this.#prepared, this.#journal.flush(), both && this.#document.flush()]);
    } catch (error) {
      throw writeError(this.#options.name, error);
    }
    this.#flushed = changes;
    if (!both) return;
    this.#synced = changes;
    this.#repairing = journals;
    if (this.#journal.long) await this.#shorten(changes);
  }

  /** Starts the journal again, unless the document was changed after these changes, which are safe on the disk. */
  async #shorten(changes: number): Promise<void> {
    try {
      this.#locked(() => {
        const state = this.#sync();
        if (state.open === undefined && changes === this.#changes) this.#startJournal(state, false);
      });
      const journals = this.#journals;
      await this.#journal.flush();
      this.#repairing = journals;
    } catch {
      this.#journal.postpone(); // as in `#checkpoint`
    }
  }

  /**
   * Identifies the content of the session while its files stay open between turns; empty when they must be closed:
   * while a turn runs, and when the document was removed or replaced.
   */
  rest(): string {
    const resting = this.#state !== undefined && this.#state.open === undefined &&
      this.#flushed === this.#changes;
    return resting ? this.#document.look() : "";
  }

  /** Bytes of the document. */
  get size(): number {
    return this.#document.size;
  }

  /** Closes the files, and removes the journal unless a turn is running. Never throws. */
  close(): void {
    try {
      if (this.#journal.held) this.#locked(() => this.#removeJournal());
    } catch {
      // The journal stays and repairs the document at the next open.
    }
    this.#closed = true;
    this.#forget();
    this.#document.close();
  }

  #removeJournal(): void {
    if (!this.#journal.exists) return; // another handle removed it
    if (this.#sync().open !== undefined) return;
    if (this.#synced !== this.#changes) {
      this.#journal.sync();
      this.#document.sync();
    }
    this.#document.trim(); // spaces that a power failure leaves are white space in the JSON
    this.#journal.remove();
  }

  /** Runs `body` with the exclusive lock of the document. */
  #locked<T>(body: () => T): T {
    return this.#guard(() => {
      if (this.#closed) throw new Error("it is closed");
      const found = this.#document.lock();
      if (found === undefined) {
        throw new SvcError("session_removed", `Session ${this.#options.name} was removed.`, {
          hint: "Start another session.",
        });
      }
      this.#resized = found !== "same";
      if (found === "replaced") this.#forget();
      try {
        return body();
      } finally {
        this.#document.unlock();
      }
    });
  }

  #guard<T>(body: () => T): T {
    try {
      return body();
    } catch (error) {
      throw writeError(this.#options.name, error);
    }
  }

  /** Writes the content of a new document. */
  #create(): string {
    const { head, now } = this.#options;
    this.#journal.remove(); // of a document that was removed by hand
    this.#document.replace(freshFile(head, now()).bytes);
    return head.session_id;
  }

  /** Checks that the session can be appended to, and repairs it when it has a journal; returns its id. */
  #inspect(): string {
    const { at } = this.#document;
    let state: LogState | undefined;
    removeIfExists(this.#options.paths.replacement); // a crash may have left it
    if (!this.#journal.exists) {
      state = this.#look()?.state;
    } else {
      state = this.#sync();
      this.#journal.removeTemporary();
    }
    if (state === undefined) {
      const { turns, session_id } = this.#parse();
      if (turns.some(({ status }) => status === "running")) this.#sync();
      return session_id;
    }
    return readHead(state.regions, at)!.session_id as string;
  }

  /** Brings `#state` and the document up to date with the journal. */
  #sync(): LogState {
    const unread = this.#journal.unread();
    if (this.#state !== undefined && unread !== undefined) {
      if (unread.length > 0) return this.#catchUp(this.#state, unread);
      // The document changed without an operation, so its state is unknown.
      if (!this.#resized) return this.#state;
    }
    return this.#load();
  }

  #catchUp(known: LogState, unread: Uint8Array): LogState {
    const { state, edits, length } = replay(unread, copyState(known), this.#document.at);
    return this.#repair(state, edits, length);
  }

  #load(): LogState {
    this.#forget();
    const { name, warn } = this.#options;
    if (!this.#journal.open()) return this.#startJournal(this.#scan());
    const recovered = recover(this.#journal.unread() ?? new Uint8Array(), this.#document.at);
    if (recovered !== undefined) {
      return this.#repair(recovered.state, recovered.edits, recovered.length);
    }
    const state = this.#scan();
    const aside = this.#journal.setAside();
    warn(`The journal of session ${name} does not belong to its document; it is kept as ${aside}.`);
    return this.#startJournal(state);
  }

  /** Writes the edits into the document and truncates an incomplete line of the journal. */
  #repair(state: LogState, edits: Edits, length: number): LogState {
    const writes = edits.render(state);
    this.#document.reserve(writes[0]);
    this.#document.put(writes, this.#document.size);
    this.#journal.accept(length);
    this.#changes++;
    return this.#state = state;
  }

  /** The state of a document without a journal. One that svc did not write is converted. */
  #scan(): LogState {
    const scanned = this.#look();
    if (scanned !== undefined) {
      this.#document.end = scanned.end;
      return scanned.state;
    }
    const { bytes, state } = convertedFile(this.#parse(), this.#options.now());
    this.#document.replace(bytes);
    return state;
  }

  /** Scans the document, unless it is as it was at the last scan. */
  #look(): ReturnType<typeof scan> {
    const { stamp, size, at } = this.#document;
    if (this.#scanned?.stamp !== stamp) this.#scanned = { stamp, found: scan(size, at) };
    return this.#scanned.found;
  }

  #parse(): SessionDocument {
    const { name, paths } = this.#options;
    const problem = (what: string) =>
      usageError(
        "session_unreadable",
        `Session ${name} cannot be continued: ${paths.document} ${what}.`,
        `The file stays as it is. To see what can be kept: svc sessions repair ${name}`,
      );
    const bytes = this.#document.at(0, this.#document.size);
    let value: unknown;
    try {
      value = JSON.parse(decode(bytes));
    } catch {
      throw problem(`is not valid JSON${positionOf(bytes)}`);
    }
    const checked = checkDocument(value);
    if (checked.kind === "old") throw problem("is in an old format");
    if (checked.kind === "broken") throw problem(`is broken at ${checked.where}`);
    return value as SessionDocument;
  }

  /** Starts a journal from `state`, the current one of the document. */
  #startJournal(state: LogState, durable = state.turns > 0): LogState {
    const bytes = encode(line(baseOf(state, this.#document.at)));
    // Synced before the document changes, so that it can repair the document after a power failure.
    this.#journal.start(bytes, { mode: this.#document.mode, durable });
    this.#journals++;
    return this.#state = state;
  }

  #checkpoint(state: LogState): void {
    try {
      this.#document.sync();
      this.#startJournal(state);
    } catch {
      this.#journal.postpone(); // nothing is lost; the journal only grows longer
    }
  }

  /** Replaces the document by one with larger arrays. The journal records which of the two it belongs to. */
  #grow(state: LogState, next: LogState): LogState {
    const { at } = this.#document;
    const { bytes, state: grown } = grownFile(state, next, at);
    const base = baseOf(grown, (offset, length) => bytes.subarray(offset, offset + length));
    this.#document.replace(
      bytes,
      (rename) =>
        this.#journalled([encode(line({ op: "replaced", base }))], () => {
          this.#journal.sync();
          rename();
        }),
    );
    this.#state = grown;
    this.#checkpoint(grown);
    return grown;
  }

  /** Writes lines to the journal, then calls `act`; rolls the lines back when that fails. */
  #journalled(lines: Uint8Array[], act: () => void): void {
    try {
      this.#journal.append(lines, act);
    } catch (error) {
      try {
        this.#journal.rollBack();
        this.#load(); // restores the document from the journal
      } catch {
        this.#forget();
      }
      throw error;
    }
  }

  /** Drops the known state; the next operation reads the whole journal. */
  #forget(): void {
    this.#journal.close();
    this.#journals++;
    this.#state = undefined;
  }
}

function unheld(name: string): SvcError {
  return new SvcError("lease_lost", `Another process may append to session ${name} now.`);
}

/** Characters of an answer that is the last part of its turn, since no tool is called after it. */
const ANSWER = 100_000;

/** Whether an operation ends its turn, or is most likely the one before that: a long answer. */
function isLast(operation: Operation): boolean {
  if (operation.op === "end") return true;
  return operation.op === "part" && operation.part.type === "text" &&
    operation.part.text.length > ANSWER;
}
