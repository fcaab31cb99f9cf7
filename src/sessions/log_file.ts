import { join } from "node:path";
import { errorMessage, SvcError, usageError } from "../platform/error.ts";
import { removeIfExists, writeAllSync } from "../platform/files.ts";
import { mintId } from "../platform/ids.ts";
import { checkDocument } from "./check.ts";
import { DocumentFile } from "./document_file.ts";
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
import { applied, baseOf, type Edits, line, type Operation } from "./operations.ts";
import { recover, replay } from "./operations.ts";
import { createOwn, type Held, look, lstatIfExists, openRegular, readAt } from "./regular_file.ts";
import { adoptedFile, freshFile, grownFile } from "./rewrite.ts";
import type { SessionDocument } from "./schema.ts";

/** The files of one session. Only the document is there while nobody has the session open. */
export interface LogPaths {
  document: string;
  journal: string;
  /** The lock that whoever runs a turn holds. */
  turn: string;
  /** What is to take the document's place. */
  replacement: string;
}

export function logPaths(directory: string, name: string): LogPaths {
  const hidden = (suffix: string) => join(directory, `.${name}.${suffix}`);
  return {
    document: join(directory, `${name}.json`),
    journal: hidden("journal"),
    turn: hidden("turn"),
    replacement: hidden("json.tmp"),
  };
}

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

/** A journal this long is begun anew, after the document it repairs has reached the disk. */
const JOURNAL_LIMIT = 256 * 1024;

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
  #journal: Held | undefined;
  /** How much of the journal `#state` has taken in. */
  #offset = 0;
  #checkpointAt = 0;
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
    return this.#journal && this.#locked(() => this.#sync().open?.index);
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
      if (this.#offset > this.#checkpointAt) this.#checkpoint(next);
    });
  }

  /** Returns when everything appended so far would survive a power failure. */
  sync(): void {
    this.#guard(() => this.#journal?.file.syncDataSync());
  }

  /** Lets go of the files, and removes the journal unless a turn runs. Never throws. */
  close(): void {
    try {
      if (this.#journal !== undefined) this.#locked(() => this.#rest());
    } catch {
      // The journal stays, and repairs the document on the next open.
    }
    this.#closed = true;
    this.#forget();
    this.#document.close();
  }

  #rest(): void {
    const { journal } = this.#options.paths;
    if (lstatIfExists(journal) === undefined) return; // another handle has done it
    if (this.#sync().open !== undefined) return;
    this.#document.trim();
    this.#document.sync();
    Deno.removeSync(journal);
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
    const { head, now, paths } = this.#options;
    removeIfExists(paths.journal); // of a file that was removed by hand
    this.#document.replace(freshFile(head, now()).bytes);
    return head.session_id;
  }

  /** The id of a session that can be appended to, which is repaired first when it has a journal. */
  #inspect(): string {
    const { at, size } = this.#document;
    const { journal, replacement } = this.#options.paths;
    let state: LogState | undefined;
    if (lstatIfExists(journal) === undefined) {
      state = scan(size, at)?.state;
    } else {
      state = this.#sync();
      removeIfExists(temporary(journal)); // a crash can have left these
      removeIfExists(replacement);
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
    const info = this.#journal && look(this.#journal, this.#options.paths.journal);
    if (this.#state !== undefined && info !== undefined) {
      if (info.size > this.#offset) return this.#catchUp(this.#state, info.size);
      // A document that changed although nothing was appended is not the one that was left here.
      if (info.size === this.#offset && !this.#resized) return this.#state;
    }
    return this.#load();
  }

  #catchUp(known: LogState, size: number): LogState {
    const bytes = readAt(this.#journal!.file, this.#offset, size - this.#offset);
    const { state, edits, length } = replay(bytes, copyState(known), this.#document.at);
    return this.#repair(state, edits, this.#offset + length);
  }

  #load(): LogState {
    this.#forget();
    const { name, paths, warn } = this.#options;
    this.#journal = openRegular(paths.journal, { read: true, append: true });
    if (this.#journal === undefined) return this.#start(this.#atRest());
    const { file } = this.#journal;
    const recovered = recover(readAt(file, 0, file.statSync().size), this.#document.at);
    if (recovered !== undefined) {
      this.#checkpointAt = JOURNAL_LIMIT;
      return this.#repair(recovered.state, recovered.edits, recovered.length);
    }
    const state = this.#atRest();
    const aside = `${paths.journal}.${mintId()}`;
    Deno.renameSync(paths.journal, aside);
    warn(`The journal of session ${name} is not about the file beside it; it is kept as ${aside}.`);
    return this.#start(state);
  }

  /** Writes what the document may lack, and cuts off a line that the journal does not have whole. */
  #repair(state: LogState, edits: Edits, length: number): LogState {
    const writes = edits.render(state);
    this.#document.reserve(writes[0]);
    this.#document.put(writes, this.#document.size);
    this.#journal!.file.truncateSync(length);
    this.#offset = length;
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
    const { journal } = this.#options.paths;
    const held = createOwn(temporary(journal), { append: true });
    try {
      const bytes = encode(line(baseOf(state, this.#document.at)));
      writeAllSync(held.file, bytes);
      // Before the document changes: a power failure must find the journal that repairs it.
      if (state.turns > 0) held.file.syncDataSync();
      Deno.renameSync(temporary(journal), journal);
      this.#forget();
      this.#journal = held;
      this.#offset = bytes.length;
      this.#checkpointAt = bytes.length + JOURNAL_LIMIT;
      return this.#state = state;
    } catch (error) {
      held.file.close();
      removeIfExists(temporary(journal));
      throw error;
    }
  }

  #checkpoint(state: LogState): void {
    try {
      this.#document.sync();
      this.#start(state);
    } catch {
      this.#checkpointAt += JOURNAL_LIMIT; // what is appended is safe; the journal only stays longer
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
          this.#journal!.file.syncDataSync();
          rename();
        }),
    );
    this.#state = grown;
    this.#checkpoint(grown);
    return grown;
  }

  /** Writes lines to the journal, then does what they announce; takes them back when that fails. */
  #journalled(lines: string, act: () => void): void {
    const { file } = this.#journal!;
    const bytes = encode(lines);
    try {
      writeAllSync(file, bytes);
      act();
      this.#offset += bytes.length;
    } catch (error) {
      try {
        file.truncateSync(this.#offset);
        this.#load(); // puts the document back to what the journal says
      } catch {
        this.#forget();
      }
      throw error;
    }
  }

  /** Takes nothing for known: the next look reads the journal from its start. */
  #forget(): void {
    this.#journal?.file.close();
    this.#journal = undefined;
    this.#state = undefined;
  }
}

/** Where a journal is written before it takes the old one's place. */
function temporary(journal: string): string {
  return `${journal}.tmp`;
}
