import { type Clock, timestamp } from "../platform/clock.ts";
import { SvcError } from "../platform/error.ts";
import { removeIfExists } from "../platform/files.ts";
import type {
  Answer,
  Journal,
  JournalState,
  Lease,
  SessionContent,
  SessionRow,
  SharedStore,
  StoreLink,
} from "../store/port.ts";
import { Attachments, keptTexts, MOST_KEPT } from "./attachments.ts";
import { decode, type LogState } from "./document.ts";
import type { LogPaths } from "./files.ts";
import type { Operation } from "./journal.ts";
import type { LogFile } from "./log_file.ts";
import { firstPrompt, isRunning } from "./look.ts";
import { isId, isSessionName, NAMED } from "./names.ts";
import { type LeftOut, LeftOutResults } from "./results.ts";
import type { Part, SessionDocument } from "./schema.ts";
import {
  busyError,
  endOfDead,
  type SharedSession,
  tryTurnLock,
  type TurnLock,
  wholeTurn,
} from "./session.ts";

/** Milliseconds between two attempts to lock a copy, which other processes lock for moments. */
const POLL = 10;
/** Characters of the operations that are applied to a copy, or sent to the store, at a time. */
const CHUNK = 1024 * 1024;

/** The prefix of the name of a content that is kept from a tool: an image that it gave, the whole of a long result. */
const KEPT = "kept/";

/** The copies of the sessions in the files of one worktree. */
export interface Copies {
  /** The files of a copy, whose folder exists. */
  paths(name: string): LogPaths;
  /** Opens a copy; undefined when it is missing. @throws SvcError `session_unreadable` */
  open(name: string): LogFile | undefined;
  /** Writes a document in place of what is there, and removes its journal. */
  replace(name: string, text: string): void;
  /** Removes the files of a copy. */
  drop(name: string): void;
}

/**
 * The sessions of a shared store. Their operations are rows there, and the files of a worktree are a copy: before it
 * is used it is brought up to date by the rows after its position (see `copyPosition`). One process at a time may
 * append to a session, which it holds by a lease; it appends to its copy first, as without a store, and sends the same
 * operations to the store in their order. A copy whose position is that of no row, since its process was killed or
 * lost the lease before it had sent everything, is written anew. What a session keeps next to its log, attachments and
 * left-out results, is sent together with the operations that name it.
 *
 * The processes of one machine share a copy. The lock file `.<name>.copy` is held by the one that appends, and for the
 * moment in which one brings it up to date.
 */
export class SharedSessions {
  readonly #link: StoreLink;
  readonly #copies: Copies;
  readonly #clock: Clock;
  readonly #held = new Map<string, HeldSession>();
  readonly #pulls = new Map<string, Promise<void>>();
  readonly #tasks = new Set<Promise<void>>();

  constructor(link: StoreLink, copies: Copies, clock: Clock) {
    this.#link = link;
    this.#copies = copies;
    this.#clock = clock;
  }

  /** A session as this process may hold it. */
  session(name: string): HeldSession {
    let held = this.#held.get(name);
    if (held === undefined) {
      const take = (log: LogFile, options: HoldOptions) => this.#take(name, log, options);
      const over = (lost: boolean) => {
        this.#held.delete(name);
        if (!lost) this.#append(name);
      };
      const host = { copies: this.#copies, clock: this.#clock, take, over };
      this.#held.set(name, held = new HeldSession(name, host));
    }
    return held;
  }

  /**
   * Brings the copy of a session up to date, of an id those of all that have it, unless a process of this machine
   * appends to it: that one is ahead of the store. The copy of a session that was deleted is removed.
   *
   * @param given a name or a handle
   */
  async current(given: string): Promise<void> {
    const id = given.replace(/^#/, "");
    const named = isId(id) ? await (await this.#link.open()).index.named(id) : [];
    if (given.startsWith(NAMED)) named.push(given.slice(NAMED.length));
    else if (!given.startsWith("#")) named.push(given);
    for (const name of named) await this.#update(name);
  }

  async #update(name: string): Promise<void> {
    if (!isSessionName(name)) return;
    const held = this.#held.get(name);
    await held?.ending;
    if (held?.holds) return;
    let pull = this.#pulls.get(name);
    if (pull === undefined) {
      pull = this.#pull(name).finally(() => this.#pulls.delete(name));
      this.#pulls.set(name, pull);
    }
    await pull;
  }

  /**
   * Saves an answer for a session, and appends it now unless another process may append: that one does it at the end of
   * its turn.
   *
   * @returns the text that was saved first for this marker; undefined when there is no such session
   */
  async deliver(name: string, answer: Answer): Promise<string | undefined> {
    const { journal } = await this.#link.open();
    const text = await journal.answer(name, answer);
    if (text === undefined) return undefined;
    const held = this.#held.get(name);
    if (held?.holds) await held.answer();
    else await this.#hold(name);
    return text;
  }

  /** Appends the answers that wait for a session which was released: they may have come at this moment. */
  #append(name: string): void {
    const work = async () => {
      const { journal } = await this.#link.open();
      if ((await journal.waiting(name)).length > 0) await this.#hold(name);
    };
    const task = work().catch(() => {}).finally(() => this.#tasks.delete(task));
    this.#tasks.add(task);
  }

  /** Holds a session for a moment, which appends what waits for it, unless another process has it. */
  async #hold(name: string): Promise<void> {
    await this.current(name);
    const log = this.#copies.open(name);
    if (log === undefined) return;
    try {
      const session = this.session(name);
      await session.hold(log, { created: false, wait: false });
      session.release();
      await session.flush();
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== "session_busy") throw error;
    } finally {
      log.close();
    }
  }

  /** Removes a session from the store. @returns false when it has none @throws SvcError `session_busy` */
  async remove(name: string): Promise<boolean> {
    const { journal, leases } = await this.#link.open();
    if ((await journal.find(name, "")).last === 0) return false;
    const lease = await leases.take(`session/${name}`);
    if (lease === undefined) throw busyError(name);
    try {
      await journal.remove(name, lease);
    } finally {
      await lease.release();
    }
    return true;
  }

  /** Resolves when the store has everything that was appended, and no session is held for an append that is over. */
  async settled(): Promise<void> {
    while (this.#tasks.size > 0 || [...this.#held.values()].some(({ ending }) => ending)) {
      await Promise.all([
        ...this.#tasks,
        ...Array.from(this.#held.values(), ({ ending }) => ending),
      ]);
    }
  }

  async #pull(name: string): Promise<void> {
    const lock = await this.#lock(name, true);
    if (lock === undefined) return;
    try {
      const { journal } = await this.#link.open();
      using copy = new OpenCopy(name, this.#copies);
      const { removed } = await copy.update(journal);
      if (removed) this.#copies.drop(name);
    } finally {
      lock.release();
    }
  }

  /** Takes the lease of a session, and brings its copy up to date. */
  async #take(name: string, log: LogFile, options: HoldOptions): Promise<Held> {
    const { created, signal, onWait, wait = true } = options;
    const store = await this.#link.open();
    let lease = await store.leases.take(`session/${name}`);
    if (lease === undefined) {
      if (!wait) throw busyError(name);
      onWait?.();
      lease = await store.leases.wait(`session/${name}`, signal);
    }
    let lock: TurnLock | undefined;
    try {
      lock = (await this.#lock(name, false, signal))!;
      const copy = new OpenCopy(name, this.#copies, log);
      const { seq, removed, waiting } = await copy.update(store.journal);
      if (removed && !created) {
        this.#copies.drop(name);
        throw new SvcError("session_removed", `Session ${name} was removed.`, {
          hint: "Start another session.",
        });
      }
      return { store, lease, lock, seq, waiting };
    } catch (error) {
      lock?.release();
      await lease.release();
      throw error;
    }
  }

  /** Locks a copy. @returns undefined with `idle` while a turn of this machine runs in it */
  async #lock(name: string, idle: boolean, signal?: AbortSignal): Promise<TurnLock | undefined> {
    const paths = this.#copies.paths(name);
    while (true) {
      const lock = tryTurnLock(paths.copy);
      if (lock !== undefined) return lock;
      if (idle && isRunning(paths)) return undefined;
      await this.#clock.sleep(POLL, signal);
    }
  }
}

/** The copy of a session, with its lock held. */
class OpenCopy implements Disposable {
  readonly #name: string;
  readonly #copies: Copies;
  readonly #given: LogFile | undefined;
  #log: LogFile | undefined;

  /** @param given the open log of the copy. Default: it is opened here */
  constructor(name: string, copies: Copies, given?: LogFile) {
    this.#name = name;
    this.#copies = copies;
    this.#given = this.#log = given;
  }

  /**
   * Applies the rows after the position of the copy.
   *
   * @returns the sequence number of the newest row; 0 where the store has none
   */
  async update(
    journal: Journal,
  ): Promise<{ seq: number } & Pick<JournalState, "removed" | "waiting">> {
    const { last, found, contents, ...state } = await journal.find(this.#name, this.#position());
    if (last === found) return { seq: last, ...state };
    if (found === 0) removeIfExists(this.#copies.paths(this.#name).results);
    if (contents) await this.#keep(journal.contents(this.#name, found, last));
    let operations: Operation[] = [];
    let size = 0;
    for await (const row of journal.read(this.#name, found, last)) {
      if (row.seq === 1) {
        this.#reset(row.record);
        continue;
      }
      operations.push(JSON.parse(row.record));
      size += row.record.length;
      if (size < CHUNK) continue;
      this.#apply(operations);
      operations = [];
      size = 0;
    }
    this.#apply(operations);
    return { seq: last, ...state };
  }

  async #keep(contents: AsyncIterable<SessionContent>): Promise<void> {
    const { results, attached, kept } = this.#copies.paths(this.#name);
    const given = new Attachments(kept, MOST_KEPT);
    for await (const { name, content } of contents) {
      if (name.startsWith("result/")) {
        new LeftOutResults(results).append(JSON.parse(new TextDecoder().decode(content)));
      } else if (name.startsWith(KEPT) && name.endsWith(".txt")) {
        await given.keepText(new TextDecoder().decode(content));
      } else {
        const into = name.startsWith(KEPT) ? given : new Attachments(attached);
        await into.keep({ name, content: new Uint8Array(content) });
      }
    }
  }

  [Symbol.dispose](): void {
    if (this.#given === undefined) this.#log?.close();
  }

  /** Empty for a copy that is missing or damaged. */
  #position(): string {
    try {
      this.#log ??= this.#copies.open(this.#name);
      return this.#log?.position() ?? "";
    } catch {
      return "";
    }
  }

  #reset(text: string): void {
    this.#copies.replace(this.#name, text);
    if (this.#given !== undefined) return;
    this.#log?.close();
    this.#log = this.#copies.open(this.#name);
  }

  #apply(operations: Operation[]): void {
    this.#log!.apply(() => operations);
  }
}

type HoldOptions = Parameters<SharedSession["hold"]>[1] & {
  /** Whether to wait while another process holds it; else SvcError `session_busy` is thrown. Default: true. */
  wait?: boolean;
};

/** What a process has while it holds a session. */
interface Held {
  store: SharedStore;
  lease: Lease;
  lock: TurnLock;
  /** Sequence number of the newest row. */
  seq: number;
  /** Whether answers wait for the session. */
  waiting: boolean;
}

/** What a session is held with. */
interface Host {
  copies: Copies;
  clock: Clock;
  take(log: LogFile, options: HoldOptions): Promise<Held>;
  /** Called when the session is free; `lost`: this process could not append to it any more. */
  over(lost: boolean): void;
}

/** A session that handles of this process hold together, and the operations that the store does not have yet. */
class HeldSession implements SharedSession {
  /** Resolves when a session that was released is free. */
  ending: Promise<void> | undefined;
  readonly #name: string;
  readonly #host: Host;
  #held: Held | undefined;
  /** The handles that hold it, and those that are about to. */
  #users = 0;
  #entering = 0;
  #taking: Promise<void> | undefined;
  #sending: Promise<void> | undefined;
  #released = Promise.withResolvers<void>();
  #lost = new AbortController();
  #rows: { record: string; position: string }[] = [];
  /** What the rows name, where it is still kept. */
  #contents: (() => SessionContent | undefined)[] = [];
  #entry: SessionRow = NO_ENTRY;
  /** The markers of answers that were appended, which the store still has as waiting. */
  #answered = new Set<string>();

  constructor(name: string, host: Host) {
    this.#name = name;
    this.#host = host;
  }

  /** Whether this process may append, and so has the newest copy. */
  get holds(): boolean {
    return this.#held !== undefined;
  }

  async hold(log: LogFile, options: HoldOptions): Promise<AbortSignal> {
    this.#entering++;
    try {
      while (true) {
        options.signal?.throwIfAborted();
        if (this.ending !== undefined) await this.ending;
        else if (this.#taking !== undefined) await this.#taking.catch(() => {});
        else if (this.#held === undefined) {
          this.#taking = this.#begin(log, options).finally(() => this.#taking = undefined);
          await this.#taking;
          break;
        } else if (!this.#lost.signal.aborted) break;
        else await this.#released.promise; // those that have lost it still hold it
      }
    } finally {
      this.#entering--;
    }
    this.#users++;
    return this.#lost.signal;
  }

  check(): void {
    this.#lost.signal.throwIfAborted();
  }

  appended(operations: Operation[], state: LogState, position: string): void {
    for (const [i, operation] of operations.entries()) {
      const last = i === operations.length - 1;
      this.#rows.push({ record: JSON.stringify(operation), position: last ? position : "" });
    }
    const parts = operations.flatMap((each) => "part" in each ? [each.part] : []);
    this.#attach(parts);
    this.#describe(state, firstPrompt(parts));
    this.#send();
  }

  leftOut(result: LeftOut): void {
    this.#attachFrom("kept", keptTexts(result.sent));
    this.#contents.push(() => ({
      name: `result/${result.turn}/${result.part}`,
      content: new TextEncoder().encode(JSON.stringify(result)),
    }));
  }

  /** Has the attachments of parts sent, and the whole of results that are too long. */
  #attach(parts: readonly Part[]): void {
    const digests = ({ attachments = [] }: Part & { type: "user" | "tool" }) =>
      attachments.map(({ digest }) => digest);
    for (const part of parts) {
      if (part.type === "user") this.#attachFrom("attached", digests(part));
      if (part.type !== "tool") continue;
      this.#attachFrom("kept", [...digests(part), ...keptTexts(part.output)]);
    }
  }

  #attachFrom(folder: "attached" | "kept", names: Iterable<string>): void {
    for (const digest of names) {
      this.#contents.push(() => {
        const from = new Attachments(this.#host.copies.paths(this.#name)[folder]);
        const content = from.read({ digest });
        return content && { name: (folder === "kept" ? KEPT : "") + digest, content };
      });
    }
  }

  async flush(): Promise<void> {
    await this.#sending;
    await this.ending;
    this.check();
  }

  release(): void {
    if (--this.#users === 0) this.ending = this.#end();
  }

  /** Appends the answers that wait for the session. */
  async answer(): Promise<void> {
    const waiting = await this.#held!.store.journal.waiting(this.#name);
    const left = waiting.filter(({ marker }) => !this.#answered.has(marker));
    const log = left.length === 0 ? undefined : this.#host.copies.open(this.#name);
    if (log === undefined) return;
    try {
      log.shared = this;
      for (const { marker, text } of left) {
        this.#answered.add(marker);
        const part = { type: "user" as const, text: marker + text };
        log.commit((state) => [wholeTurn(state, part, timestamp(this.#host.clock))]);
      }
    } finally {
      log.close();
    }
    await this.#sending;
  }

  async #begin(log: LogFile, options: HoldOptions): Promise<void> {
    this.#held = await this.#host.take(log, options);
    this.#lost = new AbortController();
    this.#released = Promise.withResolvers();
    this.#rows = [];
    this.#contents = [];
    this.#entry = { ...NO_ENTRY };
    this.#answered.clear();
    const { lease: { lost }, seq, waiting } = this.#held;
    lost.addEventListener("abort", () => this.#lose(lost.reason), { once: true });
    try {
      const dead = (state: LogState) => endOfDead(state, timestamp(this.#host.clock));
      if (seq > 0) {
        log.shared = this;
        log.commit(dead);
      } else {
        log.apply(dead);
        this.#first(log);
      }
      if (waiting) await this.answer();
    } catch (error) {
      await this.#end();
      throw error;
    } finally {
      log.shared = undefined;
    }
  }

  /** Sends the first row of a session: its document as it is. */
  #first(log: LogFile): void {
    const record = decode(log.bytes());
    const { session_id: id, created_at, role = "", job = "", parent_id = "", ...document }:
      SessionDocument = JSON.parse(record);
    this.#entry.head = { id, created_at, role, job, parent_id };
    this.#rows.push({ record, position: log.position() });
    const { turns, updated_at } = document;
    const state = { turns: turns.at(-1)?.index ?? 0, updated_at, settled: record.length };
    const parts = turns.flatMap(({ parts }) => parts);
    this.#attach(parts);
    for (const result of new LeftOutResults(this.#host.copies.paths(this.#name).results).all()) {
      this.leftOut(result);
    }
    this.#describe(state, firstPrompt(parts));
    this.#send();
  }

  /** Notes what lists show of the session. */
  #describe(
    { turns, updated_at, settled, open }: Pick<
      LogState,
      "turns" | "updated_at" | "settled" | "open"
    >,
    first_prompt: string | undefined,
  ): void {
    const entry = this.#entry;
    Object.assign(entry, { turns, updated_at, bytes: settled, open: open !== undefined });
    entry.first_prompt ??= first_prompt;
  }

  /** Sends the rows, also those that are added meanwhile. */
  #send(): void {
    this.#sending ??= this.#sendAll().catch((error) => this.#lose(error)).finally(() =>
      this.#sending = undefined
    );
  }

  async #sendAll(): Promise<void> {
    await Promise.resolve(); // operations that are appended together are sent together
    const { store: { journal }, lease } = this.#held!;
    while (this.#rows.length > 0) {
      let size = 0;
      const contents: SessionContent[] = [];
      while (size < CHUNK && this.#contents.length > 0) {
        const content = this.#contents.shift()!();
        if (content !== undefined) contents.push(content);
        size += content?.content.length ?? 0;
      }
      // What rows name is in the store before them.
      const most = this.#contents.length > 0 ? 0 : Infinity;
      const end = this.#rows.findIndex(({ record }) => (size += record.length) > CHUNK);
      const rows = this.#rows.slice(0, Math.min(most, end < 0 ? Infinity : Math.max(1, end)));
      const isAll = rows.length === this.#rows.length;
      const answers = isAll ? [...this.#answered] : []; // they are among the last rows
      const entry = { ...this.#entry, answers };
      const after = this.#held!.seq;
      const sent = { after, rows, entry, contents };
      this.#held!.waiting = await journal.append(this.#name, lease, sent);
      if (this.#lost.signal.aborted) return;
      this.#held!.seq += rows.length;
      this.#rows.splice(0, rows.length);
      if (rows.length > 0) this.#entry.head = undefined;
    }
  }

  #lose(reason: unknown): void {
    if (this.#lost.signal.aborted) return;
    this.#rows = [];
    this.#contents = [];
    this.#lost.abort(reason);
  }

  async #end(): Promise<void> {
    await this.#sending;
    const { lease, lock, waiting } = this.#held!;
    const { signal } = this.#lost;
    if (waiting && !signal.aborted) await this.answer().catch((error) => this.#lose(error));
    // Another process may have appended to it. What the store cannot take now stays in the file until it can be read.
    if (signal.aborted && (signal.reason as SvcError).code === "lease_lost") {
      this.#host.copies.drop(this.#name);
    }
    const released = lease.release().catch(() => {}); // it expires
    if (!signal.aborted) await released;
    lock.release();
    this.#held = undefined;
    this.ending = undefined;
    this.#released.resolve();
    if (this.#entering === 0) this.#host.over(signal.aborted);
  }
}

const NO_ENTRY: SessionRow = { turns: 0, updated_at: "", bytes: 0, open: false, answers: [] };
