import { SvcError } from "../platform/error.ts";
import type { Action, FailureKind, ResultDetails, ToolArguments, Usage } from "../plugins/api.ts";

/** The run whose turn a front end asked for; events of other runs come from agents that it started. */
export const ROOT_RUN = 1;

/** A tool call as the turn result reports it. */
export interface ResultToolCall {
  name: string;
  arguments: ToolArguments;
  is_error: boolean;
  /** The policy or the operator did not let it run. */
  refused: boolean;
}

/** The result of a turn: the JSON of `svc run` and of `POST /chat` (specification 4.1, 4.4). */
export interface TurnResult {
  content: string;
  thinking: string;
  tool_calls: ResultToolCall[];
  /** Tools of which calls were refused, with their category, such as `run_command (bash)`; each once. */
  refused: string[];
  /** Each call that was refused, also of the agents that this one started, and why. */
  denied: DeniedCall[];
  errors: TurnError[];
  /** Seconds. */
  duration: number;
  /**
   * Token counts, summed over the rounds and the other requests of this turn (consultations, query refinement,
   * tool analysis); empty when the backend reports none. Agents that it started have their own.
   */
  usage: Usage;
  /** The same of this turn and of all agents that it started. */
  total_usage: Usage;
  /** What `total_usage` costs, by the setting `prices`; null when a model that was asked has no price. */
  cost: number | null;
  /** The model that answered last, and its provider: one of `model_fallback` when the turn's own failed. */
  model: string;
  provider: string;
  /** Name of the session the turn was logged in. */
  session: string;
  status: "ok" | "error" | "empty" | "truncated" | "cancelled";
  /** Why the turn did not end as it should, for programs; empty when it did, or when none applies. */
  reason: TurnReason | "";
  /** Whether the command of the task's `verify` ended with exit code 0; left out for a task without one. */
  verified?: boolean;
  /** Whether the review of a team passed the work, and after how many rounds; left out for a turn without one. */
  verdict?: { passed: boolean; rounds: number };
  /** The answer as a value that satisfies the task's `schema`; left out for a task without one, and without it. */
  data?: unknown;
}

/** A tool call that the policy or the operator did not let run. */
export interface DeniedCall {
  tool: string;
  reason: string;
}

/** An error of a turn. `code` is an HTTP status, or 0. */
export interface TurnError {
  code: number;
  message: string;
  kind?: FailureKind;
  /** Of an `announced` failure: when the backend may be asked again, in milliseconds since 1970. */
  retry_at?: number;
  /** Of an `overflow`: the context window in tokens, where the backend names it. */
  window?: number;
}

export const TURN_REASONS = [
  /** The conversation does not fit the model's context window. */
  "context",
  /** The backend announced when its quota opens again, and the turn may not wait that long. */
  "quota",
  /** The backend rejects every request: the key, the model, exhausted credit. */
  "backend",
  /** The backend failed until the setting `retry_budget` was used up. */
  "unreachable",
  /** The stream was open, but brought no content. */
  "stalled",
  "budget",
  "rounds",
  "repetition",
  "timeout",
  /** Every tool call of several rounds was refused. */
  "refused",
  "verify",
  "schema",
  /** The model wrote a tool call as text. */
  "text_call",
] as const;
export type TurnReason = typeof TURN_REASONS[number];

/** Ends a turn with status `error` and a reason. */
export class TurnFailure extends Error {
  constructor(readonly reason: TurnReason, message: string) {
    super(message);
  }
}

/** The result of a turn that has begun. */
export function unfinishedResult(
  about: Pick<TurnResult, "model" | "provider" | "session">,
): TurnResult {
  return {
    content: "",
    thinking: "",
    tool_calls: [],
    refused: [],
    denied: [],
    errors: [],
    duration: 0,
    usage: {},
    total_usage: {},
    cost: null,
    ...about,
    status: "error",
    reason: "",
  };
}

/**
 * Writes into a result that its turn ended with an error, or was cancelled. The failure of a deadline comes before
 * what it caused.
 *
 * @param wording the message of an error
 * @param record logs the message. When the log cannot be written, the result still says why the turn ended.
 */
export function failTurn(
  result: TurnResult,
  thrown: unknown,
  signal: AbortSignal,
  wording: (error: unknown) => string,
  record: (message: string) => void,
): void {
  const { reason } = signal;
  const unreachable = reason instanceof SvcError && reason.code === "store_unreachable";
  const late = reason instanceof TurnFailure || unreachable ? reason : undefined;
  if (signal.aborted && late === undefined) {
    result.status = "cancelled";
    if (reason instanceof SvcError) result.errors.push({ code: 0, message: reason.message });
    return;
  }
  const error = late ?? thrown;
  const message = wording(error);
  result.status = "error";
  result.errors.push({ code: 0, message });
  if (error instanceof TurnFailure) result.reason = error.reason;
  try {
    record(message);
  } catch {
    // The result has the message.
  }
}

/**
 * The reason that ends what a turn has left open: an error without a stack. The first stack of a process takes 20 ms to
 * make, and nearly all turns end with nothing open.
 */
export const TURN_LEFT: Error = Object.create(Error.prototype, {
  name: { value: "AbortError" },
  message: { value: "The turn was left." },
});

/** Has a turn end when its process has lost the session; see `Session.acquireTurn`. */
export function followLoss(lost: AbortSignal | undefined, turn: AbortController): void {
  lost?.addEventListener("abort", () => turn.abort(lost.reason), { once: true });
}

/** Adds the labels of refused tools to a result, each once. */
export function addRefused(result: TurnResult, labels: string[]): void {
  result.refused = [...new Set([...result.refused, ...labels])];
}

/**
 * What a client knows of the turn's log after an event: the number of parts that it has whole, from 0, then what it has
 * of the following ones, each after a full stop: characters of a text, `t` and characters of thinking, or `c` for a call
 * without its result. Left out where the log has nothing of the event.
 */
interface Placed {
  at?: string;
}

interface TurnEvents {
  turn_started: { session: string; index: number; model: string; provider: string; mode: string };
  thinking: { content: string } & Placed;
  token: { content: string } & Placed;
  /** A message of a person for the running turn. */
  message: { content: string } & Placed;
  /** `status` is the activity line of the tool. */
  tool_call: {
    id: string;
    name: string;
    arguments: ToolArguments;
    category: string;
    status: string;
  } & Placed;
  /**
   * Output of a call that runs, as it comes: whole lines without control characters, at most ten events a second.
   * `skipped`: lines before these that are left out because too much came at once. It is not logged; `tool_result` has
   * the output.
   */
  tool_output: { id: string; name: string; content: string; skipped: number };
  /** `duration` in seconds; `note` is a soft remark such as "no matches". */
  tool_result: {
    id: string;
    name: string;
    output: string;
    is_error: boolean;
    note: string;
    echo: boolean;
    duration: number;
    details?: ResultDetails;
  } & Placed;
  permission: {
    tool: string;
    action: Action;
    decision: "granted" | "declined" | "denied";
    path: string;
    reason: string;
    /** What a granted edit changes, as its confirmation would show it; only where a person is there, who was not asked. */
    preview?: string;
  };
  /** A question that was parked. */
  ask: { id: number; question: string };
  /** A question is routed: to the ancestor with this run's number, or to the human. */
  ask_routed: { question: string; to: number | "human" };
  /** The run stops: the front end continues with another run, by its number, or the run is done. */
  handoff: { target: number | "done" };
  /**
   * Token counts of one reply, as the backend reports them; the last reply's are the context's size. `window`: the
   * tokens of the model's context window, where they are known.
   */
  usage: { usage: Usage; window?: number };
  /** `retry_in`: the run waits this many seconds before it asks the backend again. */
  notice: { level: "info" | "warning" | "error"; message: string; retry_in?: number };
  run_started: { parent: number; role: string; session: string; task: string };
  run_finished: { status: string };
  turn_finished: { result: TurnResult };
}

/** One event of a turn, with the run it belongs to. Front ends render these and nothing else. */
export type TurnEvent = {
  [K in keyof TurnEvents]: { type: K; run: number } & TurnEvents[K];
}[keyof TurnEvents];

/** Merges the events of running tools into the stream of the turn. */
export class EventQueue {
  #events: TurnEvent[] = [];
  #wake = () => {};

  push(event: TurnEvent): void {
    this.#events.push(event);
    this.#wake();
  }

  /** Yields the events that arrive until `work` settles, and returns its result. */
  async *during<T>(work: Promise<T>): AsyncGenerator<TurnEvent, T> {
    let settled = false;
    const settle = () => {
      settled = true;
      this.#wake();
    };
    work.then(settle, settle);
    while (true) {
      yield* this.#events.splice(0);
      if (this.#events.length > 0) continue; // arrived while the consumer had the last ones
      if (settled) return await work;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }
}
