import * as z from "zod/mini";
import { ROOT_RUN, type TurnEvent, type TurnResult } from "../engine/events.ts";
import type { NewAttachment } from "../sessions/attachments.ts";
import type { RunRegistry } from "../engine/runs.ts";
import { type AgentRequest, prepareAgent, type PreparedAgent } from "../engine/start.ts";
import type { TurnMessage, TurnTask } from "../engine/task.ts";
import type { Workspace } from "../engine/workspace.ts";
import { AdmissionQueue } from "../platform/admission_queue.ts";
import { timestamp } from "../platform/clock.ts";
import { headlessOperator } from "../policy/operator.ts";
import { Policy } from "../policy/policy.ts";
import { checkSessionName } from "../sessions/names.ts";
import { turnStatus } from "../sessions/schema.ts";
import { HttpError } from "./http.ts";
import type { ServerLog } from "./log.ts";
import type { Metrics } from "./metrics.ts";

/** Ended turns that `GET /runs` still shows. */
const RECENT = 100;
/** Seconds after which a client may try again when the queue is full. */
const RETRY_AFTER = 5;

const WAITING = Promise.resolve("waiting" as const);

/** A turn of this server, with the agents that took part. */
export const turnRecord = z.object({
  id: z.int(),
  /** Empty until a new session is created. */
  session: z.string(),
  status: z.union([z.literal("queued"), turnStatus]),
  /** ISO 8601, as the other times. */
  queued_at: z.string(),
  /** Empty while the turn waits. */
  started_at: z.string(),
  /** Empty until the turn has ended. */
  ended_at: z.string(),
  agents: z.array(z.object({
    id: z.int(),
    parent: z.int(),
    role: z.string(),
    session: z.string(),
    status: z.union([z.literal("paused"), turnStatus]),
  })),
});
export type TurnRecord = z.infer<typeof turnRecord>;

/** A request for one turn. */
export interface TurnRequest {
  prompt: string;
  /** Name of a session to load or create, or a handle; left out: a new one. */
  session?: string;
  /** The role that the client named. Default: the role that owns the session. */
  role?: string;
  task?: TurnTask;
  attachments?: NewAttachment[];
  /** Whether the client has a token, and counts as the person who confirms a command of the task. Default: no. */
  confirmed?: boolean;
  /** Aborts when the client disconnects. */
  signal: AbortSignal;
  /** Called when the turn runs or is queued. */
  onAdmitted?: () => void;
  emit?: (event: TurnEvent) => void;
  /** The messages for the turn that have arrived since the last call. */
  messages?: () => TurnMessage[];
  /** The accepted run that the turn belongs to: it waits for its place as long as it takes, and is listed elsewhere. */
  accepted?: string;
}

/** How a turn ended; `cut` is the error for the client when the server cancelled it. */
export interface TurnEnd {
  result: TurnResult;
  cut?: HttpError;
}

interface Live {
  record: Omit<TurnRecord, "agents">;
  runs?: RunRegistry;
  stop: AbortController;
  ended: PromiseWithResolvers<void>;
  accepted?: string;
}

/** The turns of one server. They run headless and unattended; the last ones that ended are kept for `GET /runs`. */
export class Turns {
  readonly #workspace: Workspace;
  readonly #metrics: Metrics;
  readonly #log: ServerLog | undefined;
  readonly #queue: AdmissionQueue;
  readonly #live = new Set<Live>();
  readonly #recent: TurnRecord[] = [];
  #ids = 0;

  constructor(workspace: Workspace, metrics: Metrics, log?: ServerLog) {
    const { config } = workspace;
    this.#workspace = workspace;
    this.#metrics = metrics;
    this.#log = log;
    this.#queue = new AdmissionQueue({
      running: config.get("serve.max_concurrent"),
      waiting: config.get("serve.max_queue"),
    });
  }

  get running(): number {
    return this.#queue.running;
  }

  get queued(): number {
    return this.#queue.waiting;
  }

  /** The turns that run or wait, then the newest 100 that ended, the newest first. */
  list(): TurnRecord[] {
    const own = [...this.#live].filter(({ accepted }) => accepted === undefined);
    return [...own.map(shown), ...this.#recent];
  }

  /** The agents of an accepted run that runs; none of another. */
  agents(accepted: string): TurnRecord["agents"] {
    const live = [...this.#live].find((each) => each.accepted === accepted);
    return live === undefined ? [] : shown(live).agents;
  }

  /** Rejects further turns while too many wait. @throws HttpError 429 */
  checkRoom(): void {
    if (this.#queue.full) throw full();
  }

  /**
   * Checks that a turn can begin, without beginning it.
   *
   * @throws SvcError, HttpError as `run` does
   */
  async check(given: Omit<TurnRequest, "signal">): Promise<void> {
    await this.#prepare(given);
  }

  /**
   * Runs a turn. Turns of one session run one after another.
   *
   * @returns with `cut` as HttpError 504 when the turn took longer than `serve.timeout`, 503 when the server
   * is stopping
   * @throws HttpError 429 when too many turns wait, 504 and 503 as above when the turn has not begun; SvcError
   * when it cannot begin; the signal's reason when that aborts before
   */
  async run(given: TurnRequest): Promise<TurnEnd> {
    const workspace = this.#workspace;
    const found = await this.#prepare(given); // a turn that cannot begin is not queued
    const { request } = found;
    let { prepared } = found;
    const live = this.#admit(request);
    const over = new AbortController();
    if (request.accepted === undefined) this.#limit(live, over.signal);
    const signal = AbortSignal.any([request.signal, live.stop.signal]);
    try {
      const accepted = request.accepted !== undefined;
      const entry = this.#queue.enter(request.session ?? live, signal, accepted);
      if (entry === undefined) throw full();
      request.onAdmitted?.();
      const waited = await Promise.race([entry, WAITING]) === "waiting";
      const release = await entry;
      try {
        if (accepted) this.#limit(live, over.signal);
        await this.#workspace.pace.turn(); // opening a session writes files
        // While it waited, the role of the session may have changed.
        if (waited) prepared = await prepareAgent(workspace, agentRequest(request));
        const result = await this.#runTurn(live, prepared, { ...request, signal });
        if (result.status !== "cancelled") return { result };
        const { reason } = live.stop.signal;
        return { result, ...reason instanceof HttpError && { cut: reason } };
      } finally {
        release();
      }
    } finally {
      over.abort("the turn has ended");
      this.#finish(live);
    }
  }

  /** Resolves when no turn runs or waits. */
  idle(): Promise<void> {
    return this.#queue.idle();
  }

  /** Cancels a turn by its id. Resolves when it has ended; false when no such turn runs or waits. */
  async cancel(id: string): Promise<boolean> {
    const live = [...this.#live].find((each) =>
      each.accepted === undefined && String(each.record.id) === id
    );
    live?.stop.abort(new DOMException("The turn was cancelled.", "AbortError"));
    await live?.ended.promise;
    return live !== undefined;
  }

  /** Cancels every turn that runs or waits. */
  cancelAll(): void {
    for (const { stop } of this.#live) stop.abort(new HttpError(503, "the server is stopping"));
  }

  async #prepare<R extends Omit<TurnRequest, "signal">>(given: R) {
    const { sessions } = this.#workspace;
    if (given.session !== undefined) checkSessionName(given.session);
    const session = given.session && await sessions.locate(given.session);
    const request = { ...given, session };
    await this.#workspace.pace.turn(); // preparing a turn reads files
    const prepared = await prepareAgent(this.#workspace, agentRequest(request));
    checkVerify(prepared, request);
    return { request, prepared };
  }

  /** Cancels a turn that takes longer than `serve.timeout`, until the signal aborts. */
  #limit({ stop }: Live, signal: AbortSignal): void {
    const { config, clock } = this.#workspace;
    const seconds = config.get("serve.timeout");
    if (seconds === 0) return;
    clock.sleep(seconds * 1000, signal).then(() => {
      stop.abort(new HttpError(504, `the turn took longer than ${seconds} seconds`));
    }, () => {});
  }

  #admit({ session = "", accepted }: TurnRequest): Live {
    const record = {
      id: accepted === undefined ? ++this.#ids : 0,
      session,
      status: "queued" as const,
      queued_at: timestamp(this.#workspace.clock),
      started_at: "",
      ended_at: "",
    };
    const ended = Promise.withResolvers<void>();
    const live = { record, stop: new AbortController(), ended, accepted };
    this.#live.add(live);
    return live;
  }

  /** Runs one turn, records its status, and closes its session. */
  async #runTurn(
    live: Live,
    prepared: PreparedAgent,
    { prompt, task, attachments, signal, emit, messages }: TurnRequest,
  ) {
    const workspace = this.#workspace;
    const agent = await prepared.start();
    const { name } = agent.session;
    try {
      workspace.commands.use(name);
      live.runs = agent.runs;
      Object.assign(live.record, {
        session: name,
        status: "running",
        started_at: timestamp(workspace.clock),
      });
      let result!: TurnResult;
      for await (const event of agent.turn(prompt, { signal, task, attachments, messages })) {
        emit?.(event);
        if (event.type === "turn_finished" && event.run === ROOT_RUN) result = event.result;
      }
      live.record.status = result.status;
      this.#metrics.turn(result);
      const { status, reason, duration: seconds, total_usage, cost, model, provider } = result;
      const facts = {
        session: name,
        status,
        reason,
        seconds,
        usage: total_usage,
        cost,
        model,
        provider,
      };
      this.#log?.event(`a turn of the session ${name} ended ${status} in ${seconds} s`, {
        event: "turn",
        ...facts,
      });
      return result;
    } finally {
      await this.#workspace.pace.turn(); // closing a session writes files, too
      await agent.close();
      workspace.commands.leave(name);
    }
  }

  #finish(live: Live): void {
    this.#live.delete(live);
    const { record, accepted, ended } = live;
    ended.resolve();
    if (accepted !== undefined) return;
    if (record.status === "queued") record.status = "cancelled";
    if (record.status === "running") record.status = "error";
    record.ended_at = timestamp(this.#workspace.clock);
    this.#recent.unshift(shown(live));
    this.#recent.splice(RECENT);
  }
}

/**
 * Rejects a command of `verify` that the agent of the turn could not run. A command that the policy asks about is
 * accepted from clients with a token, as a call from an MCP client is: without one, any user of the machine could
 * run commands as the user of the server.
 *
 * @throws HttpError 403
 */
function checkVerify(
  { workspace: { tools, guard, config }, authority: { own } }: PreparedAgent,
  { task, confirmed = false }: Pick<TurnRequest, "task" | "confirmed">,
): void {
  if (task?.verify === undefined) return;
  const tool = tools.find("run_command");
  const decision = tool &&
    new Policy(own, guard.sealed(), config).resolve(tool, { command: task.verify });
  if (decision?.action === "allow") return;
  if (decision?.action === "ask" && confirmed && config.get("mcp_server.allow_ask")) return;
  const reason = decision?.reason ?? "there is no tool run_command";
  throw new HttpError(403, `"verify" is refused: ${reason}`);
}

/** Served agents run unattended, and cannot change svc's own settings. */
function agentRequest(
  { session, role, task }: Pick<TurnRequest, "session" | "role" | "task">,
): AgentRequest {
  return {
    session,
    role,
    task,
    operator: headlessOperator(false),
    headless: true,
    immutable: true,
  };
}

/** The error of a request when too many wait. */
export function full(): HttpError {
  const headers = { "retry-after": String(RETRY_AFTER) };
  return new HttpError(429, "too many turns are waiting", headers);
}

function shown({ record, runs }: Live): TurnRecord {
  const agents = runs?.list() ?? [];
  return {
    ...record,
    agents: agents.map(({ id, parent, role, session, status }) => ({
      id,
      parent,
      role,
      session,
      status,
    })),
  };
}
