import * as z from "zod/mini";
import { ROOT_RUN, type TurnEvent, type TurnResult } from "../engine/events.ts";
import type { RunRegistry } from "../engine/runs.ts";
import { type AgentRequest, prepareAgent, type PreparedAgent } from "../engine/start.ts";
import type { TurnTask } from "../engine/task.ts";
import type { Workspace } from "../engine/workspace.ts";
import { AdmissionQueue } from "../platform/admission_queue.ts";
import { Pace, timestamp } from "../platform/clock.ts";
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
export const runRecord = z.object({
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
export type RunRecord = z.infer<typeof runRecord>;

/** A request for one turn. */
export interface TurnRequest {
  prompt: string;
  /** Name of a session to load or create, or a handle; left out: a new one. */
  session?: string;
  task?: TurnTask;
  /** Whether the client has a token, and counts as the person who confirms a command of the task. Default: no. */
  confirmed?: boolean;
  /** Aborts when the client disconnects. */
  signal: AbortSignal;
  /** Called when the turn runs or is queued. */
  onAdmitted?: () => void;
  emit?: (event: TurnEvent) => void;
}

/** How a turn ended; `cut` is the error for the client when the server cancelled it. */
export interface TurnEnd {
  result: TurnResult;
  cut?: HttpError;
}

interface Live {
  record: Omit<RunRecord, "agents">;
  runs?: RunRegistry;
  stop: AbortController;
}

/** The turns of one server. They run headless and unattended; the last ones that ended are kept for `GET /runs`. */
export class Turns {
  readonly #workspace: Workspace;
  readonly #metrics: Metrics;
  readonly #log: ServerLog | undefined;
  readonly #queue: AdmissionQueue;
  readonly #pace = new Pace();
  readonly #live = new Set<Live>();
  readonly #recent: RunRecord[] = [];
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
  list(): RunRecord[] {
    return [...Array.from(this.#live, shown), ...this.#recent];
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
    if (given.session !== undefined) checkSessionName(given.session);
    const session = given.session && workspace.sessions.resolve(given.session);
    const request = { ...given, session };
    await this.#pace.turn(); // preparing a turn reads files
    let prepared = await prepareAgent(workspace, agentRequest(request)); // a turn that cannot begin is not queued
    checkVerify(prepared, request);
    const live = this.#admit(request);
    const seconds = workspace.config.get("serve.timeout");
    const over = new AbortController();
    if (seconds > 0) {
      workspace.clock.sleep(seconds * 1000, over.signal).then(() => {
        live.stop.abort(new HttpError(504, `the turn took longer than ${seconds} seconds`));
      }, () => {});
    }
    const signal = AbortSignal.any([request.signal, live.stop.signal]);
    try {
      const entry = this.#queue.enter(request.session ?? live, signal);
      if (entry === undefined) {
        const headers = { "retry-after": String(RETRY_AFTER) };
        throw new HttpError(429, "too many turns are waiting", headers);
      }
      request.onAdmitted?.();
      const waited = await Promise.race([entry, WAITING]) === "waiting";
      const release = await entry;
      try {
        await this.#pace.turn(); // opening a session writes files
        // While it waited, the role of the session may have changed.
        if (waited) prepared = await prepareAgent(workspace, agentRequest(request));
        const result = await this.#runTurn(live, prepared, { ...request, signal });
        if (result.status !== "cancelled") return { result };
        return { result, cut: live.stop.signal.reason };
      } finally {
        release();
      }
    } finally {
      over.abort();
      this.#finish(live);
    }
  }

  /** Resolves when no turn runs or waits. */
  idle(): Promise<void> {
    return this.#queue.idle();
  }

  /** Cancels every turn that runs or waits. */
  cancelAll(): void {
    for (const { stop } of this.#live) stop.abort(new HttpError(503, "the server is stopping"));
  }

  #admit({ session = "" }: TurnRequest): Live {
    const record = {
      id: ++this.#ids,
      session,
      status: "queued" as const,
      queued_at: timestamp(this.#workspace.clock),
      started_at: "",
      ended_at: "",
    };
    const live = { record, stop: new AbortController() };
    this.#live.add(live);
    return live;
  }

  /** Runs one turn, records its status, and closes its session. */
  async #runTurn(
    live: Live,
    prepared: PreparedAgent,
    { prompt, task, signal, emit }: TurnRequest,
  ) {
    const workspace = this.#workspace;
    const agent = await prepared.start();
    try {
      live.runs = agent.runs;
      Object.assign(live.record, {
        session: agent.session.name,
        status: "running",
        started_at: timestamp(workspace.clock),
      });
      let result!: TurnResult;
      for await (const event of agent.turn(prompt, { signal, task })) {
        emit?.(event);
        if (event.type === "turn_finished" && event.run === ROOT_RUN) result = event.result;
      }
      live.record.status = result.status;
      this.#metrics.turn(result);
      const { status, reason, duration: seconds, total_usage, cost, model, provider } = result;
      const session = agent.session.name;
      const facts = { session, status, reason, seconds, usage: total_usage, cost, model, provider };
      this.#log?.event(`a turn of the session ${session} ended ${status} in ${seconds} s`, {
        event: "turn",
        ...facts,
      });
      return result;
    } finally {
      await this.#pace.turn(); // closing a session writes files, too
      await agent.close();
    }
  }

  #finish(live: Live): void {
    this.#live.delete(live);
    const { record } = live;
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
  { task, confirmed = false }: TurnRequest,
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
function agentRequest({ session, task }: Pick<TurnRequest, "session" | "task">): AgentRequest {
  return { session, task, operator: headlessOperator(false), headless: true, immutable: true };
}

function shown({ record, runs }: Live): RunRecord {
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
