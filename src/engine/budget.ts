import type { Clock } from "../platform/clock.ts";
import { type SvcError, usageError } from "../platform/error.ts";
import type { ConfigView, Usage } from "../plugins/api.ts";
import {
  addSums,
  noSums,
  type Price,
  type RequestLine,
  rounded,
  type Sums,
  sumsOf,
} from "../usage/ledger.ts";
import type { Totals } from "../usage/totals.ts";
import { TurnFailure } from "./events.ts";
import type { TurnTask } from "./task.ts";

/** Most that a budget allows. */
export interface Limits {
  cost?: number;
  tokens?: number;
  tool_calls?: number;
}

/** What limits the requests of an agent. */
export interface Budget extends Totals {
  limits: Limits;
  /** The option or setting of a limit. */
  name(kind: keyof Limits): string;
}

/** What a turn and the agents that it starts have used. The limits of a turn are those of its root. */
export class Account {
  /** Token counts as the backends reported them. */
  readonly usage: Usage = {};
  readonly task: TurnTask;
  readonly root: Account;
  readonly #parent: Account | undefined;
  #cost: number | null = null;
  #requests = 0;
  readonly #used = noSums();
  readonly #reserved = noSums();
  readonly #told = new Set<string>();
  readonly notices: string[] = [];
  #waiting: (() => void)[] = [];

  constructor(task: TurnTask, parent?: Account) {
    this.task = task;
    this.#parent = parent;
    this.root = parent?.root ?? this;
  }

  /** The account of a turn that this turn's agent starts, with the limits that hold for each agent. */
  child(): Account {
    const { max_rounds } = this.task;
    return new Account(max_rounds === undefined ? {} : { max_rounds }, this);
  }

  /** Of the turn and of all agents under it; null when a request had no price, or when there was no request. */
  get cost(): number | null {
    return this.#cost;
  }

  /** Whether no request has begun. */
  get fresh(): boolean {
    return this.#requests === 0 && this.#reserved.tokens === 0;
  }

  /** The budgets of the turn. */
  budgets(config: ConfigView): Budget[] {
    const { max_cost: cost, max_total_tokens: tokens, max_tool_calls: tool_calls } = this.task;
    const totals = { used: this.#used, reserved: this.#reserved };
    const options = { cost: "max_cost", tokens: "max_total_tokens", tool_calls: "max_tool_calls" };
    const name = (kind: keyof Limits) => options[kind];
    const limits: Limits = config.get("budget.turn");
    return [
      { ...totals, limits: { cost, tokens, tool_calls }, name },
      { ...totals, limits, name: (kind: keyof Limits) => `budget.turn.${kind}` },
    ].filter(({ limits }) => Object.values(limits).some((limit) => limit !== undefined));
  }

  reserve(sums: Sums): void {
    addSums(this.#reserved, sums);
  }

  /** Ends a reservation. */
  release(sums: Sums): void {
    addSums(this.#reserved, sums, -1);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Adds a request, also to the accounts of the turns above. */
  add(line: RequestLine, usage: Usage): void {
    addUsage(this.usage, usage);
    addSums(this.#used, sumsOf(line));
    const unpriced = line.cost === null || (this.#requests > 0 && this.#cost === null);
    this.#cost = unpriced ? null : rounded((this.#cost ?? 0) + line.cost!);
    this.#requests++;
    this.#parent?.add(line, usage);
  }

  /** Resolves when a reservation ends. */
  released(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Notes once that a limit is nearly reached. */
  tell(subject: string, message: string, told = this.#told): void {
    if (told.has(subject)) return;
    told.add(subject);
    this.notices.push(message);
  }
}

const KINDS = ["cost", "tokens", "tool_calls"] as const;
const SUM_OF = { cost: "cost", tokens: "tokens", tool_calls: "calls" } as const;
const UNITS = { cost: "", tokens: " tokens", tool_calls: " tool calls" };

/** A budget does not allow a request. */
export class Exceeded extends Error {}

/**
 * How many tokens a reply may have, so that all requests together stay within the budgets; undefined: a request that
 * runs has reserved too much for this one to begin. An estimate alone does not refuse the first request of a budget:
 * until a backend has reported counts, estimates can be far off.
 *
 * @param request.fresh whether this is the first request of its turn
 * @throws Exceeded
 */
export function decide(
  budgets: Budget[],
  { input, wanted, price, fresh, model }: {
    input: number;
    wanted: number;
    price: Price | undefined;
    fresh: boolean;
    /** As the setting `prices` names it. */
    model: string;
  },
): number | undefined {
  let most = wanted;
  let waits = false;
  for (const budget of budgets) {
    const { limits, used, reserved } = budget;
    if (fresh && limits.tool_calls !== undefined && used.calls >= limits.tool_calls) {
      throw new Exceeded(reached(budget, "tool_calls"));
    }
    for (const kind of ["tokens", "cost"] as const) {
      const limit = limits[kind];
      if (limit === undefined) continue;
      if (kind === "cost" && price === undefined) {
        const { message, hint } = unpriced(budget.name(kind), model);
        throw new Exceeded(`${message} ${hint}`);
      }
      const [each, fixed] = kind === "tokens"
        ? [1, input]
        : [price!.out / 1e6, input * price!.in / 1e6];
      const tokens = (left: number) => each === 0 ? (left < 0 ? 0 : Infinity) : left / each;
      const alone = tokens(limit - used[kind] - fixed);
      const now = tokens(limit - used[kind] - reserved[kind] - fixed);
      const first = used[kind] === 0;
      if (alone < 1 && !first) throw new Exceeded(reached(budget, kind, fixed));
      if (reserved[kind] > 0 && now < wanted) waits = true;
      most = Math.min(most, Math.max(1, Math.floor(alone < 1 ? tokens(limit) : alone)));
    }
  }
  return waits ? undefined : most;
}

export function callsLeft({ limits, used }: Budget): number {
  return limits.tool_calls === undefined ? Infinity : Math.max(0, limits.tool_calls - used.calls);
}

/** A notice, by the name of the budget, for each limit of which 80 % are used, and whether all of it is. */
export function nearlyReached(
  { limits, used, name }: Budget,
): [name: string, message: string, reached: boolean][] {
  return KINDS.flatMap((kind): [string, string, boolean][] => {
    const limit = limits[kind];
    const amount = used[SUM_OF[kind]];
    if (limit === undefined || amount < 0.8 * limit) return [];
    const share = Math.floor(100 * amount / limit);
    const counted = `${rounded(amount)} of ${limit}${UNITS[kind]}`;
    const message = `${share} % of the budget ${name(kind)} are used: ${counted}.`;
    return [[name(kind), message, amount >= limit]];
  });
}

/** @param needed what the next request needs at least */
export function reached(budget: Budget, kind: keyof Limits, needed = 0): string {
  const limit = budget.limits[kind]!;
  const unit = UNITS[kind];
  const used = Math.max(budget.used[SUM_OF[kind]], kind === "tool_calls" ? limit : 0);
  const next = needed > 0 ? `, and the next request needs about ${rounded(needed)}${unit}` : "";
  return `Stopped by the budget ${budget.name(kind)}: ${rounded(used)} of ${limit}` +
    `${unit} are used${next}. The results so far are saved; a follow-up goes on from there.`;
}

export function unpriced(budget: string, ref: string): SvcError {
  return usageError(
    "no_price",
    `The budget ${budget} cannot be kept: ${ref} has no price.`,
    `Set it per million tokens: svc config set prices '{"${ref}": {"in": 1, "out": 2}}', or limit tokens.`,
  );
}

/** Seconds that a root turn may take; 0: no cap. */
export function turnTimeout({ timeout, quota_wait = 0 }: TurnTask, config: ConfigView): number {
  if (timeout !== undefined) return timeout;
  const limit: number = config.get("unattended") ? config.get("unattended_timeout") : 0;
  return limit === 0 ? 0 : limit + quota_wait;
}

/** Aborts with a TurnFailure after a number of seconds; 0: never. */
export function startDeadline(
  clock: Clock,
  seconds: number,
): { signal: AbortSignal; stop(): void } {
  const expired = new AbortController();
  const settled = new AbortController();
  if (seconds > 0) {
    const message =
      `Stopped after ${seconds} seconds, the time that this turn may take (timeout). The results ` +
      "so far are saved; a follow-up goes on from there.";
    clock.sleep(seconds * 1000, settled.signal).then(
      () => expired.abort(new TurnFailure("timeout", message)),
      () => {},
    );
  }
  return { signal: expired.signal, stop: () => settled.abort("the turn has ended") };
}

/** Adds the counts of `more` to `total`. */
export function addUsage(total: Usage, more: Usage): void {
  for (const [key, count] of Object.entries(more)) {
    if (typeof count === "number") total[key] = (total[key] ?? 0) + count;
  }
}
