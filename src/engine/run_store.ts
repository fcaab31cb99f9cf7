import { createHash } from "node:crypto";
import { join } from "node:path";
import * as z from "zod/mini";
import { type Clock, Pace, timestamp } from "../platform/clock.ts";
import { errorMessage, SvcError, writeFailure } from "../platform/error.ts";
import {
  exists,
  type HeldLock,
  jsonOr,
  makeFolder,
  readTextIfExists,
  tryHold,
  tryRemove,
  withFileLock,
  writeFileAtomic,
} from "../platform/files.ts";
import { filesOf, modified } from "../sessions/listing.ts";
import type { Decision, Lease, RecordCopy, RecordRow, StoreLink } from "../store/port.ts";
import { sealing } from "./run_seal.ts";
import { taskFields } from "./task.ts";

export const RUN_STATES = ["queued", "running", "waiting", "done", "failed", "cancelled"] as const;
export type RunState = typeof RUN_STATES[number];

const text = z._default(z.string(), "");

const runSchema = z.object({
  id: z.string(),
  /** `waiting`: it has parked asks, and continues when they are answered. */
  state: z.enum(RUN_STATES),
  /** Why it failed or was cancelled: a reason of a turn result, `interrupted`, or one of a job; else empty. */
  reason: text,
  /** The same as a sentence. */
  error: text,
  /** Name of its session; empty until its first turn begins, where the request names none. */
  session: text,
  /** Indices of its turns in the log of that session. */
  turns: z._default(z.array(z.int()), []),
  /** Ids of the asks that it has parked. */
  asks: z._default(z.array(z.int()), []),
  /** Messages that it has not read yet. */
  messages: z._default(z.array(z.string()), []),
  /** ISO 8601, as the other times; those that are yet to come are empty. */
  queued_at: z.string(),
  started_at: text,
  ended_at: text,
  request: z.object({
    prompt: z.string(),
    role: text,
    task: z.object(taskFields()),
    /** Whether the client had a token; see `TurnRequest.confirmed`. */
    confirmed: z._default(z.boolean(), false),
    /** The address that is told of its end; empty: none. */
    webhook: text,
    /** The job that a hook starts, and the event that it is passed as data. */
    hook: z.optional(z.object({ job: z.string(), event: z.string(), data: z.string() })),
  }),
  /** The last turn's result without the texts and calls, which the log has. */
  result: z.optional(z.record(z.string(), z.unknown())),
  /** Digest of the idempotency key; empty: the request had none. */
  key: text,
  /** Digest of the request's body. */
  body: text,
  /** The server that runs it; empty: none does. */
  owner: text,
  /** Who runs it or has run it, where several machines share a store: `<host>/<process id>`. */
  worker: text,
  /** HMAC of its id and request: a server of this user has accepted it. */
  seal: text,
  /** Whether its end is yet to be told to the webhook. */
  unreported: z._default(z.boolean(), false),
});

/** An accepted run, `.svc/runs/<id>.json`. The content of its turns is in the log of its session. */
export type Run = z.infer<typeof runSchema>;
export type RunRequest = Run["request"];

/** The beginning is the time of acceptance: names sort by it. The end cannot be guessed. */
const ID = /^run_\d{17}_[\w-]{22}$/;
/** The name of a key's file. */
const DIGEST = /^[0-9a-f]{64}$/;
/** Ended runs that are kept at most. */
const MOST = 10_000;
/** Further ended runs after which the oldest ones are removed. */
const EXCESS = 500;

const ENDED: readonly RunState[] = ["done", "failed", "cancelled"];

/** Whether a run has ended. */
export function isEnded({ state }: Pick<Run, "state">): boolean {
  return ENDED.includes(state);
}

/**
 * The accepted runs of a worktree, `.svc/runs/`. Several servers may use it: each run belongs to at most one, which
 * alone changes it. `open/` has the ids of the runs that have not ended, or whose end is yet to be told, so that they
 * are found without reading the others. All files are readable by their owner alone.
 */
export class RunStore {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #warn: (message: string) => void;
  readonly #user: string;
  readonly #store: StoreLink | undefined;
  readonly #copy: RecordCopy;
  /** Shows the other machines that this server lives. */
  #lease: Lease | undefined;
  /**
   * Runs as this server has changed them, where the store does not have that yet. Their files may be older: the other
   * processes of the worktree write what the store has.
   */
  readonly #unsent = new Map<string, Run>();
  /** Those that are being sent. */
  #sent: readonly Run[] = [];
  #sending: Promise<void> | undefined;
  /** Called with a run of this server that another one has taken, since this one was given up for dead. */
  lost: (id: string) => void = () => {};
  /** Called with a run that another machine has changed. */
  changed: (run: Run) => void = () => {};
  /** This server, in records. */
  readonly #owner = crypto.randomUUID();
  #lock: HeldLock | undefined;
  /** For pieces of work on many runs: one piece in a turn of the event loop. */
  readonly #pace = new Pace();
  /** What lists show of ended runs, which do not change any more. */
  readonly #ended = new Map<string, Run>();
  #names: { stamp: number; names: string[] } | undefined;
  /** How many more runs are accepted before they are counted. */
  #uncounted = 0;

  /**
   * @param options.state `<worktree>/.svc`
   * @param options.user `~/.config/svc`
   * @param options.store shares the runs with other machines
   */
  constructor({ state, user, clock, warn, store }: {
    state: string;
    user: string;
    clock: Clock;
    warn: (message: string) => void;
    store?: StoreLink;
  }) {
    this.#directory = join(state, "runs");
    this.#user = user;
    this.#clock = clock;
    this.#warn = warn;
    this.#store = store;
    this.#copy = {
      name: "run",
      kinds: ["run", "run_key"],
      path: join(state, "store", "run"),
      stamp: () => exists(this.#directory) ? "there" : "",
      apply: (rows) => this.#apply(rows),
      entries: () => this.#rows(),
      known: () => this.#ids().map((key) => ({ kind: "run", key })),
    };
    store?.register(this.#copy);
  }

  /**
   * Accepts a run, once for each key. It survives the end of the process when this resolves.
   *
   * @param key names the request of a client that may send it again
   * @returns the run that this key has named before, as `known`
   * @throws SvcError `key_reused` when that run has another body; `registry_write`
   */
  async accept(
    given: Pick<Run, "request"> & Partial<Pick<Run, "session" | "body">>,
    key?: string,
  ): Promise<{ run: Run; known: boolean }> {
    const seal = await sealing(this.#directory, this.#user, this.#store);
    const owner = await this.#identify();
    const known = (): Run | undefined =>
      key === undefined ? undefined : this.named(key, given.body);
    const accepted = await this.#change("keys", () => {
      const before = known();
      if (before !== undefined) return { rows: [], result: { run: before, known: true } };
      const id = mintRunId(this.#clock);
      const queued_at = timestamp(this.#clock);
      const named = key === undefined ? {} : { key: digest(key) };
      const run = runSchema.parse({ ...given, ...named, id, state: "queued", queued_at, owner });
      run.seal = seal(run);
      const keys = run.key === "" ? [] : [{ kind: "run_key", key: run.key, value: { id } }];
      return { rows: [...keys, rowOf(run)], result: { run, known: false } };
    });
    if (!accepted.known && this.#uncounted-- === 0) {
      if (this.#ids().length > MOST + EXCESS) await this.prune();
      // Other servers accept runs too.
      this.#uncounted = Math.ceil(Math.max(0, MOST + EXCESS - this.#ids().length) / 2);
    }
    return accepted;
  }

  /**
   * The run that a key names.
   *
   * @param body digest of the request's body
   * @throws SvcError `key_reused` when the run has another one
   */
  named(key: string, body = ""): Run | undefined {
    const id = readTextIfExists(this.#keyFile(digest(key)))?.trim();
    const run = id === undefined ? undefined : this.get(id);
    if (run === undefined || run.body === body) return run;
    throw new SvcError("key_reused", "the key belongs to a request with another body");
  }

  /**
   * Makes a run this server's own, when no other server has it. A record that came with the worktree, from a clone for
   * example, was accepted by no server of this user: it is never taken.
   *
   * @param wanted whether a run in its current state is to be taken
   * @param taken called with it before anything else may take it
   * @returns whether it was taken: no other server has it, and it was wanted
   * @throws SvcError `run_foreign`
   */
  async take(
    id: string,
    wanted: (run: Run) => boolean,
    taken: (run: Run) => void,
  ): Promise<boolean> {
    if (this.get(id) === undefined) return false;
    const seal = await sealing(this.#directory, this.#user, this.#store);
    const owner = await this.#identify();
    await this.flush();
    return await this.#change("open", async () => {
      // Looked at here: the server that has taken the run may have started a moment ago.
      const alive = await this.#alive();
      const run = this.get(id);
      if (run === undefined || !wanted(run) || this.#isForeign(run, alive)) {
        return { rows: [], result: false };
      }
      if (run.seal !== seal(run)) {
        const message = `no server of this user has accepted it; remove ${this.#path(id)}`;
        throw new SvcError("run_foreign", message);
      }
      const mine = { ...run, owner };
      return { rows: [rowOf(mine)], result: true, written: () => taken(mine) };
    });
  }

  /** Whether this server has a run. */
  owns({ owner }: Run): boolean {
    return owner === this.#owner;
  }

  /**
   * Changes a run that this server has. A store has the change soon; `flush` waits for it. A run that another server
   * has taken over stays as it is.
   *
   * @throws SvcError `registry_write`
   */
  note(id: string, change: Partial<Omit<Run, "id" | "request">>): Run {
    const now = this.need(id);
    if (now.owner !== "" && !this.owns(now)) return now;
    const run = this.#save({ ...now, ...change });
    if (this.#store !== undefined) {
      this.#unsent.set(id, run);
      this.#sending ??= Promise.resolve().then(() => this.#send());
      this.#sending.catch((error) => this.#warn(`A run is not saved: ${errorMessage(error)}`));
    }
    return run;
  }

  /**
   * Resolves when the store has all changes of runs.
   *
   * @throws SvcError `store_unreachable`
   */
  async flush(): Promise<void> {
    while (this.#unsent.size > 0) await (this.#sending ??= this.#send());
  }

  /** Brings the files up to date. */
  async refresh(): Promise<void> {
    if (this.#store !== undefined) await (await this.#store.open()).records.pull(this.#copy);
  }

  /** A run as the store has it, or the file. */
  async fetch(id: string): Promise<Run | undefined> {
    if (this.#store === undefined) return this.get(id);
    const value = await (await this.#store.open()).records.get("run", id);
    return value === undefined ? undefined : runSchema.parse(value);
  }

  /** Undefined when there is no such run, or its record is damaged. */
  get(id: string): Run | undefined {
    const noted = this.#unsent.get(id);
    if (noted !== undefined) return noted;
    const text = ID.test(id) ? readTextIfExists(this.#path(id)) : undefined;
    if (text === undefined) return undefined;
    const { success, data: run } = runSchema.safeParse(jsonOr(text, undefined));
    if (!success || run.id !== id) {
      if (this.#store !== undefined) {
        // The machine has crashed: the next pull brings all of them.
        tryRemove(this.#path(id));
        tryRemove(`${this.#copy.path}.json`);
        return undefined;
      }
      this.#warn(`${this.#path(id)} is damaged, and left as it is.`);
      return undefined;
    }
    return run;
  }

  /** @throws SvcError `no_run` */
  need(id: string): Run {
    const run = this.get(id);
    if (run === undefined) throw new SvcError("no_run", `run not found: ${id.slice(0, 80)}`);
    return run;
  }

  /** The ids of the runs that have not ended, or whose end is yet to be told; the oldest first. */
  open(): string[] {
    return filesOf(join(this.#directory, "open")).filter((id) => ID.test(id)).sort();
  }

  /**
   * The runs that have not ended, then the ended ones; each the newest first, with the beginning of the prompt.
   *
   * @param options.limit most runs
   * @param options.states only runs in these states. Default: all
   */
  list(
    { limit, states = RUN_STATES }: { limit: number; states?: readonly RunState[] },
  ): Run[] {
    const open = this.open().reverse();
    const found: Run[] = [];
    const add = (id: string) => {
      const run = this.#listed(id);
      if (run !== undefined && states.includes(run.state)) found.push(run);
    };
    for (const id of open) add(id);
    found.sort((one, other) => Number(isEnded(one)) - Number(isEnded(other)));
    if (states.some((state) => ENDED.includes(state))) {
      const others = new Set(open);
      const names = this.#ids();
      for (let i = names.length - 1; i >= 0 && found.length < limit; i--) {
        if (!others.has(names[i]!)) add(names[i]!);
      }
    }
    return found.slice(0, limit);
  }

  /**
   * Removes the oldest of more than 10,000 ended runs, and those that are no longer kept.
   *
   * @returns how many were removed
   */
  async prune(kept?: (run: Run) => boolean): Promise<number> {
    await this.refresh();
    const open = new Set(this.open());
    const ended = this.#ids().filter((id) => !open.has(id));
    const rows: RecordRow[] = [];
    for (const [place, id] of ended.entries()) {
      const many = place < ended.length - MOST;
      if (many || kept !== undefined) await this.#pace.turn();
      const run = many || kept !== undefined ? this.#listed(id) : undefined;
      if (run === undefined || !many && kept!(run)) continue;
      if (run.key !== "") rows.push({ kind: "run_key", key: run.key });
      rows.push({ kind: "run", key: id });
    }
    if (rows.length > 0) await this.#change("open", () => ({ rows, result: undefined }));
    return rows.filter(({ kind }) => kind === "run").length;
  }

  /** Releases the runs of this server: the next one may take them. */
  async close(): Promise<void> {
    await this.flush();
    await this.#lease?.release();
    this.#lease = undefined;
    if (this.#lock === undefined) return;
    tryRemove(this.#ownerFile(this.#owner));
    this.#lock.release();
    this.#lock = undefined;
  }

  #listed(id: string): Run | undefined {
    const known = this.#ended.get(id);
    if (known !== undefined) return known;
    const run = this.get(id);
    if (run === undefined) return undefined;
    const { request, result: _, ...rest } = run;
    const { prompt, hook } = request;
    const brief = {
      ...rest,
      request: { ...request, prompt: beginning(prompt), hook: hook && { ...hook, data: "" } },
    };
    if (isEnded(run) && !run.unreported) this.#ended.set(id, brief);
    return brief;
  }

  /** Changes records under a lock of the worktree or, with a store, of the project. */
  async #change<T>(
    lock: "keys" | "open",
    decide: () => Decision<T> | Promise<Decision<T>>,
  ): Promise<T> {
    if (this.#store !== undefined) {
      return await (await this.#store.open()).records.change(this.#copy, decide);
    }
    return await withFileLock(join(this.#directory, lock), async () => {
      const { rows, result, written } = await decide();
      await this.#apply(rows);
      written?.();
      return result;
    });
  }

  /** Sends the changes of this server's runs, also those that are made meanwhile. */
  async #send(): Promise<void> {
    try {
      const { records } = await this.#store!.open();
      while (this.#unsent.size > 0) {
        await records.change(this.#copy, () => {
          const sent = this.#sent = [...this.#unsent.values()];
          const written = () => {
            for (const run of sent) {
              if (this.#unsent.get(run.id) === run) this.#unsent.delete(run.id);
            }
          };
          return { rows: sent.map(rowOf), result: undefined, written };
        });
      }
    } finally {
      this.#sending = undefined;
      this.#sent = [];
    }
  }

  /** Writes rows into the files. A run stays as this server has changed it, unless another one has taken it. */
  async #apply(rows: RecordRow[]): Promise<void> {
    if (rows.length > 0) this.#hide();
    for (const { kind, key, value } of rows) {
      await this.#pace.turn();
      if (kind === "run_key") {
        if (!DIGEST.test(key)) continue;
        const { id } = (value ?? {}) as { id?: string };
        if (id === undefined) tryRemove(this.#keyFile(key));
        else this.#write(this.#keyFile(key), `${id}\n`);
      } else if (!ID.test(key)) {
        continue;
      } else if (value === undefined) {
        this.#remove(key);
      } else if ((value as Run).id === key) {
        const run = value as Run;
        const known = this.get(key);
        const noted = this.#unsent.get(key);
        if (noted !== undefined && (run.owner === this.#owner || this.#sent.includes(run))) {
          this.#save(noted);
          continue;
        }
        this.#unsent.delete(key);
        const open = join(this.#directory, "open", key);
        if ((!isEnded(run) || run.unreported) && !exists(open)) this.#write(open, "");
        this.#save(run);
        if (known?.owner === this.#owner && run.owner !== this.#owner) this.lost(key);
        this.changed(run);
      }
    }
  }

  #remove(id: string): void {
    tryRemove(join(this.#directory, "open", id));
    tryRemove(this.#path(id));
    this.#ended.delete(id);
    this.#unsent.delete(id);
  }

  /** All runs and keys of the files. */
  #rows(): RecordRow[] {
    const runs = this.#ids().flatMap((id) => this.get(id) ?? []);
    return runs.flatMap((run) => [
      ...run.key === "" ? [] : [{ kind: "run_key", key: run.key, value: { id: run.id } }],
      rowOf(run),
    ]);
  }

  #save(run: Run): Run {
    this.#write(this.#path(run.id), JSON.stringify(run, null, 2) + "\n");
    if (isEnded(run) && !run.unreported) tryRemove(join(this.#directory, "open", run.id));
    return run;
  }

  #write(path: string, content: string): void {
    try {
      writeFileAtomic(path, content, 0o600, this.#store === undefined);
    } catch (error) {
      throw error instanceof SvcError ? error : writeFailure("registry_write", path, error);
    }
  }

  /** The ids of all records, sorted. */
  #ids(): string[] {
    const stamp = modified(this.#directory);
    if (this.#names?.stamp === stamp) return this.#names.names;
    const idOf = (file: string) => file.slice(0, -".json".length);
    // Sorted as they come: a slice takes longer to compare.
    const names = filesOf(this.#directory)
      .filter((file) => file.endsWith(".json") && ID.test(idOf(file))).sort().map(idOf);
    // The time of a directory that changed a moment ago may be that of its next change too.
    this.#names = this.#clock.now() - stamp > 2000 ? { stamp, names } : undefined;
    return names;
  }

  /** The servers that live, of all machines; undefined without a store. */
  async #alive(): Promise<Set<string> | undefined> {
    if (this.#store === undefined) return undefined;
    const held = await (await this.#store.open()).leases.held(SERVER);
    return new Set(held.map(({ name }) => name.slice(SERVER.length)));
  }

  /** Whether another server that lives has a run. */
  #isForeign({ owner }: Run, alive: Set<string> | undefined): boolean {
    if (owner === "" || owner === this.#owner) return false;
    if (alive !== undefined) return alive.has(owner);
    const path = this.#ownerFile(owner);
    const lock = tryHold(path);
    if (lock === undefined) return true;
    tryRemove(path);
    lock.release();
    return false;
  }

  /** The kernel's lock of the file, in a store a lease, shows the other servers that this one lives. */
  async #identify(): Promise<string> {
    if (this.#store !== undefined && (this.#lease?.lost.aborted ?? true)) {
      const { leases } = await this.#store.open();
      this.#lease = await leases.take(`${SERVER}${this.#owner}`);
    }
    if (this.#lock === undefined) {
      makeFolder(join(this.#directory, "owners"), 0o700);
      this.#hide();
      this.#lock = tryHold(this.#ownerFile(this.#owner));
    }
    return this.#owner;
  }

  /** Keeps runs out of Git: the .gitignore of `.svc` may be older. */
  #hide(): void {
    const path = join(this.#directory, ".gitignore");
    if (readTextIfExists(path) !== "*\n") this.#write(path, "*\n");
  }

  #path(id: string): string {
    return join(this.#directory, `${id}.json`);
  }

  #keyFile(name: string): string {
    return join(this.#directory, "keys", name);
  }

  #ownerFile(owner: string): string {
    return join(this.#directory, "owners", `${owner}.lock`);
  }
}

/** Begins the names of the leases of servers. */
const SERVER = "server/";

function rowOf(run: Run): RecordRow {
  return { kind: "run", key: run.id, value: run };
}

/** The SHA-256 of a text in hexadecimal digits. */
export function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function beginning(text: string): string {
  return text.slice(0, 200).toWellFormed();
}

function mintRunId(clock: Clock): string {
  const random = crypto.getRandomValues(new Uint8Array(16))
    .toBase64({ alphabet: "base64url", omitPadding: true });
  return `run_${timestamp(clock).replace(/\D/g, "")}_${random}`;
}
