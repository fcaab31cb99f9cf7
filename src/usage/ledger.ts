import { join } from "node:path";
import { type Clock, systemClock } from "../platform/clock.ts";
import { errorMessage } from "../platform/error.ts";
import {
  entriesOf,
  lstatIfExists,
  makeFolder,
  readAt,
  readTextIfExists,
  tryRemove,
  writeAllSync,
} from "../platform/files.ts";
import type { ConfigView, Usage } from "../plugins/api.ts";
import type { RequestRow, StoreLink } from "../store/port.ts";

/** Who makes a request; empty names for none. */
export interface Origin {
  session: string;
  role: string;
  team: string;
  job: string;
  /** When the job's run began, which identifies the run. */
  run: string;
  /** The machine, where several share a store: `<host>/<process id>`. */
  worker: string;
}

/** A request to a model that has ended. */
export interface RequestLine extends Partial<Origin> {
  /** ISO 8601 in UTC. */
  time: string;
  /** What the request was for: `turn`, `search`, `analysis`, `consultation`, `summary`, `memory` or `other`. */
  for: string;
  provider: string;
  model: string;
  /** Tokens of the request, of which `cached` came from the backend's cache. */
  in: number;
  /** Tokens of the reply, of which `reasoning` were reasoning. */
  out: number;
  cached: number;
  reasoning: number;
  /** Null without a price. */
  cost: number | null;
  /** Tool calls of the reply that were allowed to run. */
  calls: number;
  /** Characters that the messages take in a request. */
  chars: number;
  /** The backend reported no counts, so they are estimates. */
  estimated?: true;
  /** The request failed, or was cancelled. */
  failed?: true;
  /** The id of the reservation that ends with this line. */
  settles?: string;
}

/** What a request that is about to be sent may use at most; ended by a line that settles it. */
export interface ReservationLine extends Pick<Partial<Origin>, "job" | "run"> {
  time: string;
  reserves: string;
  /** Name of the file that the process keeps locked while it lives. */
  by: string;
  tokens: number;
  cost: number;
}

export type LedgerLine = RequestLine | ReservationLine;

interface LedgerOptions {
  state: string;
  /** For `usage.keep_days`; readers need none. */
  config?: ConfigView;
  clock: Clock;
  warn: (message: string) => void;
  /** Shares the lines with other machines. */
  store?: StoreLink;
}

/** Milliseconds after which a line is sent to the store, with those that follow it. */
const SEND = 500;

/**
 * The record of all requests to models: `.svc/usage/<UTC day>.jsonl`, one line for each, append-only. Several
 * processes append at the same time. Appending never throws: bookkeeping does not fail a turn.
 */
export class Ledger {
  readonly directory: string;
  readonly clock: Clock;
  readonly #config: ConfigView | undefined;
  readonly #warn: (message: string) => void;
  readonly #warned = new Set<string>();
  /** The file whose last line is known to be whole. */
  #whole = "";
  readonly store: StoreLink | undefined;
  /** Lines that the store does not have yet. */
  readonly unsent: RequestRow[] = [];
  #sending: Promise<void> | undefined;

  /** @param state `<worktree>/.svc` */
  constructor({ state, config, clock, warn, store }: LedgerOptions) {
    this.directory = join(state, "usage");
    this.store = store;
    this.clock = clock;
    this.#config = config;
    this.#warn = warn;
  }

  /** The UTC day of the clock. */
  today(): string {
    return dayOf(this.clock.now());
  }

  file(day: string): string {
    return join(this.directory, `${day}.jsonl`);
  }

  /**
   * Appends a line to the file of a day, by default its own. Nothing is synced: the line survives the process, but
   * maybe not a power failure.
   *
   * @returns whether it was written
   */
  append(line: LedgerLine, day = line.time.slice(0, 10)): boolean {
    const path = this.file(day);
    try {
      if (this.#whole !== path) makeFolder(this.directory, 0o700);
      const repair = this.#whole === path ? "" : repairOf(path);
      if (repair === undefined) this.#prune(day);
      this.#whole = "";
      const text = `${repair ?? ""}${JSON.stringify(line)}\n`;
      const file = Deno.openSync(path, { append: true, create: true, mode: 0o600 });
      try {
        writeAllSync(file, new TextEncoder().encode(text));
      } finally {
        file.close();
      }
      this.#whole = path;
      if (this.store !== undefined) this.#send({ day, line });
      return true;
    } catch (error) {
      this.warnOnce("write", `The usage of models is not recorded: ${errorMessage(error)}`);
      return false;
    }
  }

  /** Sends what the store does not have yet, and waits for it. */
  async flush(): Promise<void> {
    await this.#sending;
    const { store, unsent } = this;
    if (store === undefined || unsent.length === 0) return;
    let count = 0;
    await (await store.open()).requests.append(() => {
      count = unsent.length; // lines may have been sent while the lock was waited for
      return [...unsent];
    });
    unsent.splice(0, count);
  }

  /** Brings the files and the store up to date. */
  async refresh(): Promise<void> {
    await this.flush();
    if (this.store !== undefined) await (await this.store.open()).requests.pull();
  }

  #send(row: RequestRow): void {
    this.unsent.push(row);
    this.#sending ??= systemClock.sleep(SEND)
      .then(() => {
        this.#sending = undefined;
        return this.flush();
      })
      .catch((error) => {
        this.warnOnce(
          "store",
          `The usage of models is not in the store yet: ${errorMessage(error)}`,
        );
      });
  }

  /** The lines of a day; broken ones are skipped. */
  read(day: string): LedgerLine[] {
    try {
      return this.#parse(readTextIfExists(this.file(day)) ?? "", day);
    } catch (error) {
      this.warnOnce(day, `${this.file(day)} cannot be read: ${errorMessage(error)}`);
      return [];
    }
  }

  /** The whole lines of a day that were appended since `offset` bytes, and the offset of the next ones. */
  readFrom(day: string, offset: number): { lines: LedgerLine[]; offset: number } {
    try {
      using file = Deno.openSync(this.file(day));
      const { size } = file.statSync();
      if (size <= offset) return { lines: [], offset };
      const bytes = readAt(file, offset, size - offset);
      const end = bytes.lastIndexOf(0x0a) + 1;
      const text = new TextDecoder().decode(bytes.subarray(0, end));
      return { lines: this.#parse(text, day), offset: offset + end };
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) {
        this.warnOnce(day, `${this.file(day)} cannot be read: ${errorMessage(error)}`);
      }
      return { lines: [], offset };
    }
  }

  /** Whole lines of the file of a day. */
  #parse(text: string, day: string): LedgerLine[] {
    const lines: LedgerLine[] = [];
    let broken = 0;
    for (const each of text.split("\n")) {
      if (each === "") continue;
      const line = parsed(each);
      if (line === undefined) broken++;
      else lines.push(line);
    }
    if (broken > 0) {
      const skipped = broken === 1 ? "1 broken line is" : `${broken} broken lines are`;
      this.warnOnce(day, `${this.file(day)}: ${skipped} skipped.`);
    }
    return lines;
  }

  /** The days that have a file, in order. */
  days(): string[] {
    return entriesOf(this.directory)
      .flatMap(({ name }) => /^(\d{4}-\d\d-\d\d)\.jsonl$/.exec(name)?.[1] ?? []).sort();
  }

  /** Removes what is older than `usage.keep_days`, on the first request of a day, and what killed processes left. */
  #prune(today: string): void {
    const first = this.firstKept(today);
    for (const day of this.days().filter((day) => day < first)) tryRemove(this.file(day));
    for (const { name } of Deno.readDirSync(this.directory)) {
      if (name.startsWith(LIVE)) isHeld(join(this.directory, name));
    }
  }

  /** The first day that `usage.keep_days` keeps; empty: all are kept. */
  firstKept(today = this.today()): string {
    const keep: number = this.#config?.get("usage.keep_days") ?? 0;
    return keep === 0 ? "" : dayOf(Date.parse(today) - keep * 86_400_000);
  }

  /** Warns once about each subject. */
  warnOnce(subject: string, message: string): void {
    if (this.#warned.has(subject)) return;
    this.#warned.add(subject);
    this.#warn(message);
  }
}

/** The UTC day of a time in milliseconds. */
export function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** Begins the names of the files that processes with reservations keep locked. */
export const LIVE = ".live-";

/** Whether a process keeps a file locked. A file that none does is removed. */
export function isHeld(path: string): boolean {
  let file: Deno.FsFile | undefined; // the bundler would lose a "using" that is read once
  try {
    file = Deno.openSync(path, { write: true });
    if (!file.tryLockSync(true)) return true;
  } catch {
    return false;
  } finally {
    file?.close();
  }
  tryRemove(path);
  return false;
}

/** What separates the next line from a last one that was cut off; undefined when there is no file yet. */
function repairOf(path: string): string | undefined {
  const info = lstatIfExists(path);
  if (info === undefined) return undefined;
  if (info.size === 0) return "";
  if (!info.isFile) throw new Error(`${path} is not a regular file`);
  using file = Deno.openSync(path);
  file.seekSync(-1, Deno.SeekMode.End);
  const last = new Uint8Array(1);
  file.readSync(last);
  return last[0] === 0x0a ? "" : "\n";
}

function parsed(text: string): LedgerLine | undefined {
  try {
    const line = JSON.parse(text);
    const numbers = "reserves" in line ? ["tokens", "cost"] : ["in", "out", "calls"];
    const valid = typeof line.time === "string" &&
      numbers.every((name) => typeof line[name] === "number");
    return valid ? line : undefined;
  } catch {
    return undefined;
  }
}

/** The price of a model per million tokens, in the user's currency. */
export interface Price {
  in: number;
  out: number;
  /** Of tokens that come from the backend's cache. Default: `in`. */
  cached?: number;
  /** Of tokens that the backend writes into its cache, where that has a price of its own. Default: `in`. */
  cache_write?: number;
}

/** The price of a model in the setting `prices`, by `<provider>/<model>` or `<provider>/*`; undefined without one. */
export function priceOf(
  config: ConfigView,
  provider: string,
  model: string,
): Price | undefined {
  const prices = config.get("prices") as Record<string, Partial<Price>>;
  const names = [`${provider}/${model}`, `${provider}/*`];
  const price = names.map((name) => prices[name]).find((price) => price !== undefined) ?? {};
  return price.in === undefined || price.out === undefined ? undefined : price as Price;
}

/** The cost of a request; null without a price. */
export function costOf(usage: Usage, price: Price | undefined): number | null {
  if (price === undefined) return null;
  const { prompt_tokens = 0, completion_tokens = 0 } = usage;
  const cached = Math.min(usage.cached_tokens ?? 0, prompt_tokens);
  const stored = Math.min(usage.cache_write_tokens ?? 0, prompt_tokens - cached);
  const cost = (prompt_tokens - cached - stored) * price.in + cached * (price.cached ?? price.in) +
    stored * (price.cache_write ?? price.in) +
    completion_tokens * price.out;
  return rounded(cost / 1e6);
}

/** The tokens of a model's requests by the characters of their messages. */
export interface Density {
  /** Tokens of every request: those of the tools. */
  fixed: number;
  /** Tokens of a character. */
  each: number;
}

/** Tokens of a character, where the backend has not reported a count yet. */
const UNKNOWN: Density = { fixed: 0, each: 1 / 4 };

export function estimate(chars: number, { fixed, each } = UNKNOWN): number {
  return fixed + chars * each;
}

/** What a request that the backend has counted shows. Where messages take few tokens, the most of all requests count. */
export function learn(
  line: Pick<RequestLine, "in" | "chars">,
  known: Density | undefined,
): Density {
  const fixed = line.in - estimate(line.chars);
  if (fixed > 0) return { fixed, each: UNKNOWN.each };
  return { fixed: 0, each: Math.max(line.in / line.chars, known?.fixed === 0 ? known.each : 0) };
}

/** Amounts that a budget limits. */
export interface Sums {
  tokens: number;
  cost: number;
  calls: number;
}

export function noSums(): Sums {
  return { tokens: 0, cost: 0, calls: 0 };
}

/** What a request counts for. */
export function sumsOf(line: RequestLine): Sums {
  return { tokens: line.in + line.out, cost: line.cost ?? 0, calls: line.calls };
}

export function addSums(to: Sums, more: Sums, sign: 1 | -1 = 1): void {
  to.tokens += sign * more.tokens;
  to.cost += sign * more.cost;
  to.calls += sign * more.calls;
}

/** Without the digits that additions of fractions leave. */
export function rounded(amount: number): number {
  return Math.round(amount * 1e9) / 1e9;
}

/** An amount of money: cents, and further digits where it is less. */
export function amount(cost: number): string {
  return cost >= 1 || cost === 0 ? cost.toFixed(2) : String(Number(cost.toPrecision(2)));
}
