import { ownerRole, ownersOf } from "../engine/agents/owner.ts";
import { roleBackends } from "../engine/agents/role_backend.ts";
import { ROOT_RUN, type TurnEvent, type TurnResult } from "../engine/events.ts";
import type { RunRegistry } from "../engine/agents/runs.ts";
import type { Workspace } from "../engine/workspace.ts";
import { Pace, timestamp } from "../platform/clock.ts";
import { headlessOperator } from "../policy/operator.ts";
import { approveModels } from "../providers/approvals.ts";
import { checkSessionName } from "../sessions/names.ts";
import { HttpError } from "./http_error.ts";
import type { Metrics } from "./metrics.ts";
import type { RunRecord } from "./schemas.ts";
import { TurnQueue } from "./turn_queue.ts";

/** Ended turns that `GET /runs` still shows. */
const RECENT = 100;

/** What a turn is asked for with. */
export interface TurnRequest {
  prompt: string;
  /** Name of a session to load or make; left out: a fresh one. */
  session?: string;
  /** Aborts when nobody waits for the answer any more. */
  signal: AbortSignal;
  /** Called when the turn has a place in the queue. */
  onAdmitted?: () => void;
  emit?: (event: TurnEvent) => void;
}

/** How a turn ended, and the error that it is answered with when the server cut it short. */
export interface TurnEnd {
  result: TurnResult;
  cut?: HttpError;
}

interface Live {
  record: Omit<RunRecord, "agents">;
  runs?: RunRegistry;
  stop: AbortController;
}

/** The turns of one server: admitted, run headless and unattended, remembered for a while. */
export class Turns {
  readonly #workspace: Workspace;
  readonly #metrics: Metrics;
  readonly #queue: TurnQueue;
  readonly #pace = new Pace();
  readonly #live = new Set<Live>();
  readonly #recent: RunRecord[] = [];
  #ids = 0;

  constructor(workspace: Workspace, metrics: Metrics) {
    const { config } = workspace;
    this.#workspace = workspace;
    this.#metrics = metrics;
    this.#queue = new TurnQueue({
      concurrent: config.get("serve.max_concurrent"),
      queue: config.get("serve.max_queue"),
    });
  }

  get running(): number {
    return this.#queue.running;
  }

  get queued(): number {
    return this.#queue.queued;
  }

  /** Turns that run or wait, then those that ended last, the newest first. */
  list(): RunRecord[] {
    return [...Array.from(this.#live, shown), ...this.#recent];
  }

  /**
   * Runs a turn once it is its turn.
   *
   * @returns with an error 504 when it took longer than `serve.timeout`, 503 when the server is stopping
   * @throws HttpError 429 when too many wait, and those above when the turn has not begun; SvcError when it
   * cannot begin; the signal's reason when it aborts before
   */
  async run(request: TurnRequest): Promise<TurnEnd> {
    if (request.session !== undefined) checkSessionName(request.session);
    const workspace = this.#workspace;
    const { ref } = workspace.backend(); // nothing is created when there is no model to ask
    await approveModels(ref === undefined ? [] : [ref], workspace.models, { granted: false });

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
      const place = this.#queue.enter(request.session ?? `\0${live.record.id}`, signal);
      request.onAdmitted?.();
      const release = await place;
      try {
        await this.#pace.turn(); // opening a session writes files
        const result = await this.#take(live, { ...request, signal });
        if (result.status !== "cancelled") return { result };
        return { result, cut: live.stop.signal.reason };
      } finally {
        release();
      }
    } finally {
      over.abort();
      this.#leave(live);
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

  /** One turn in a session of its own handle, which is closed whatever happens. */
  async #take(live: Live, { prompt, session: name, signal, emit }: TurnRequest) {
    const workspace = this.#workspace;
    const { sessions } = workspace;
    const operator = headlessOperator(false);
    const role = await ownerRole(workspace, ownersOf(sessions, name ?? ""));
    const request = { workspace, own: workspace.backend(), operator, approve_models: false };
    const [backend] = await roleBackends([role?.model ?? ""], request);
    const session = name === undefined ? sessions.create("ses") : sessions.open(name);
    try {
      live.runs = workspace.runs();
      live.runs.start({ parent: 0, role: role?.name ?? "", session, task: "" });
      Object.assign(live.record, {
        session: session.name,
        status: "running",
        started_at: timestamp(workspace.clock),
      });
      const engine = workspace.engine({
        session,
        backend,
        role,
        operator,
        headless: true,
        immutable: true,
        runs: live.runs,
      });
      let result!: TurnResult;
      try {
        for await (const event of engine.turn(prompt, { signal })) {
          emit?.(event);
          if (event.type === "turn_finished" && event.run === ROOT_RUN) result = event.result;
        }
      } finally {
        await engine.close();
      }
      live.record.status = result.status;
      this.#metrics.turn(result);
      return result;
    } finally {
      await this.#pace.turn(); // and so does closing it
      session.close();
    }
  }

  #leave(live: Live): void {
    this.#live.delete(live);
    const { record } = live;
    if (record.status === "queued") record.status = "cancelled";
    if (record.status === "running") record.status = "error";
    record.ended_at = timestamp(this.#workspace.clock);
    this.#recent.unshift(shown(live));
    this.#recent.splice(RECENT);
  }
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
