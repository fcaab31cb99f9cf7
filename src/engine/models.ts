import type { ConfigView, Provider } from "../plugins/api.ts";
import type { TurnError, TurnReason } from "./events.ts";
import type { TurnTask } from "./task.ts";

/** A model that can be asked in a turn. */
export interface TurnModel {
  provider: Provider;
  /** Called when the model is first asked in a turn. */
  used(): void;
}

/**
 * The models of one turn: the agent's own, then those of the setting `model_fallback`. When all have failed, the one
 * whose quota opens first is waited for, as far as the turn may wait.
 */
export class TurnModels {
  /** The time left to wait for announced quotas, of all agents of the turn together. */
  readonly quota_wait: { seconds: number };
  readonly #models: readonly TurnModel[];
  readonly #now: () => number;
  /** The failure of each model so far. */
  readonly #failures: TurnError[] = [];
  #at = 0;
  #waits = false;

  constructor(
    models: readonly TurnModel[],
    { quota_wait, now }: { quota_wait: { seconds: number }; now: () => number },
  ) {
    this.#models = models;
    this.quota_wait = quota_wait;
    this.#now = now;
  }

  /** What the next request is sent to. */
  get provider(): Provider {
    return this.#models[this.#at]!.provider;
  }

  /** What the next request may wait for a quota: nothing, while another model may answer at once. */
  get patience(): { quota_wait?: { seconds: number } } {
    return this.#waits ? { quota_wait: this.quota_wait } : {};
  }

  /**
   * Chooses the model that the same request is sent to after a failure.
   *
   * @returns what to tell the operator, may be empty; or the error with which the turn ends
   */
  next(error: TurnError): { notice: string } | { error: TurnError } {
    if (this.#waits || error.kind === "overflow") return { error };
    this.#failures[this.#at] = error;
    if (this.#at + 1 < this.#models.length) {
      this.#models[++this.#at]!.used();
      return { notice: `Asking ${refOf(this.provider)} instead (model_fallback).` };
    }
    const opens = this.#failures.map(({ kind, retry_at }) =>
      kind === "announced" && retry_at !== undefined ? retry_at : Infinity
    );
    const first = Math.min(...opens);
    const { seconds } = this.quota_wait;
    if (seconds > 0 && first - this.#now() <= seconds * 1000) {
      this.#waits = true;
      this.#at = opens.indexOf(first);
      return { notice: "" };
    }
    if (first === Infinity) return { error: this.#failures[0]! };
    const closed = this.#failures[opens.indexOf(first)]!;
    return { error: { ...closed, message: `${closed.message}. ${HOW_TO_WAIT}` } };
  }
}

/** The time that a turn may wait for announced quotas: its task's, else the setting's. */
export function quotaWait(task: TurnTask, config: ConfigView): { seconds: number } {
  return { seconds: task.quota_wait ?? config.get("quota_wait") };
}

const HOW_TO_WAIT = "The setting quota_wait (--wait) lets a turn wait for it";

/** A provider's model as a ref. */
function refOf({ name, model }: Provider): string {
  return `${name}/${model}`;
}

const REASONS = {
  overflow: "context",
  permanent: "backend",
  announced: "quota",
  transient: "unreachable",
  stalled: "stalled",
} as const;

/** Why a turn ends after an error; empty for a failure without a kind. */
export function reasonOf({ kind }: TurnError): TurnReason | "" {
  return kind === undefined ? "" : REASONS[kind];
}
