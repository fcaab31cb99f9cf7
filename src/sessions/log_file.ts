import { join } from "node:path";
import { errorMessage, SvcError, usageError } from "../platform/error.ts";
import { removeIfExists, writeAllSync } from "../platform/files.ts";
import { mintId } from "../platform/ids.ts";
import { checkDocument } from "./check.ts";
import {
  copyState,
  decode,
  encode,
  type LogState,
  type ReadAt,
  readHead,
  REGIONS,
  scan,
  spaces,
} from "./layout.ts";
import { applied, baseOf, type Edit, type Edits, line, type Operation } from "./operations.ts";
import { recover, replay } from "./operations.ts";
import { createOwn, type Held, look, lstatIfExists, openRegular, readAt } from "./regular_file.ts";
import { adoptedFile, freshFile, grownFile, type Rewritten } from "./rewrite.ts";
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

/** The document grows by this much at a time, as spaces behind its end; a close takes the rest away. */
const SLACK = 16 * 1024;
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
  #document: Held | undefined;
  #size = 0;
  /** Where the text of the document ends. */
  #end = 0;
  #journal: Held | undefined;
  /** How much of the journal `#state` has taken in. */
  #offset = 0;
  #checkpointAt = 0;
  #state: LogState | undefined;
  /** Whether the document is new and never reached the disk. */
  #fresh = false;
  readonly #at: ReadAt = (offset, length) => readAt(this.#document!.file, offset, length);

  /**
   * Opens a session file and repairs what a crash left. An empty file, which is how one is born, gets
   * its beginning.
   *
   * @throws SvcError `session_unreadable` (exit 2) for a file that cannot be appended to
   */
  constructor(options: LogFileOptions) {
    this.#options = options;
    let created = false;
    this.session_id = this.#locked((size) => {
      created = size === 0;
      return created ? this.#begin() : this.#inspect(size);
    });
    this.created = created;
  }

  /** The index of the turn that runs, as far as the log knows. */
  running(): number | undefined {
    // Without a journal the file is at rest.
    return this.#journal && this.#locked((size) => this.#sync(size).open?.index);
  }

  /**
   * Appends the operations that `make` returns for the present state. When this returns they survive
   * the end of the process; when it throws, none of them happened.
   *
   * @throws SvcError `session_write`
   */
  commit(make: (state: LogState, read: ReadAt) => Operation[]): void {
    this.#locked((size) => {
      let state = this.#sync(size);
      const operations = make(state, this.#at);
      if (operations.length === 0) return;
      let { next, edits } = applied(state, operations);
      if (REGIONS.some((name) => next.regions[name].used > next.regions[name].capacity)) {
        state = this.#grow(state, next);
        ({ next, edits } = applied(state, operations));
      }
      const writes = edits.render(next);
      this.#reserve(writes[0]);
      this.#journalled(operations.map(line).join(""), () => this.#put(writes, this.#end));
      this.#state = next;
      if (this.#offset > this.#checkpointAt) this.#checkpoint(next);
    });
  }

  /** Returns when everything appended so far would survive a power failure. */
  sync(): void {
    this.#guard(() => {
      this.#journal?.file.syncDataSync();
      if (this.#fresh) this.#document?.file.syncDataSync();
      this.#fresh = false;
    });
  }

  /** Lets go of the files, and removes the journal unless a turn runs. Never throws. */
  close(): void {
    try {
      if (this.#journal !== undefined) this.#locked((size) => this.#rest(size));
    } catch {
      // The journal stays, and repairs the document on the next open.
    }
    this.#forget();
    this.#document?.file.close();
    this.#document = undefined;
  }

  #rest(size: number): void {
    const { journal } = this.#options.paths;
    if (lstatIfExists(journal) === undefined) return; // another handle has done it
    if (this.#sync(size).open !== undefined) return;
    const { file } = this.#document!;
    file.truncateSync(this.#end);
    file.syncDataSync();
    Deno.removeSync(journal);
  }

  /** Runs `body`, with the size of the document, while this handle alone has it locked. */
  #locked<T>(body: (size: number) => T): T {
    return this.#guard(() => {
      const size = this.#lock();
      try {
        return body(size);
      } finally {
        this.#document?.file.unlockSync();
      }
    });
  }

  #lock(): number {
    const { name, paths } = this.#options;
    while (true) {
      this.#document ??= openRegular(paths.document, { read: true, write: true });
      if (this.#document === undefined) {
        throw new SvcError("session_removed", `Session ${name} was removed.`, {
          hint: "Start another session.",
        });
      }
      this.#document.file.lockSync(true);
      const info = look(this.#document, paths.document);
      if (info !== undefined) return info.size;
      // Replaced by a file with more room, or removed, while this handle did not look.
      this.#document.file.close();
      this.#document = undefined;
      this.#forget();
    }
  }

  #guard<T>(body: () => T): T {
    try {
      return body();
    } catch (error) {
      if (error instanceof SvcError) throw error;
      const { name } = this.#options;
      throw new SvcError(
        "session_write",
        `Session ${name} could not be written: ${errorMessage(error)}`,
        { hint: "What was logged before is kept. Make room or access, then go on.", cause: error },
      );
    }
  }

  /** Writes the beginning of a new file. */
  #begin(): string {
    const { head, now, paths } = this.#options;
    removeIfExists(paths.journal); // of a file that was removed by hand
    const { file } = this.#document!;
    try {
      writeAllSync(file, freshFile(head, now()).bytes);
    } catch (error) {
      file.truncateSync(0);
      throw error;
    }
    this.#fresh = true;
    return head.session_id;
  }

  /** The id of a session that can be appended to, which is repaired first when it has a journal. */
  #inspect(size: number): string {
    this.#size = size;
    const state = lstatIfExists(this.#options.paths.journal) === undefined
      ? scan(size, this.#at)?.state
      : this.#sync(size);
    if (state === undefined) {
      const { turns, session_id } = this.#parse();
      if (turns.some(({ status }) => status === "running")) this.#sync(size);
      return session_id;
    }
    return readHead(state.regions, this.#at)!.session_id as string;
  }

  /** Brings `#state` up to the journal, and the document with it. */
  #sync(size: number): LogState {
    const resized = size !== this.#size;
    this.#size = size;
    const info = this.#journal && look(this.#journal, this.#options.paths.journal);
    if (this.#state !== undefined && info !== undefined) {
      if (info.size > this.#offset) return this.#catchUp(this.#state, info.size);
      // A document that changed although nothing was appended is not the one that was left here.
      if (info.size === this.#offset && !resized) return this.#state;
    }
    return this.#load();
  }

  #catchUp(known: LogState, size: number): LogState {
    const bytes = readAt(this.#journal!.file, this.#offset, size - this.#offset);
    const { state, edits, length } = replay(bytes, copyState(known), this.#at);
    return this.#repair(state, edits, this.#offset + length);
  }

  #load(): LogState {
    this.#forget();
    const { name, paths, warn } = this.#options;
    this.#journal = openRegular(paths.journal, { read: true, append: true });
    if (this.#journal === undefined) return this.#start(this.#atRest());
    const { file } = this.#journal;
    const recovered = recover(readAt(file, 0, file.statSync().size), this.#at);
    if (recovered !== undefined) {
      this.#checkpointAt = recovered.length + JOURNAL_LIMIT;
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
    this.#reserve(writes[0]);
    this.#put(writes, this.#size);
    this.#journal!.file.truncateSync(length);
    this.#offset = length;
    return this.#state = state;
  }

  /** The state of a document that needs no journal; one that came from elsewhere is laid out anew. */
  #atRest(): LogState {
    const scanned = scan(this.#size, this.#at);
    if (scanned !== undefined) {
      this.#end = scanned.end;
      return scanned.state;
    }
    return this.#replace(adoptedFile(this.#parse(), this.#options.now()));
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
      value = JSON.parse(decode(this.#at(0, this.#size)));
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
    const temporary = `${journal}.tmp`;
    const held = createOwn(temporary, { append: true });
    try {
      const bytes = encode(line(baseOf(state, this.#at)));
      writeAllSync(held.file, bytes);
      // Before the document changes: a power failure must find the journal that repairs it.
      if (!this.#fresh) held.file.syncDataSync();
      Deno.renameSync(temporary, journal);
      this.#forget();
      this.#journal = held;
      this.#offset = bytes.length;
      this.#checkpointAt = bytes.length + JOURNAL_LIMIT;
      return this.#state = state;
    } catch (error) {
      held.file.close();
      removeIfExists(temporary);
      throw error;
    }
  }

  #checkpoint(state: LogState): void {
    try {
      this.#document!.file.syncDataSync();
      this.#fresh = false;
      this.#start(state);
    } catch {
      this.#checkpointAt += JOURNAL_LIMIT; // what is appended is safe; the journal only stays longer
    }
  }

  /** Makes room in the arrays that `next` fills; the journal says which of the two files it is for. */
  #grow(state: LogState, next: LogState): LogState {
    const rewritten = grownFile(state, next, this.#end, this.#at);
    const { bytes } = rewritten;
    const base = baseOf(rewritten.state, (at, length) => bytes.subarray(at, at + length));
    const grown = this.#replace(
      rewritten,
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

  /** Puts a whole new file in the document's place. The lock goes over to it. */
  #replace(
    { bytes, state }: Rewritten,
    around: (rename: () => void) => void = (rename) => rename(),
  ): LogState {
    const { document, replacement } = this.#options.paths;
    const old = this.#document!.file;
    const held = createOwn(replacement, { mode: (old.statSync().mode ?? 0o644) & 0o777 });
    try {
      held.file.lockSync(true);
      writeAllSync(held.file, bytes);
      held.file.syncDataSync();
      around(() => Deno.renameSync(replacement, document));
    } catch (error) {
      held.file.close();
      removeIfExists(replacement);
      throw error;
    }
    this.#document = held;
    this.#size = this.#end = bytes.length;
    old.close();
    return state;
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
      file.truncateSync(this.#offset);
      try {
        this.#load(); // puts the document back to what the journal says
      } catch {
        this.#forget();
      }
      throw error;
    }
  }

  /** Sees to it that `edit` fits into the document as it is: a full disk must show before the change. */
  #reserve({ at, bytes }: Edit): void {
    const end = at + bytes.length;
    if (end <= this.#size) return;
    const { file } = this.#document!;
    const before = this.#size;
    try {
      file.seekSync(before, Deno.SeekMode.Start);
      writeAllSync(file, spaces(end + SLACK - before));
      this.#size = end + SLACK;
    } catch (error) {
      file.truncateSync(before);
      throw error;
    }
  }

  /** Writes into the document. Text that ended before `oldEnd` is blanked where the new ends earlier. */
  #put([turns, ...entries]: [Edit, ...Edit[]], oldEnd: number): void {
    const { file } = this.#document!;
    const write = ({ at, bytes }: Edit) => {
      file.seekSync(at, Deno.SeekMode.Start);
      writeAllSync(file, bytes);
    };
    const end = turns.at + turns.bytes.length;
    write(turns);
    if (oldEnd > end) write({ at: end, bytes: spaces(oldEnd - end) });
    entries.forEach(write);
    this.#end = end;
  }

  /** Takes nothing for known: the next look reads the journal from its start. */
  #forget(): void {
    this.#journal?.file.close();
    this.#journal = undefined;
    this.#state = undefined;
  }
}
