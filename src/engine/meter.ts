import type { Clock } from "../platform/clock.ts";
import { SvcError } from "../platform/error.ts";
import type {
  ChatMessage,
  ChatOptions,
  ConfigView,
  Provider,
  StreamEvent,
  Usage,
} from "../plugins/api.ts";
import type { Backend } from "../providers/resolve.ts";
import {
  costOf,
  type Density,
  estimate,
  learn,
  Ledger,
  type Origin,
  type Price,
  priceOf,
  type RequestLine,
  type ReservationLine,
  type Sums,
} from "../usage/ledger.ts";
import type { StoreLink } from "../store/port.ts";
import type { Filter, LedgerTotals } from "../usage/totals.ts";
import {
  type Account,
  type Budget,
  callsLeft,
  decide,
  Exceeded,
  type Limits,
  nearlyReached,
  reached,
  unpriced,
} from "./budget.ts";
import { type TurnEvent, TurnFailure } from "./events.ts";
import { addUsage } from "./budget.ts";
import { sizeOf } from "./conversation.ts";
import type { TurnTask } from "./task.ts";
import { tracedAsk, tracedChat } from "./trace.ts";

/** A budget that is counted in the ledger. */
interface SharedBudget {
  name: string;
  limits: Limits;
  filter: Filter;
}

/** A budget of the day that is nearly used up. */
export interface DayBudget {
  /** Empty for that of all jobs and sessions. */
  job: string;
  /** Such as `budget.day.cost`. */
  name: string;
  message: string;
  /** Whether all of it is used. */
  reached: boolean;
}

/** Settings whose budgets are counted in the ledger. */
const SHARED = ["budget.job_run", "budget.job_day", "budget.day"] as const;

/**
 * What the agents of a workspace use. Every request to a model passes a {@linkcode Meter} of it, which records the
 * request in the ledger and keeps it within the budgets.
 */
export class Spending {
  readonly ledger: Ledger;
  readonly config: ConfigView;
  /** The job that all requests are for, and when its run began. */
  job: { job: string; run: string } | undefined;
  /** The notices that were given: each once a day. */
  readonly told = new Set<string>();
  /** By model, what requests of this process have shown. */
  readonly densities = new Map<string, Density>();
  #totals: Promise<LedgerTotals> | undefined;

  constructor(
    given: {
      state: string;
      config: ConfigView;
      clock: Clock;
      warn: (message: string) => void;
      store?: StoreLink;
    },
  ) {
    this.config = given.config;
    this.ledger = new Ledger(given);
  }

  /** @param origin who makes the requests */
  meter(origin: Pick<Origin, "session"> & Partial<Origin>): Meter {
    return new Meter(this, { ...origin, worker: this.ledger.store?.worker ?? "" });
  }

  totals(): Promise<LedgerTotals> {
    return this.#totals ??= import("../usage/totals.ts")
      .then(({ LedgerTotals }) => new LedgerTotals(this.ledger));
  }

  /** The budgets that are counted in the ledger, and what they count. */
  shared(): SharedBudget[] {
    const since = this.ledger.today();
    return SHARED.flatMap((name): SharedBudget[] => {
      const limits: Limits = this.config.get(name);
      if (Object.keys(limits).length === 0) return [];
      if (name === "budget.day") return [{ name, limits, filter: { since } }];
      if (this.job === undefined) return [];
      const { job, run } = this.job;
      return name === "budget.job_day"
        ? [{ name, limits, filter: { since, job } }]
        : [{ name, limits, filter: { since: run.slice(0, 10) || since, job, run } }];
    });
  }

  /** The budgets of the day of which 80 % are used: of all, and of each job. */
  async dayBudgets(): Promise<DayBudget[]> {
    const since = this.ledger.today();
    const all: Limits = this.config.get("budget.day");
    const each: Limits = this.config.get("budget.job_day");
    if (Object.keys({ ...all, ...each }).length === 0) return [];
    const totals = await this.totals();
    await this.ledger.refresh();
    const budgets: SharedBudget[] = [
      { name: "budget.day", limits: all, filter: { since } },
      ...totals.jobs().map((job) => ({
        name: "budget.job_day",
        limits: each,
        filter: { since, job },
      })),
    ];
    return budgets.flatMap((budget) => {
      const { job = "" } = budget.filter;
      return nearlyReached(budgetOf(budget, totals))
        .map(([name, message, reached]) => ({ job, name, message, reached }));
    });
  }

  /**
   * Rejects a cost budget that cannot be kept, since a model has no price.
   *
   * @throws SvcError `no_price` (exit 2)
   */
  checkPrices(backends: Pick<Backend, "provider" | "model" | "cls">[], task: TurnTask = {}): void {
    const turn: Limits = this.config.get("budget.turn");
    const budget = task.max_cost !== undefined
      ? "max_cost"
      : turn.cost !== undefined
      ? "budget.turn.cost"
      : this.shared().filter(({ limits }) => limits.cost !== undefined)
        .map(({ name }) => `${name}.cost`)[0];
    if (budget === undefined) return;
    for (const { provider, model: named, cls } of backends) {
      const model = named || cls.DEFAULT_MODEL;
      if (priceOf(this.config, provider, model) === undefined) {
        throw unpriced(budget, `${provider}/${model}`);
      }
    }
  }

  async close(): Promise<void> {
    await (await this.#totals)?.close();
    await this.ledger.flush();
  }
}

/** A request that may be sent. */
interface Ticket {
  chars: number;
  /** The estimated tokens of the request. */
  input: number;
  price: Price | undefined;
  /** Most tokens of the reply, where a budget leaves fewer than the settings. */
  max_tokens?: number;
  reserved?: Sums;
  reservation?: ReservationLine;
}

/** What is known of a request that has not been recorded yet. */
interface Unsettled {
  purpose: string;
  usage: Usage;
  /** Characters of the reply, and its tool calls. */
  produced: number;
  calls: number;
  failed: boolean;
  /** The characters that arrived of each reply that broke off. */
  cuts: number[];
}

function unsettled(purpose: string): Unsettled {
  return { purpose, usage: {}, produced: 0, calls: 0, failed: true, cuts: [] };
}

/** Tokens of a reply that are reserved where the setting `max_tokens` is 0. */
const REPLY = 4096;
/** Milliseconds between two looks at what other processes have reserved. */
const POLL = 200;

/** Records the requests of one agent, and keeps them within the budgets. */
export class Meter {
  readonly #spending: Spending;
  readonly #origin: Partial<Origin>;
  /** The turn that runs; requests outside of a turn are limited by the budgets of days alone. */
  account: Account | undefined;
  /** Counts what the backend reports for the agent's own requests. */
  #own: Usage = {};
  /** The agent's last request of a turn: the characters of its messages, and its tokens. */
  #last: { model: string; chars: number; tokens: number } | undefined;
  /** Tool calls of the last reply that may still run, and whether one was not run. */
  #calls = Infinity;
  #stopped = "";

  constructor(spending: Spending, origin: Partial<Origin>) {
    this.#spending = spending;
    this.#origin = Object.fromEntries(Object.entries(origin).filter(([, name]) => name !== ""));
  }

  /** Begins a turn. @param own gets the token counts of the agent's own requests */
  begin(account: Account, own: Usage): void {
    this.account = account;
    this.#own = own;
    this.#calls = Infinity;
    this.#stopped = "";
  }

  /** Counts a tool call of the last reply. @returns whether it may run */
  takeCall(): boolean {
    return this.#calls-- > 0;
  }

  /** @throws TurnFailure when a tool call was not run */
  checkCalls(): void {
    if (this.#calls < 0) throw new TurnFailure("budget", this.#stopped);
  }

  /** Notices of limits that are nearly reached. */
  *notices(run: number): Generator<TurnEvent> {
    for (const message of this.account?.root.notices.splice(0) ?? []) {
      yield { type: "notice", run, level: "warning", message };
    }
  }

  /** A provider whose requests pass this meter. */
  wrap(provider: Provider): Provider {
    const metered: Pick<Provider, "chat" | "chat_nonstreaming"> = {
      chat: (messages, options) => this.#chat(provider, messages, options),
      chat_nonstreaming: (messages, options) => this.#ask(provider, messages, options),
    };
    return new Proxy(provider, {
      get(target, name) {
        if (name === "chat" || name === "chat_nonstreaming") return metered[name];
        const value = Reflect.get(target, name); // with the provider as receiver, for its private fields
        return typeof value === "function" ? value.bind(target) : value;
      },
      set: (target, name, value) => Reflect.set(target, name, value),
    });
  }

  async *#chat(
    provider: Provider,
    messages: ChatMessage[],
    options: ChatOptions = {},
  ): AsyncGenerator<StreamEvent> {
    const purpose = options.purpose ?? "turn";
    let end = unsettled(purpose);
    let ticket: Ticket | undefined = await this.#admit(provider, messages, options, purpose);
    const given = limited(options, ticket, (arrived) => end.cuts.push(arrived));
    try {
      for await (const event of tracedChat(provider, messages, given)) {
        if (event.type === "wait" && end.cuts.length > 0) {
          // The provider sends the request again, which the budgets have to allow.
          const spent = ticket;
          ticket = undefined;
          await this.#settle(provider, spent!, end);
          end = unsettled(purpose);
          ticket = await this.#admit(provider, messages, options, purpose);
          given.max_tokens = limited(options, ticket).max_tokens;
        }
        if (event.type === "token" || event.type === "thinking") {
          end.produced += event.content.length;
        } else if (event.type === "tool_calls") {
          end.calls += event.tool_calls.length;
          end.produced += JSON.stringify(event.tool_calls).length;
        } else if (event.type === "done") {
          end.usage = event.usage;
          end.failed = event.reason === "eof";
        }
        yield event;
      }
    } finally {
      if (ticket !== undefined) await this.#settle(provider, ticket, end);
    }
  }

  async #ask(
    provider: Provider,
    messages: ChatMessage[],
    options: ChatOptions = {},
  ): Promise<string> {
    const purpose = options.purpose ?? "other";
    const ticket = await this.#admit(provider, messages, options, purpose);
    const end = unsettled(purpose);
    const spend = (usage: Usage) => {
      end.usage = usage;
      options.spend?.(usage);
    };
    try {
      const cut = (arrived: number) => end.cuts.push(arrived);
      const given = { ...limited(options, ticket, cut), spend };
      const answer = await tracedAsk(provider, messages, given);
      end.produced = answer.length;
      end.failed = false;
      return answer;
    } finally {
      await this.#settle(provider, ticket, end);
    }
  }

  /**
   * Waits until a request may be sent, and reserves what it may use at most.
   *
   * @throws TurnFailure, or outside of a turn SvcError, `budget` when it may not be sent
   */
  async #admit(
    provider: Provider,
    messages: ChatMessage[],
    { signal, tools = [], max_tokens = this.#spending.config.get("max_tokens") as number }:
      ChatOptions,
    purpose: string,
  ): Promise<Ticket> {
    const { config, ledger, densities, job } = this.#spending;
    const chars = messages.reduce((sum, each) => sum + sizeOf(each, provider.echo_reasoning), 0);
    const price = priceOf(config, provider.name, provider.model);
    const root = this.account?.root;
    const own = root?.budgets(config) ?? [];
    const shared = this.#spending.shared();
    if (own.length === 0 && shared.length === 0) {
      return { chars, price, input: Math.ceil(estimate(chars)) };
    }
    const totals = shared.length === 0 ? undefined : await this.#spending.totals();
    const model = `${provider.name}/${provider.model}`;
    const size = () => {
      if (purpose !== "turn") return estimate(chars);
      if (this.#last?.model === model) {
        const { chars: before, tokens } = this.#last;
        return Math.max(1, tokens + estimate(chars) - estimate(before));
      }
      const known = densities.get(model) ?? totals?.density(model);
      return known ? estimate(chars, known) : estimate(chars + JSON.stringify(tools).length);
    };
    const attempt = (): Ticket | undefined => {
      const budgets = [...own, ...shared.map((each) => budgetOf(each, totals!))];
      const input = Math.ceil(size());
      const wanted = max_tokens || REPLY;
      const fresh = this.account?.root.fresh === true;
      const out = decide(budgets, { input, wanted, price, fresh, model });
      if (out === undefined) return undefined;
      const cost = price === undefined ? 0 : (input * price.in + out * price.out) / 1e6;
      const reserved = { tokens: input + out, cost, calls: 0 };
      root?.reserve(reserved);
      const reservation = totals?.reserve({ ...job, tokens: reserved.tokens, cost });
      return {
        ...{ chars, price, input },
        reserved,
        reservation,
        ...(out < wanted && { max_tokens: out }),
      };
    };
    try {
      while (true) {
        const ticket = totals === undefined ? attempt() : await totals.locked(attempt);
        if (ticket !== undefined) return ticket;
        const released = root?.released();
        using over = new Wait(signal);
        const poll = totals && ledger.clock.sleep(POLL, over.signal);
        await Promise.race([over.aborted, ...released ? [released] : [], ...poll ? [poll] : []]);
      }
    } catch (error) {
      if (!(error instanceof Exceeded)) throw error;
      throw root === undefined
        ? new SvcError("budget", error.message)
        : new TurnFailure("budget", error.message);
    }
  }

  /** Records a request that has ended, and ends its reservation. */
  async #settle(
    provider: Provider,
    { chars, input, price, reserved, reservation }: Ticket,
    end: Unsettled,
  ): Promise<void> {
    const { ledger, densities, job, config } = this.#spending;
    const { usage, failed, produced, calls, cuts } = end;
    const reported = Object.values(usage).some((count) => count > 0);
    // The last reply is one of the cuts when the request failed.
    const replies = [
      ...cuts,
      ...reported || (failed && (produced === 0 || cuts.length > 0)) ? [] : [produced],
    ];
    const counts = { ...usage };
    for (const length of replies) {
      addUsage(counts, { prompt_tokens: input, completion_tokens: Math.ceil(estimate(length)) });
    }
    const out = counts.completion_tokens ?? 0;
    const line: RequestLine = {
      time: new Date(ledger.clock.now()).toISOString(),
      ...this.#origin,
      ...job,
      for: end.purpose,
      provider: provider.name,
      model: provider.model,
      in: counts.prompt_tokens ?? Math.max(0, (counts.total_tokens ?? 0) - out),
      out,
      cached: counts.cached_tokens ?? 0,
      reasoning: counts.reasoning_tokens ?? 0,
      cost: costOf(counts, price),
      calls,
      chars,
      ...(replies.length > 0 && { estimated: true as const }),
      ...(failed && { failed: true as const }),
    };
    if (reported && end.purpose === "turn" && line.in > 0) {
      const model = `${provider.name}/${provider.model}`;
      this.#last = { model, chars, tokens: line.in };
      if (chars > 0) densities.set(model, learn(line, densities.get(model)));
    }
    const root = this.account?.root;
    const own = root?.budgets(config) ?? [];
    const finish = (shared: Budget[], write: () => void) => {
      const budgets = [...own, ...shared];
      const most = Math.min(calls, ...budgets.map(callsLeft));
      if (most < calls) {
        this.#stopped = reached(budgets.find((each) => callsLeft(each) === most)!, "tool_calls");
      }
      line.calls = Math.max(0, most);
      if (end.purpose === "turn") this.#calls = most < calls ? line.calls : Infinity;
      write();
      this.account?.add(line, usage);
    };
    if (reservation === undefined) {
      finish([], () => void ledger.append(line));
    } else {
      const totals = await this.#spending.totals();
      const shared = this.#spending.shared();
      await totals.locked(() => {
        const before = shared.map((each) => budgetOf(each, totals));
        finish(before, () => totals.settle(line, reservation));
        this.#noteNearlyReached(shared.map((each) => budgetOf(each, totals)), ledger.today());
      });
    }
    this.#noteNearlyReached(own);
    addUsage(this.#own, usage);
    if (reserved !== undefined) root?.release(reserved);
  }

  /** @param day of budgets of which a notice is given once a day and process */
  #noteNearlyReached(budgets: Budget[], day?: string): void {
    const { told } = this.#spending;
    for (const [name, message] of budgets.flatMap(nearlyReached)) {
      this.account?.root.tell(`${name} ${day}`, message, day === undefined ? undefined : told);
    }
  }
}

function budgetOf(
  { name, limits, filter }: SharedBudget,
  totals: LedgerTotals,
): Budget {
  return { ...totals.of(filter), limits, name: (kind) => `${name}.${kind}` };
}

function limited(
  options: ChatOptions,
  { max_tokens }: Ticket,
  cut?: ChatOptions["cut"],
): ChatOptions {
  if (max_tokens === undefined) return { ...options, cut };
  return { ...options, cut, max_tokens: Math.min(max_tokens, options.max_tokens ?? Infinity) };
}

/** A wait that ends with a signal. */
class Wait implements Disposable {
  readonly #over = new AbortController();
  readonly signal = this.#over.signal;
  readonly aborted: Promise<never>;

  constructor(signal: AbortSignal | undefined) {
    this.aborted = new Promise((_, reject) => {
      const abort = () => reject(signal?.reason);
      if (signal?.aborted) return abort();
      signal?.addEventListener("abort", abort, { once: true, signal: this.#over.signal });
    });
    this.aborted.catch(() => {});
  }

  [Symbol.dispose](): void {
    this.#over.abort("the wait is over");
  }
}
