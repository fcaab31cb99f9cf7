import { ROOT_RUN, type TurnEvent, type TurnResult } from "../engine/events.ts";
import type { JobContext } from "../jobs/context.ts";
import { beginRun, finishRun, JobRun, LOCKED, type NotBegun } from "../jobs/run.ts";
import { startOf, WAITS } from "../jobs/transitions.ts";
import { isEnded, type Run, type RunRequest, RunStore } from "../engine/run_store.ts";
import type { Workspace } from "../engine/workspace.ts";
import { timestamp } from "../platform/clock.ts";
import { errorMessage, SvcError } from "../platform/error.ts";
import { AdmissionQueue } from "../platform/admission_queue.ts";
import { fileStamp } from "../platform/files.ts";
import type { QueueWorker, SharedStore } from "../store/port.ts";
import { HttpError } from "./http.ts";
import { LiveEvents } from "./run_events.ts";
import { checkWebhook, tellWebhook } from "./run_webhook.ts";
import { full, type TurnEnd, type TurnRequest, type Turns } from "./turns.ts";

/** Why the run of a job does not begin now: it begins later. */
const BUSY = "is running";
/** Why a run is not resumed: another process has ended it. */
const ENDED = "has ended that run";

/** A request for an accepted run. */
export interface NewRun {
  request: RunRequest;
  /** Name of a session to load or create, or a handle; left out: a new one. */
  session?: string;
  /** Digest of the body. */
  body: string;
  /** The client's name of the request. */
  key?: string;
}

/** A run that this server works on. */
interface LiveRun {
  stop: AbortController;
  events: LiveEvents;
  done: Promise<void>;
  /** Resolves when the messages that other machines have sent so far are in its record. */
  received: Promise<void>;
}

/** Milliseconds between two looks for answers that other processes gave. */
const LOOK = 1000;

/** Milliseconds for which a server of another machine is given to end a run. */
const PATIENCE = 10_000;
/** Milliseconds before a worker looks again at a run whose job cannot begin yet. */
const LATER = 5000;
/** The kind of the records and events of messages to runs of other machines: `<run>/<random>`. */
const MESSAGE = "run_message";

let cancellation: DOMException | undefined;

/** The reason of a run that was cancelled. Not made at the start: the first error of a process takes 20 ms. */
function cancelled(): DOMException {
  return cancellation ??= new DOMException("The run was cancelled.", "AbortError");
}

/** The reason of a run that was cancelled because this server did not answer. */
const LOST = "Another server has taken the run over: this one did not answer.";

/** A run begins later, by any server or worker: its job runs, or waits for approval. */
class Later extends Error {}

/**
 * The accepted runs of one server: they continue without a client, and after a restart (specification 4.1). Each turn
 * of a run is one of {@linkcode Turns}.
 */
export class Runs {
  readonly store: RunStore;
  readonly #workspace: Workspace;
  readonly #turns: Turns;
  readonly #jobs: JobContext;
  /** The runs of hooks: those of one job run one after another. */
  readonly #hooks: AdmissionQueue;
  readonly #live = new Map<string, LiveRun>();
  /** Runs that wait for answers, of any server. */
  readonly #waiting = new Set<string>();
  readonly #reports = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #looking: Promise<void> | undefined;
  /** Whether a run waits since the last look. */
  #added = false;
  /** Takes runs from the queue of the store. */
  #worker: QueueWorker | undefined;

  constructor(workspace: Workspace, turns: Turns, jobs: JobContext) {
    const { paths: { state, user }, clock, store, warn, config } = workspace;
    this.#jobs = jobs;
    this.#hooks = new AdmissionQueue({
      running: config.get("serve.max_concurrent"),
      waiting: config.get("serve.max_queue"),
    });
    this.#workspace = workspace;
    this.#turns = turns;
    this.store = new RunStore({ state, user, clock, warn, store });
    this.store.changed = ({ id, state, request }) => {
      if (state === "waiting" && request.hook === undefined) this.#watch(id);
    };
    if (store !== undefined) {
      import("./remote_events.ts").then(({ publishRuns }) =>
        publishRuns(store, clock, (id) => this.live(id))
      ).catch((error) => {
        if (this.#closing.signal.aborted) return;
        warn(`Other servers see no events of runs: ${errorMessage(error)}`);
      });
    }
    this.store.lost = (id) => this.#live.get(id)?.stop.abort(new SvcError("lease_lost", LOST));
  }

  /**
   * Accepts a run. It is saved when this resolves.
   *
   * @returns a run that the key has named before as `known`
   * @throws as `Turns.run` for a run that cannot begin; SvcError `key_reused`; HttpError 429, and 503 when the
   * server is stopping
   */
  async accept(
    { request, session = "", body, key }: NewRun,
  ): Promise<{ run: Run; known: boolean }> {
    const known = key === undefined ? undefined : this.store.named(key, body);
    if (known !== undefined) return { run: known, known: true };
    this.#closing.signal.throwIfAborted();
    checkWebhook(this.#workspace.config, request.webhook);
    this.#turns.checkRoom();
    const { sessions } = this.#workspace;
    const name = session && await sessions.locate(session);
    await this.#turns.check({ ...turnOf(request), session: name || undefined }).catch((error) => {
      const named = error instanceof SvcError && error.code === "unknown_role" &&
        request.role !== "";
      throw named ? new HttpError(404, error.message) : error;
    });
    const accepted = await this.store.accept({ request, session: name, body }, key);
    if (!accepted.known) await this.#offer(accepted.run);
    return accepted;
  }

  /**
   * Accepts the run of a job that a hook has started, once for each key.
   *
   * @returns undefined when there is no such job
   * @throws SvcError `job_refused` when its state does not allow a run; HttpError 429, 503
   */
  async acceptHook(
    hook: NonNullable<RunRequest["hook"]>,
    key: string,
  ): Promise<{ run: Run; known: boolean } | undefined> {
    const known = this.store.named(key);
    if (known !== undefined) return { run: known, known: true };
    this.#closing.signal.throwIfAborted();
    await this.#jobs.register.refresh();
    const job = this.#jobs.register.get(hook.job);
    if (job === undefined) return undefined;
    const { refused } = startOf({ ...job, running: undefined }, "hook", this.#begins());
    if (refused !== undefined && job.status !== "executing" && refused !== WAITS) {
      throw new SvcError("job_refused", `The job ${job.name} ${refused}.`);
    }
    if (this.#hooks.full) throw full();
    const request = { prompt: "", role: "", task: {}, confirmed: false, webhook: "", hook };
    const accepted = await this.store.accept({ request }, key);
    if (!accepted.known) await this.#offer(accepted.run);
    return accepted;
  }

  /**
   * Takes what earlier servers have left: runs that had not begun begin, and those that ran have failed. Runs of
   * servers that live are not touched.
   */
  async recover(): Promise<void> {
    try {
      await this.#join();
    } catch (error) {
      this.#workspace.warn(errorMessage(error));
    }
    for (const id of this.store.open()) {
      if (this.#closing.signal.aborted) return;
      try {
        await this.#recover(id);
      } catch (error) {
        this.#workspace.warn(`The run ${id} is not taken up: ${errorMessage(error)}`);
      }
    }
  }

  /**
   * Takes runs from the queue of the store until {@linkcode stop}.
   *
   * @param concurrency how many run at once
   */
  async takeFromQueue(concurrency: number): Promise<void> {
    const { queue } = await this.#workspace.store!.open();
    const room = () => this.#closing.signal.aborted ? 0 : concurrency;
    const options = { kinds: ["run" as const], labels: [], concurrency: room };
    this.#worker = queue.work(options, ({ name }) => this.work(name));
  }

  /**
   * Runs an accepted run that the queue offers, until it has ended, waits, or is left.
   *
   * @throws Error when another worker is to try
   */
  async work(id: string): Promise<void> {
    const shared = this.#workspace.store!;
    const { leases } = await shared.open();
    await this.store.refresh();
    const { request: { hook: event } = {}, turns = [] } = this.store.get(id) ?? {};
    // Its job may be new here, and the answers that it waited for.
    if (event !== undefined || turns.length > 0) await shared.refresh();
    const wanted = (run: Run) => !isEnded(run) && !this.#live.has(id);
    let failed: Run | undefined;
    const taken = await this.store.take(id, wanted, (run) => {
      // The job knows how far a run of a hook has come.
      if (run.state === "running" && run.request.hook === undefined) failed = run;
      else this.#begin(this.store.note(id, { worker: leases.holder }));
    });
    if (failed !== undefined) await this.#fail(failed);
    await this.#live.get(id)?.done;
    const run = this.store.get(id);
    if (run === undefined || isEnded(run)) return await this.store.flush();
    // Its server may have died a moment ago.
    if (!taken) throw new Error(`the run ${id} is another server's`);
    const { state, request: { hook } } = run;
    if (hook === undefined && state === "waiting" || !this.store.owns(run)) return;
    if (hook === undefined || this.#closing.signal.aborted) {
      this.store.note(id, { owner: "" });
      await this.store.flush();
      throw new Error(`the run ${id} is left to another server`);
    }
    await this.#offer(run, this.#workspace.clock.now() + LATER);
  }

  /** The events of a run that this server works on. */
  live(id: string): LiveEvents | undefined {
    return this.#live.get(id)?.events;
  }

  /** The ids of the runs that this server works on. */
  get busy(): string[] {
    return [...this.#live.keys()];
  }

  /** Aborts when the server stops. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** The run with an id. @throws SvcError `no_run` */
  need(id: string): Run {
    return this.store.need(id);
  }

  /**
   * Cancels a run that has not ended. A turn of it ends before this resolves.
   *
   * @throws SvcError `no_run`; `run_state` when it has ended otherwise, or another server has it
   */
  async cancel(id: string): Promise<Run> {
    const live = this.#live.get(id);
    if (live !== undefined) {
      live.stop.abort(cancelled());
      await live.done;
    } else if (this.need(id).state !== "cancelled") {
      try {
        await this.#claim(id, () => this.#end(id, { state: "cancelled" }));
      } catch (error) {
        const { events } = await this.#elsewhere(id, error);
        const { clock } = this.#workspace;
        for (const end = clock.now() + PATIENCE; !isEnded(this.need(id)) && clock.now() < end;) {
          await events.notify({ kind: "run_cancel", key: id });
          await clock.sleep(LOOK / 10);
          await this.store.refresh();
        }
      }
    }
    const run = this.need(id);
    if (run.state !== "cancelled") throw ended(run);
    return run;
  }

  /**
   * Sends a message to a run: its model reads it before its next reply. A run that waits for answers continues.
   *
   * @throws SvcError `no_run`; `run_state` when it has ended, or another server has it; HttpError 429
   */
  async send(id: string, message: string): Promise<Run> {
    const add = () => {
      const { messages } = this.#open(id);
      return this.store.note(id, { messages: [...messages, message] });
    };
    if (this.#live.has(id)) return add();
    let claimed: Run | undefined;
    try {
      await this.#claim(id, () => {
        claimed = add();
        if (this.#workspace.store === undefined) this.#begin(claimed);
      });
    } catch (error) {
      return await this.#post(id, message, await this.#elsewhere(id, error));
    }
    if (claimed !== undefined && this.#workspace.store !== undefined) await this.#offer(claimed);
    return this.need(id);
  }

  /** A run that takes messages. @throws SvcError `run_state`; HttpError 429 */
  #open(id: string): Run {
    const run = this.need(id);
    if (isEnded(run)) throw ended(run);
    const { messages, request } = run;
    if (request.hook !== undefined) {
      throw new SvcError("run_state", "the run of a job takes no messages");
    }
    if (messages.length < MOST_MESSAGES) return run;
    throw new HttpError(429, "too many messages wait for the run");
  }

  /**
   * Sends a message to a run that another server has. It is a record until that server takes it, so that it is not lost
   * with a connection.
   *
   * @throws SvcError `run_state` when the run has ended without it
   */
  async #post(id: string, message: string, { records, events }: SharedStore): Promise<Run> {
    const { owner } = this.#open(id);
    const key = `${id}/${crypto.randomUUID()}`;
    await records.add({ kind: MESSAGE, key, value: message });
    const { clock } = this.#workspace;
    for (const end = clock.now() + PATIENCE; clock.now() < end;) {
      await events.notify({ kind: MESSAGE, key: id });
      await clock.sleep(LOOK / 10);
      if (await records.get(MESSAGE, key) === undefined) break;
      await this.store.refresh();
      const run = this.need(id);
      if (run.owner === owner && !isEnded(run)) continue;
      // It ended, or waits now, and did not look again.
      if ((await records.take(MESSAGE, key)).length > 0) return await this.send(id, message);
    }
    return this.need(id);
  }

  /** Takes the messages that other machines have sent to a run of this one. Never rejects. */
  #receive(id: string): Promise<void> {
    const live = this.#live.get(id);
    const { store } = this.#workspace;
    if (live === undefined || store === undefined) return Promise.resolve();
    const take = async () => {
      const { records } = await store.open();
      const messages = (await records.take(MESSAGE, `${id}/`)).map(String);
      if (messages.length === 0) return;
      this.store.note(id, { messages: [...this.need(id).messages, ...messages] });
    };
    return live.received = live.received.then(take).catch((error) =>
      this.#workspace.warn(`The run ${id} gets no messages: ${errorMessage(error)}`)
    );
  }

  /** Continues the runs whose asks have been answered. Never rejects. */
  async look(): Promise<void> {
    try {
      await this.#look();
    } catch (error) {
      this.#workspace.warn(`A run is not continued: ${errorMessage(error)}`);
    }
  }

  async #look(): Promise<void> {
    if (this.#waiting.size === 0 || this.#closing.signal.aborted) return;
    const pending = new Set(this.#workspace.asks.list("pending").map(({ id }) => id));
    for (const id of [...this.#waiting]) {
      const run = this.store.get(id);
      const waits = run?.state === "waiting";
      if (waits && run.asks.some((ask) => pending.has(ask))) continue;
      this.#waiting.delete(id);
      if (!waits) continue;
      if (this.#workspace.store !== undefined) {
        await this.#offer(run);
        continue;
      }
      await this.store.take(id, ({ state }) => state === "waiting", (run) => this.#begin(run))
        .catch((error) =>
          this.#workspace.warn(`The run ${id} is not continued: ${errorMessage(error)}`)
        );
    }
  }

  /** Leaves the runs that have not begun to the next server, and accepts no more. */
  stop(): void {
    this.#closing.abort(new HttpError(503, "the server is stopping"));
    for (const [id, { stop }] of this.#live) {
      if (this.store.get(id)?.state !== "running") stop.abort(this.#closing.signal.reason);
    }
  }

  /** Cancels every run that runs. */
  cancelAll(): void {
    for (const { stop } of this.#live.values()) stop.abort(this.#closing.signal.reason);
  }

  /** Resolves when no run is left, after `stop`. */
  async idle(): Promise<void> {
    await this.#worker?.close();
    while (this.#live.size > 0) {
      await Promise.all(Array.from(this.#live.values(), ({ done }) => done));
    }
  }

  /** Resolves when the ends of runs are reported. Other servers may take the runs that are left. */
  async close(): Promise<void> {
    await this.#looking;
    await Promise.all(this.#reports);
    await this.store.close();
  }

  /** Gets the runs of the store, and what other servers ask of those of this one. */
  async #join(): Promise<void> {
    const { store } = this.#workspace;
    if (store === undefined) return;
    await this.store.refresh();
    const { events } = await store.open();
    await events.on("run_cancel", ({ key = "" }) => this.#live.get(key)?.stop.abort(cancelled()));
    await events.on(MESSAGE, ({ key }) => {
      for (const id of key === undefined ? this.#live.keys() : [key]) void this.#receive(id);
    });
  }

  /**
   * The store through which the server is told that has a run, on whichever machine it is.
   *
   * @throws `error`, with which this server could not take the run, where no other one can have it
   */
  async #elsewhere(id: string, error: unknown): Promise<SharedStore> {
    const { store } = this.#workspace;
    const taken = error instanceof SvcError && error.code === "run_state";
    if (store === undefined || !taken || isEnded(this.need(id))) throw error;
    return await store.open();
  }

  /**
   * Has a run begin: here or, with a store, by the server or worker that takes it from the queue.
   *
   * @param after milliseconds: not before this time
   */
  async #offer(run: Run, after?: number): Promise<void> {
    const { store } = this.#workspace;
    if (store === undefined) return this.#begin(run);
    const { id, session, turns, messages, request: { hook } } = run;
    if (this.store.owns(run)) this.store.note(id, { owner: "" });
    await this.store.flush();
    const { label } = hook && this.#jobs.register.get(hook.job) || {};
    const group = hook !== undefined
      ? `job/${hook.job}`
      : session === ""
      ? undefined
      : `session/${session}`;
    const { queue } = await store.open();
    await queue.put({
      kind: "run",
      name: id,
      key: [id, turns.length, messages.length, ...after === undefined ? [] : [after]].join("/"),
      ...group !== undefined && { group },
      ...label !== undefined && { label },
      ...after !== undefined && { after: new Date(after).toISOString() },
    });
  }

  async #recover(id: string): Promise<void> {
    const run = this.store.get(id);
    if (this.#workspace.store !== undefined && run !== undefined && !isEnded(run)) {
      // The queue has those that run: it offers them again when their server is dead.
      if (run.state === "queued") return await this.#offer(run);
      if (run.request.hook !== undefined || run.state === "running") return;
    }
    const asks = ({ state, request }: Run) => state === "waiting" && request.hook === undefined;
    if (run !== undefined && asks(run)) return this.#watch(id);
    const wanted = (run: Run) => !asks(run) && !this.#live.has(id);
    let failed: Run | undefined;
    await this.store.take(id, wanted, (taken) => {
      if (isEnded(taken)) return taken.unreported ? this.#report(taken) : undefined;
      // The job knows how far a run of a hook has come.
      if (taken.state === "running" && taken.request.hook === undefined) failed = taken;
      else this.#begin(taken);
    });
    if (failed !== undefined) await this.#fail(failed);
  }

  /** Ends a run whose server was killed, and the turn in the log of its session. */
  async #fail({ id, session }: Run): Promise<void> {
    try {
      if (session !== "") await this.#workspace.sessions.closeDead(session);
    } finally {
      const error = "The server ended while the run was running.";
      this.#end(id, { state: "failed", reason: "interrupted", error });
    }
  }

  /**
   * Takes a run that has not ended and that no server works on.
   *
   * @throws SvcError `no_run`, `run_state`
   */
  async #claim(id: string, taken: (run: Run) => void): Promise<void> {
    this.need(id);
    const wanted = (run: Run) => !isEnded(run) && !this.#live.has(id);
    if (await this.store.take(id, wanted, taken)) return;
    const now = this.need(id);
    if (isEnded(now)) throw ended(now);
    throw new SvcError(
      "run_state",
      "the run is continued now, or another server of this worktree has it",
    );
  }

  #watch(id: string): void {
    this.#waiting.add(id);
    this.#added = true;
    this.#looking ??= this.#watching();
  }

  async #watching(): Promise<void> {
    const { clock, asks } = this.#workspace;
    for (let known = ""; this.#waiting.size > 0;) {
      const woken = await clock.sleep(LOOK, this.#closing.signal).then(() => true, () => false);
      if (!woken) break;
      const stamp = fileStamp(asks.path);
      if (stamp !== known || this.#added) {
        this.#added = false;
        await this.look();
      }
      known = stamp;
    }
    this.#looking = undefined;
  }

  #begin({ id, request: { hook } }: Run): void {
    const stop = new AbortController();
    const events = new LiveEvents();
    const work = hook === undefined
      ? this.#work(id, stop.signal, events)
      : this.#workHook(id, hook.job, stop.signal, events);
    const done = work.catch((error) =>
      this.#workspace.warn(`The run ${id} broke off: ${errorMessage(error)}`)
    ).finally(() => {
      this.#live.delete(id);
      events.end();
    });
    this.#live.set(id, { stop, events, done, received: Promise.resolve() });
  }

  /** Runs turns until the run has ended, waits, or is left to the next server. */
  async #work(id: string, signal: AbortSignal, events: LiveEvents): Promise<void> {
    for (let again = true; again;) {
      if (this.need(id).state !== "queued") this.store.note(id, { state: "queued" });
      if (this.#closing.signal.aborted) return;
      let result: TurnResult | undefined;
      let failure: unknown;
      try {
        const end = await this.#turn(id, signal, events);
        result = end.result;
        failure = end.cut ?? signal.reason;
      } catch (error) {
        failure = error;
      }
      if (result !== undefined && result.status !== "cancelled") {
        await this.#receive(id);
        again = this.#settle(id, result);
      } else {
        again = false;
        this.#cut(id, failure, result);
      }
    }
  }

  /** Saves that a turn was cancelled, or could not begin. */
  #cut(id: string, failure: unknown, result: TurnResult | undefined): void {
    const kept = result && briefResult(result);
    if (failure === cancelled()) return this.#end(id, { state: "cancelled", result: kept });
    const stopped = this.#closing.signal.aborted;
    if (stopped && this.need(id).state === "queued") return; // the next server begins it
    const late = failure instanceof HttpError && failure.status === 504;
    const reason = late ? "timeout" : stopped ? "interrupted" : "error";
    this.#end(id, { state: "failed", reason, error: wording(failure), result: kept });
  }

  /** Runs the job of a hook when it can run. */
  async #workHook(
    id: string,
    name: string,
    signal: AbortSignal,
    events: LiveEvents,
  ): Promise<void> {
    const { clock } = this.#workspace;
    let failure: unknown;
    let release = () => {};
    try {
      release = await this.#hooks.enter(name, signal, true)!;
      const run = await this.#startJob(id, name, signal, events);
      if (run instanceof JobRun) await finishRun(run, { clock, signal });
      else if (run.refused !== ENDED) {
        throw new SvcError("job_refused", `The job ${name} ${run.refused}.`);
      }
    } catch (error) {
      if (error instanceof Later) return;
      failure = error;
    } finally {
      release();
    }
    const { state, session, started_at } = this.need(id);
    const history = this.#jobs.register.get(name) && this.#jobs.register.history(name);
    const entry = started_at === ""
      ? undefined
      : history?.findLast((each) => each.session === session && each.finished_at >= started_at);
    if (entry?.status === "verified") return this.#end(id, { state: "done" });
    if (failure === undefined && !signal.aborted) {
      const reason = entry?.reason || "interrupted";
      return this.#end(id, { state: "failed", reason, error: reason });
    }
    if (state !== "running" && this.#closing.signal.aborted) return; // the next server begins it
    this.#cut(id, signal.aborted ? signal.reason : failure, undefined);
  }

  /** Begins the run of a job, as soon as no other one runs and it has its approval. */
  async #startJob(
    id: string,
    name: string,
    signal: AbortSignal,
    events: LiveEvents,
  ): Promise<JobRun | NotBegun> {
    const { clock } = this.#workspace;
    const { register } = this.#jobs;
    const context = { ...this.#jobs, show: this.#noted(id, events) };
    const resumed = this.need(id).started_at !== "";
    while (true) {
      const job = register.get(name);
      if (job === undefined) return { refused: "is gone" };
      let { refused } = startOf(job, "hook", this.#begins(id));
      if (refused === undefined || refused === BUSY) { // the process that ran it may be gone
        const run = await beginRun(context, name, "hook", { signal, run: id, resumed });
        if (run instanceof JobRun) return run;
        ({ refused } = run);
      }
      if (refused !== BUSY && refused !== LOCKED && refused !== WAITS) return { refused };
      const state = refused === WAITS ? "waiting" : "queued";
      if (!resumed && this.need(id).state !== state) this.store.note(id, { state });
      if (this.#workspace.store !== undefined) throw new Later();
      await clock.sleep(LOOK, signal);
    }
  }

  #begins(run?: string) {
    return { now: this.#workspace.clock.now(), session: () => "", run };
  }

  async #turn(id: string, signal: AbortSignal, events: LiveEvents): Promise<TurnEnd> {
    const run = this.need(id);
    const { prompt, asks, messages } = this.#prompt(run);
    return await this.#turns.run({
      ...turnOf(run.request),
      prompt,
      session: run.session || undefined,
      accepted: id,
      signal,
      emit: this.#noted(id, events, { asks, messages }),
      messages: () => this.#messages(id).map((text) => ({ text })),
    });
  }

  /**
   * Receives the events of a run, for its record and for those who follow it.
   *
   * @param given what the prompt of the turn leaves: the asks that stay open, and the number of messages that it has
   */
  #noted(
    id: string,
    events: LiveEvents,
    given?: { asks: number[]; messages: number },
  ): (event: TurnEvent) => void {
    return (event) => {
      if (event.type === "ask") {
        this.store.note(id, { asks: [...this.need(id).asks, event.id] });
      }
      events.add(event);
      if (event.type !== "turn_started" || event.run !== ROOT_RUN) return;
      const now = this.need(id);
      // Saved before the model is asked: what has begun does not begin again.
      this.store.note(id, {
        state: "running",
        session: event.session,
        turns: [...now.turns, event.index],
        started_at: now.started_at || timestamp(this.#workspace.clock),
        ...given && { asks: given.asks, messages: now.messages.slice(given.messages) },
      });
    };
  }

  /** The messages that have arrived since the last call, which are no longer kept. */
  #messages(id: string): string[] {
    const { messages } = this.need(id);
    if (messages.length > 0) this.store.note(id, { messages: [] });
    return messages;
  }

  /**
   * The prompt of a run's next turn: that of the request; later the messages, and the answers that are not in the log
   * of its session, because another agent asked.
   *
   * @returns also the asks that stay open, and the number of messages in the prompt
   */
  #prompt(run: Run): { prompt: string; asks: number[]; messages: number } {
    if (run.turns.length === 0) return { prompt: run.request.prompt, asks: [], messages: 0 };
    const { asks, messages, session } = run;
    const known = this.#workspace.asks.list("answered").filter(({ id }) => asks.includes(id));
    const answers = known.filter(({ origin }) => origin !== session)
      .map(({ id, answer }) => `[answer to parked ask #${id}] ${answer}`);
    const go = known.length > 0 ? ["The questions that were parked are answered. Continue."] : [];
    return {
      prompt: [...go, ...answers, ...messages].join("\n\n"),
      asks: asks.filter((id) => !known.some((ask) => ask.id === id)),
      messages: messages.length,
    };
  }

  /** Saves how a turn ended. @returns whether another one follows */
  #settle(id: string, result: TurnResult): boolean {
    const { status, errors } = result;
    const kept = briefResult(result);
    const run = this.need(id);
    if (status !== "ok" && status !== "truncated") {
      const reason = result.reason || status;
      const error = errors.map(({ message }) => message).join("; ");
      this.#end(id, { state: "failed", reason, error, result: kept });
      return false;
    }
    if (run.messages.length > 0) return true;
    if (run.asks.length === 0) {
      this.#end(id, { state: "done", result: kept });
      return false;
    }
    if (this.#prompt(run).asks.length === 0) return true;
    this.store.note(id, { state: "waiting", result: kept, owner: "" });
    this.#watch(id);
    return false;
  }

  #end(
    id: string,
    given: Pick<Run, "state"> & Partial<Pick<Run, "reason" | "error" | "result">>,
  ): void {
    const { request: { webhook } } = this.need(id);
    const ended_at = timestamp(this.#workspace.clock);
    const run = this.store.note(id, { ...given, ended_at, unreported: webhook !== "" });
    if (webhook !== "") this.#report(run);
  }

  /** Tells the webhook of a run that it has ended, as reports of jobs are sent. */
  #report(run: Run): void {
    const { closing } = this;
    const told = tellWebhook(this.#workspace, run, closing).then((told) => {
      if (told) this.store.note(run.id, { unreported: false });
    });
    const work = told.catch((error) =>
      this.#workspace.warn(`The run ${run.id} is not reported: ${errorMessage(error)}`)
    ).finally(() => this.#reports.delete(work));
    this.#reports.add(work);
  }
}

function ended({ state }: Run): SvcError {
  return new SvcError("run_state", `the run has ended: ${state}`);
}

/** Messages that may wait for one run. */
const MOST_MESSAGES = 100;

function turnOf(
  { prompt, role, task, confirmed }: RunRequest,
): Pick<TurnRequest, "prompt" | "role" | "task" | "confirmed"> {
  return { prompt, role: role || undefined, task, confirmed };
}

function wording(error: unknown): string {
  return error instanceof SvcError || error instanceof HttpError ? error.message : "internal error";
}

/** What the record keeps of a result: the log has its texts, and the arguments of its calls. */
function briefResult(
  { content: _, thinking: _1, tool_calls, ...rest }: TurnResult,
): Record<string, unknown> {
  const calls = tool_calls.map(({ arguments: _, ...call }) => call);
  return { ...rest, tool_calls: calls };
}
