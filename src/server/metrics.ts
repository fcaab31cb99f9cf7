import type { TurnResult } from "../engine/events.ts";

/** Upper bounds of the histogram of turn durations, in seconds. */
const BOUNDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800];

/** What is true at the moment of asking. */
export interface Gauges {
  running: number;
  queued: number;
  sessions: number;
  /** Bytes of resident memory. */
  memory: number;
}

/** Counts what the server does; its size does not depend on how much that is. */
export class Metrics {
  readonly #turns = new Map<string, number>();
  readonly #tokens = new Map<string, number>();
  readonly #responses = new Map<string, number>();
  readonly #buckets = BOUNDS.map(() => 0);
  #seconds = 0;
  #count = 0;

  turn(result: Pick<TurnResult, "status" | "usage" | "duration">): void {
    add(this.#turns, result.status, 1);
    for (const kind of ["prompt_tokens", "completion_tokens"]) {
      const tokens = result.usage[kind];
      if (tokens !== undefined) add(this.#tokens, kind.replace("_tokens", ""), tokens);
    }
    this.#seconds += result.duration;
    this.#count++;
    for (const [index, bound] of BOUNDS.entries()) {
      if (result.duration <= bound) this.#buckets[index]!++;
    }
  }

  response(status: number): void {
    add(this.#responses, String(status), 1);
  }

  /** The text format of Prometheus, 0.0.4. */
  text(gauges: Gauges): string {
    const buckets = BOUNDS.map((bound, index) =>
      `svc_turn_duration_seconds_bucket{le="${bound}"} ${this.#buckets[index]}`
    );
    return [
      ...head("svc_turns_total", "counter", "Turns that ended, by status."),
      ...samples("svc_turns_total", "status", this.#turns),
      ...head("svc_tokens_total", "counter", "Tokens that backends reported, by kind."),
      ...samples("svc_tokens_total", "kind", this.#tokens),
      ...head(
        "svc_http_responses_total",
        "counter",
        "Responses, those of /health aside, by status.",
      ),
      ...samples("svc_http_responses_total", "status", this.#responses),
      ...gauge("svc_turns_running", "Turns that run.", gauges.running),
      ...gauge("svc_turns_queued", "Turns that wait for their place.", gauges.queued),
      ...gauge("svc_sessions", "Sessions of the worktree.", gauges.sessions),
      ...gauge("process_resident_memory_bytes", "Resident memory.", gauges.memory),
      ...head("svc_turn_duration_seconds", "histogram", "How long turns took."),
      ...buckets,
      `svc_turn_duration_seconds_bucket{le="+Inf"} ${this.#count}`,
      `svc_turn_duration_seconds_sum ${this.#seconds}`,
      `svc_turn_duration_seconds_count ${this.#count}`,
    ].join("\n") + "\n";
  }
}

function add(counts: Map<string, number>, key: string, amount: number): void {
  counts.set(key, (counts.get(key) ?? 0) + amount);
}

function head(name: string, type: string, help: string): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}

function samples(name: string, label: string, counts: Map<string, number>): string[] {
  return Array.from(counts, ([value, count]) => `${name}{${label}="${value}"} ${count}`);
}

function gauge(name: string, help: string, value: number): string[] {
  return [...head(name, "gauge", help), `${name} ${value}`];
}
