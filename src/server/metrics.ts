import type { TurnResult } from "../engine/events.ts";
import { metricText } from "../platform/metrics_text.ts";

/** Upper bounds of the histogram of turn durations, in seconds. */
const BOUNDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800];

/** The values of the gauges at the moment of a request. */
export interface Gauges {
  running: number;
  queued: number;
  sessions: number;
  /** Bytes of resident memory. */
  memory: number;
  /** Jobs and runs that wait in the queue of the store, by label. Left out: there is no store. */
  depth?: Map<string, number>;
}

/** Counts what the server does, in constant memory. */
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

  /** The text of `GET /metrics`, in the Prometheus text format. */
  text({ running, queued, sessions, memory, depth }: Gauges): string {
    const buckets = BOUNDS.map((bound, index) =>
      [`_bucket{le="${bound}"}`, this.#buckets[index]!] as const
    );
    return [
      counter("svc_turns_total", "Turns that ended, by status.", "status", this.#turns),
      counter("svc_tokens_total", "Tokens that backends reported, by kind.", "kind", this.#tokens),
      counter(
        "svc_http_responses_total",
        "Responses, those of /health aside, by status.",
        "status",
        this.#responses,
      ),
      gauge("svc_turns_running", "Turns that run.", running),
      gauge("svc_turns_queued", "Turns that wait in the queue.", queued),
      gauge("svc_sessions", "Sessions of the worktree.", sessions),
      ...depth === undefined ? [] : [metricText(
        {
          name: "svc_queue_depth",
          type: "gauge",
          help: "Jobs and runs that wait for a worker, by label.",
        },
        Array.from(new Map([["", 0], ...depth]), ([label, items]) => [`{label="${label}"}`, items]),
      )],
      gauge("process_resident_memory_bytes", "Resident memory.", memory),
      metricText(
        { name: "svc_turn_duration_seconds", type: "histogram", help: "How long turns took." },
        [
          ...buckets,
          ['_bucket{le="+Inf"}', this.#count],
          ["_sum", this.#seconds],
          ["_count", this.#count],
        ],
      ),
    ].join("");
  }
}

function add(counts: Map<string, number>, key: string, amount: number): void {
  counts.set(key, (counts.get(key) ?? 0) + amount);
}

function counter(name: string, help: string, label: string, counts: Map<string, number>): string {
  const samples = Array.from(counts, ([key, count]) => [`{${label}="${key}"}`, count] as const);
  return metricText({ name, type: "counter", help }, samples);
}

function gauge(name: string, help: string, value: number): string {
  return metricText({ name, type: "gauge", help }, [["", value]]);
}
