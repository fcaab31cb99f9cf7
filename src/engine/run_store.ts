import { createHash, createHmac } from "node:crypto";
import { join } from "node:path";
import * as z from "zod/mini";
import { type Clock, timestamp } from "../platform/clock.ts";
import { SvcError, writeFailure } from "../platform/error.ts";
import {
  type HeldLock,
  jsonOr,
  lstatIfExists,
  makeFolder,
  readTextIfExists,
  tryHold,
  tryRemove,
  updateFile,
  withFileLock,
  writeFileAtomic,
} from "../platform/files.ts";
import { RUNS_KEY } from "../policy/paths.ts";
import { filesOf, modified } from "../sessions/listing.ts";
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
/** Characters of the shortest key that signs runs. */
const SHORTEST_KEY = 32;
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
  /** This server, in records. */
  readonly #owner = crypto.randomUUID();
  #lock: HeldLock | undefined;
  /** What lists show of ended runs, which do not change any more. */
  readonly #ended = new Map<string, Run>();
  #names: { stamp: number; names: string[] } | undefined;

  /**
   * @param options.state `<worktree>/.svc`
   * @param options.user `~/.config/svc`
   */
  constructor({ state, user, clock, warn }: {
    state: string;
    user: string;
    clock: Clock;
    warn: (message: string) => void;
  }) {
    this.#directory = join(state, "runs");
    this.#user = user;
    this.#clock = clock;
    this.#warn = warn;
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
    const seal = await this.#sealing();
    if (key === undefined) {
      return { run: this.#create(mintRunId(this.#clock), given, seal), known: false };
    }
    return await withFileLock(join(this.#directory, "keys"), () => {
      const known = this.named(key, given.body);
      if (known !== undefined) return { run: known, known: true };
      const id = mintRunId(this.#clock);
      this.#write(this.#keyFile(digest(key)), `${id}\n`);
      return { run: this.#create(id, { ...given, key: digest(key) }, seal), known: false };
    });
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
    const seal = await this.#sealing();
    return await withFileLock(join(this.#directory, "open"), () => {
      const run = this.get(id);
      if (run === undefined || !wanted(run) || this.#isForeign(run)) return false;
      if (run.seal !== seal(run)) {
        const message = `no server of this user has accepted it; remove ${this.#path(id)}`;
        throw new SvcError("run_foreign", message);
      }
      taken(this.#save({ ...run, owner: this.#identify() }));
      return true;
    });
  }

  /** Whether this server has a run. */
  owns({ owner }: Run): boolean {
    return owner === this.#owner;
  }

  /**
   * Changes a run that this server has.
   *
   * @throws SvcError `registry_write`
   */
  note(id: string, change: Partial<Omit<Run, "id" | "request">>): Run {
    return this.#save({ ...this.need(id), ...change });
  }

  /** Undefined when there is no such run, or its record is damaged. */
  get(id: string): Run | undefined {
    const text = ID.test(id) ? readTextIfExists(this.#path(id)) : undefined;
    if (text === undefined) return undefined;
    const { success, data: run } = runSchema.safeParse(jsonOr(text, undefined));
    if (!success || run.id !== id) {
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
  prune(kept?: (run: Run) => boolean): number {
    const open = new Set(this.open());
    const ended = this.#ids().filter((id) => !open.has(id));
    let removed = 0;
    for (const [place, id] of ended.entries()) {
      const many = place < ended.length - MOST;
      const run = many || kept !== undefined ? this.#listed(id) : undefined;
      if (run === undefined || !many && kept!(run)) continue;
      if (run.key !== "") tryRemove(this.#keyFile(run.key));
      if (tryRemove(this.#path(id))) removed++;
      this.#ended.delete(id);
    }
    return removed;
  }

  /** Releases the runs of this server: the next one may take them. */
  close(): void {
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

  #create(
    id: string,
    given: Partial<Run> & Pick<Run, "request">,
    seal: (run: Run) => string,
  ): Run {
    const queued_at = timestamp(this.#clock);
    const owner = this.#identify();
    const run = runSchema.parse({ ...given, id, state: "queued", queued_at, owner });
    run.seal = seal(run);
    this.#write(join(this.#directory, "open", id), "");
    this.#save(run);
    if (this.#ids().length > MOST + EXCESS) this.prune();
    return run;
  }

  #save(run: Run): Run {
    this.#write(this.#path(run.id), JSON.stringify(run, null, 2) + "\n");
    if (isEnded(run) && !run.unreported) tryRemove(join(this.#directory, "open", run.id));
    return run;
  }

  #write(path: string, content: string): void {
    try {
      writeFileAtomic(path, content, 0o600);
    } catch (error) {
      throw error instanceof SvcError ? error : writeFailure("registry_write", path, error);
    }
  }

  /** The ids of all records, sorted. */
  #ids(): string[] {
    const stamp = modified(this.#directory);
    if (this.#names?.stamp === stamp) return this.#names.names;
    const names = filesOf(this.#directory).filter((file) => file.endsWith(".json"))
      .map((file) => file.slice(0, -".json".length)).filter((id) => ID.test(id)).sort();
    // The time of a directory that changed a moment ago may be that of its next change too.
    this.#names = this.#clock.now() - stamp > 2000 ? { stamp, names } : undefined;
    return names;
  }

  /** Whether another server that lives has a run. */
  #isForeign({ owner }: Run): boolean {
    if (owner === "" || owner === this.#owner) return false;
    const path = this.#ownerFile(owner);
    const lock = tryHold(path);
    if (lock === undefined) return true;
    tryRemove(path);
    lock.release();
    return false;
  }

  /**
   * Signs runs with a key that is the user's, since a clone can hold any record. Where the user's settings are
   * read-only, as in a container, the key is in the worktree, in a file that no clone has: it is private.
   *
   * @throws SvcError `registry_write`
   */
  async #sealing(): Promise<(run: Run) => string> {
    let key: string;
    try {
      key = await keyIn(join(this.#user, RUNS_KEY));
    } catch {
      const path = join(this.#directory, "key");
      if (((lstatIfExists(path)?.mode ?? 0) & 0o077) !== 0) tryRemove(path);
      try {
        key = await keyIn(path);
      } catch (error) {
        throw error instanceof SvcError ? error : writeFailure("registry_write", path, error);
      }
    }
    return ({ id, request }) =>
      createHmac("sha256", key).update(JSON.stringify([id, request])).digest("hex");
  }

  /** The kernel's lock of the file shows the other servers that this one lives. */
  #identify(): string {
    if (this.#lock === undefined) {
      makeFolder(join(this.#directory, "owners"), 0o700);
      // The .gitignore of `.svc` may be older than runs.
      this.#write(join(this.#directory, ".gitignore"), "*\n");
      this.#lock = tryHold(this.#ownerFile(this.#owner));
    }
    return this.#owner;
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

/** The key in a file, which is made where there is none. */
async function keyIn(path: string): Promise<string> {
  let key = readTextIfExists(path) ?? "";
  if (key.length >= SHORTEST_KEY) return key;
  await updateFile(path, (text = "") => {
    key = text; // another server may have been quicker
    if (key.length >= SHORTEST_KEY) return undefined;
    return key = crypto.getRandomValues(new Uint8Array(32)).toHex();
  }, 0o600);
  return key;
}

function digest(text: string): string {
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
