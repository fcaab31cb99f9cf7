import { errorMessage, SvcError, usageError } from "../platform/error.ts";
import { removeIfExists } from "../platform/files.ts";
import { checkDocument } from "./check.ts";
import { DocumentFile } from "./document_file.ts";
import { JournalFile } from "./journal_file.ts";
import {
  copyState,
  decode,
  encode,
  type LogState,
  type ReadAt,
  readHead,
  REGIONS,
  scan,
} from "./layout.ts";
import type { LogPaths } from "./log_paths.ts";
import {
  applied,
  baseOf,
  type Edits,
  line,
  type Operation,
  recover,
  replay,
} from "./operations.ts";
import { adoptedFile, freshFile, grownFile } from "./rewrite.ts";
import type { SessionDocument } from "./schema.ts";

export interface LogFileOptions {
  name: string;
  paths: LogPaths;
  /** The first line of the file, should it be empty still. */
  head: Omit<SessionDocument, "updated_at" | "sub_sessions" | "errors" | "permissions" | "turns">;
  now: () => string;
  warn: (message: string) => void;
}

/** What a failed write to a session's files is reported as. */
export function writeError(name: string, error: unknown): SvcError {
  if (error instanceof SvcError) return error;
  return new SvcError(
    "session_write",
    `Session ${name} could not be written: ${errorMessage(error)}`,
    { hint: "What was logged before is kept. Make room or access, then go on.", cause: error },
  );
}

/**
 * A session file and the journal beside it, for appending.
 *
 * An operation counts from the moment its line stands in the journal. It is then written into the
 * document, in place and from the last settled byte on, so that its cost does not grow with the log.
 * Whatever a crash leaves unfinished there, the journal repairs: applying it again gives the same bytes.
 * All of this happens under the kernel's lock of the document, and a handle that gets the lock first
 * takes in what others appended meanwhile.
 */
export class LogFile {
  readonly session_id: string;
  /** Whether this handle wrote the beginning of the file. */
  readonly created: boolean;
  readonly #options: LogFileOptions;
  readonly #document: DocumentFile;
  readonly #journal: JournalFile;
  /** As the document and what has been taken in of the journal say. */
  #state: LogState | undefined;
  /** Whether the document changed in size since this handle last had it. */
  #resized = false;
  #closed = false;

  /**
   * Opens a session file and repairs what a crash left. An empty file, which is how one is born, gets
   * its beginning.
   *
   * @throws SvcError `session_unreadable` (exit 2) for a file that cannot be appended to
   */
  constructor(options: LogFileOptions) {
    this.#options = options;
    this.#document = new DocumentFile(options.paths.document, options.paths.replacement);
    this.#journal = new JournalFile(options.paths.journal);
    let created = false;
    try {
      this.session_id = this.#locked(() => {
        created = this.#document.size === 0;
        return created ? this.#begin() : this.#inspect();
      });
    } catch (error) {
      this.#forget();
      this.#document.close();
      throw error;
    }
    this.created = created;
  }

  /** The index of the turn that runs, as far as the log knows. */
  running(): number | undefined {
    // Without a journal the file is at rest.
    return this.#journal.held ? this.#locked(() => this.#sync().open?.index) : undefined;
  }

  /**
   * Appends the operations that `make` returns for the present state. When this returns they survive
   * the end of the process; when it throws, none of them happened.
   *
   * @throws SvcError `session_write`
   */
  commit(make: (state: LogState, read: ReadAt) => Operation[]): void {
    this.#locked(() => {
      let state = this.#sync();
      const operations = make(state, this.#document.at);
      if (operations.length === 0) return;
      let { next, edits } = applied(state, operations);
      if (REGIONS.some((name) => next.regions[name].used > next.regions[name].capacity)) {
        state = this.#grow(state, next);
        ({ next, edits } = applied(state, operations));
      }
      const writes = edits.render(next);
      this.#document.reserve(writes[0]);
      this.#journalled(
        operations.map(line).join(""),
        () => this.#document.put(writes, this.#document.end),
      );
      this.#state = next;
      if (this.#journal.long) this.#checkpoint(next);
    });
  }

  /** Returns when everything appended so far would survive a power failure. */
  sync(): void {
    this.#guard(() => this.#journal.sync());
  }

  /** Lets go of the files, and removes the journal unless a turn runs. Never throws. */
  close(): void {
    try {
      if (this.#journal.held) this.#locked(() => this.#rest());
    } catch {
      // The journal stays, and repairs the document on the next open.
    }
    this.#closed = true;
    this.#forget();
    this.#document.close();
  }

  #rest(): void {
    if (!this.#journal.exists) return; // another handle has done it
    if (this.#sync().open !== undefined) return;
    this.#document.trim();
    this.#document.sync();
    this.#journal.remove();
  }

  /** Runs `body` while this handle alone has the document locked. */
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

  /** Writes the beginning of a new file. */
  #begin(): string {
    const { head, now } = this.#options;
    this.#journal.remove(); // of a file that was removed by hand
    this.#document.replace(freshFile(head, now()).bytes);
    return head.session_id;
  }

  /** The id of a session that can be appended to, which is repaired first when it has a journal. */
  #inspect(): string {
    const { at, size } = this.#document;
    let state: LogState | undefined;
    if (!this.#journal.exists) {
      state = scan(size, at)?.state;
    } else {
      state = this.#sync();
      this.#journal.removeHalf(); // a crash can have left these
      removeIfExists(this.#options.paths.replacement);
    }
    if (state === undefined) {
      const { turns, session_id } = this.#parse();
      if (turns.some(({ status }) => status === "running")) this.#sync();
      return session_id;
    }
    return readHead(state.regions, at)!.session_id as string;
  }

  /** Brings `#state` up to the journal, and the document with it. */
  #sync(): LogState {
    const news = this.#journal.news();
    if (this.#state !== undefined && news !== undefined) {
      if (news.length > 0) return this.#catchUp(this.#state, news);
      // A document that changed although nothing was appended is not the one that was left here.
      if (!this.#resized) return this.#state;
    }
    return this.#load();
  }

  #catchUp(known: LogState, news: Uint8Array): LogState {
    const { state, edits, length } = replay(news, copyState(known), this.#document.at);
    return this.#repair(state, edits, length);
  }

  #load(): LogState {
    this.#forget();
    const { name, warn } = this.#options;
    if (!this.#journal.open()) return this.#start(this.#atRest());
    const recovered = recover(this.#journal.news() ?? new Uint8Array(), this.#document.at);
    if (recovered !== undefined) {
      return this.#repair(recovered.state, recovered.edits, recovered.length);
    }
    const state = this.#atRest();
    const aside = this.#journal.setAside();
    warn(`The journal of session ${name} is not about the file beside it; it is kept as ${aside}.`);
    return this.#start(state);
  }

  /** Writes what the document may lack, and cuts off a line that the journal does not have whole. */
  #repair(state: LogState, edits: Edits, length: number): LogState {
    const writes = edits.render(state);
    this.#document.reserve(writes[0]);
    this.#document.put(writes, this.#document.size);
    this.#journal.settle(length);
    return this.#state = state;
  }

  /** The state of a document that needs no journal; one that came from elsewhere is laid out anew. */
  #atRest(): LogState {
    const scanned = scan(this.#document.size, this.#document.at);
    if (scanned !== undefined) {
      this.#document.end = scanned.end;
      return scanned.state;
    }
    const { bytes, state } = adoptedFile(this.#parse(), this.#options.now());
    this.#document.replace(bytes);
    return state;
  }

  #parse(): SessionDocument {
    const { name, paths } = this.#options;
    const problem = (what: string) =>
      usageError(
        "session_unreadable",
        `Session ${name} cannot be continued: ${paths.document} ${what}.`,
        "The file stays as it is. Use another session name.",
      );
    let value: unknown;
    try {
      value = JSON.parse(decode(this.#document.at(0, this.#document.size)));
    } catch {
      throw problem("is not valid JSON");
    }
    const checked = checkDocument(value);
    if (checked.kind === "old") throw problem("is in an old format");
    if (checked.kind === "broken") throw problem(`is broken at ${checked.where}`);
    return value as SessionDocument;
  }

  /** Begins a journal from `state`, which the document is in. */
  #start(state: LogState): LogState {
    const bytes = encode(line(baseOf(state, this.#document.at)));
    // Before the document changes: a power failure must find the journal that repairs it.
    this.#journal.begin(bytes, state.turns > 0);
    return this.#state = state;
  }

  #checkpoint(state: LogState): void {
    try {
      this.#document.sync();
      this.#start(state);
    } catch {
      this.#journal.postpone(); // what is appended is safe; the journal only stays longer
    }
  }

  /** Makes room in the arrays that `next` fills; the journal says which of the two files it is for. */
  #grow(state: LogState, next: LogState): LogState {
    const { at, end } = this.#document;
    const { bytes, state: grown } = grownFile(state, next, end, at);
    const base = baseOf(grown, (offset, length) => bytes.subarray(offset, offset + length));
    this.#document.replace(
      bytes,
      (rename) =>
        this.#journalled(line({ op: "replaced", base }), () => {
          this.#journal.sync();
          rename();
        }),
    );
    this.#state = grown;
    this.#checkpoint(grown);
    return grown;
  }

  /** Writes lines to the journal, then does what they announce; takes them back when that fails. */
  #journalled(lines: string, act: () => void): void {
    try {
      this.#journal.append(encode(lines), act);
    } catch (error) {
      try {
        this.#journal.takeBack();
        this.#load(); // puts the document back to what the journal says
      } catch {
        this.#forget();
      }
      throw error;
    }
  }

  /** Takes nothing for known: the next look reads the journal from its start. */
  #forget(): void {
    this.#journal.close();
    this.#state = undefined;
  }
}
