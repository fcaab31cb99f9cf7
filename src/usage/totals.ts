import { join } from "node:path";
import { errorMessage } from "../platform/error.ts";
import {
  type HeldLock,
  makeFolder,
  mintId,
  tryHold,
  tryRemove,
  withFileLock,
} from "../platform/files.ts";
import type { Lease, RequestRow, StoreLink } from "../store/port.ts";
import {
  addSums,
  type Density,
  isHeld,
  learn,
  type Ledger,
  type LedgerLine,
  LIVE,
  noSums,
  type RequestLine,
  type ReservationLine,
  type Sums,
  sumsOf,
} from "./ledger.ts";

/** What the ledger says of a budget. */
export interface Totals {
  used: Sums;
  /** By requests that have begun and not ended, of all processes. */
  reserved: Sums;
}

/** The lines that a budget counts. */
export interface Filter {
  /** The first UTC day. */
  since: string;
  job?: string;
  run?: string;
}

/**
 * Running totals of the ledger, for budgets that several processes share. A file is read from where the last look
 * ended. What a process has reserved when it is killed counts as used, since the backend may have answered. A process
 * keeps a file locked for as long as it lives.
 */
export class LedgerTotals {
  readonly #ledger: Ledger;
  readonly #days = new Map<string, DayTotals>();
  readonly #by = `${LIVE}${mintId()}`;
  #alive: HeldLock | undefined;
  /** In a store: shows the other machines that this process lives. */
  #lease: Lease | undefined;
  /** In a store: the processes that lived when the lock was taken. */
  #living: ReadonlySet<string> | undefined;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /**
   * Runs `work` while no other process reserves or settles, with a store none of any machine. Without a lock, as on a
   * read-only disk, it runs alone.
   *
   * @throws SvcError `store_unreachable`; what `work` throws
   */
  async locked<T>(work: () => T): Promise<T> {
    if (this.#ledger.store !== undefined) return await this.#shared(this.#ledger.store, work);
    let result: { value: T } | undefined;
    let failure: { error: unknown } | undefined;
    const run = () => {
      try {
        result = { value: work() };
      } catch (error) {
        failure = { error };
      }
    };
    try {
      makeFolder(this.#ledger.directory, 0o700);
      await withFileLock(join(this.#ledger.directory, "ledger"), run);
    } catch (error) {
      const message = `Budgets are not shared with other processes: ${errorMessage(error)}`;
      this.#ledger.warnOnce("lock", message);
      if (result === undefined && failure === undefined) run();
    }
    if (failure !== undefined) throw failure.error;
    return result!.value;
  }

  async #shared<T>(store: StoreLink, work: () => T): Promise<T> {
    const { unsent } = this.#ledger;
    const { requests, leases } = await store.open();
    this.#lease ??= await leases.take(`live/${this.#by}`);
    let lines: RequestRow[] = [];
    try {
      return await requests.exclusive((living) => {
        this.#living = living;
        const result = work();
        lines = unsent.splice(0);
        return { lines, result };
      });
    } catch (error) {
      unsent.unshift(...lines);
      throw error;
    }
  }

  /** The totals of the lines that a budget counts, as they are on disk now. */
  of({ since, job, run }: Filter): Totals {
    const today = this.#ledger.today();
    const used = noSums();
    const reserved = noSums();
    const days = since === today ? [today] : this.#ledger.days().filter((day) => day >= since);
    const alive = new Map<string, boolean>();
    for (const day of new Set([...days, today])) {
      const totals = this.#day(day);
      const name = run === undefined ? job ?? "" : `${job} ${run}`;
      addSums(used, totals.sums.get(name) ?? noSums());
      for (const line of totals.open.values()) {
        if (job !== undefined && line.job !== job || run !== undefined && line.run !== run) {
          continue;
        }
        if (!alive.has(line.by)) alive.set(line.by, this.#lives(line.by));
        addSums(alive.get(line.by) ? reserved : used, { ...line, calls: 0 });
      }
    }
    return { used, reserved };
  }

  /** The jobs with requests today. */
  jobs(): string[] {
    const names = this.#day(this.#ledger.today()).sums.keys();
    return [...names].filter((name) => name !== "" && !name.includes(" "));
  }

  /** What the day's requests show of a model; undefined without any. */
  density(model: string): Density | undefined {
    return this.#day(this.#ledger.today()).densities.get(model);
  }

  /** Reserves within `locked`. @returns the reservation, for `settle` */
  reserve(request: Omit<ReservationLine, "time" | "reserves" | "by">): ReservationLine {
    try {
      this.#alive ??= tryHold(join(this.#ledger.directory, this.#by));
    } catch {
      // `append` warns of a folder that cannot be written.
    }
    const time = new Date(this.#ledger.clock.now()).toISOString();
    const line = { time, reserves: mintId() + mintId(), by: this.#by, ...request };
    this.#append(line, time.slice(0, 10));
    return line;
  }

  /** Ends a reservation within `locked`. The request counts for the day on which it began. */
  settle(line: RequestLine, { reserves, time }: ReservationLine): void {
    this.#append({ ...line, settles: reserves }, time.slice(0, 10));
  }

  async close(): Promise<void> {
    if (this.#alive !== undefined) tryRemove(join(this.#ledger.directory, this.#by));
    this.#alive?.release();
    this.#alive = undefined;
    await this.#lease?.release();
    this.#lease = undefined;
  }

  #append(line: LedgerLine, day: string): void {
    if (!this.#ledger.append(line, day)) this.#day(day).add(line);
  }

  #day(day: string): DayTotals {
    let totals = this.#days.get(day);
    if (totals === undefined) this.#days.set(day, totals = new DayTotals(this.#ledger, day));
    totals.sync();
    return totals;
  }

  /** Whether the process that keeps a file locked is alive. */
  #lives(name: string): boolean {
    if (name === this.#by || this.#living?.has(name)) return true;
    return /^\.live-\w+$/.test(name) && isHeld(join(this.#ledger.directory, name));
  }
}

/** The totals of one file, as far as it was read. */
class DayTotals {
  /** By job, by job and run, and of all under the empty name. */
  readonly sums = new Map<string, Sums>();
  /** Reservations that have not been settled. */
  readonly open = new Map<string, ReservationLine>();
  readonly densities = new Map<string, Density>();
  readonly #ledger: Ledger;
  readonly #day: string;
  #read = 0;

  constructor(ledger: Ledger, day: string) {
    this.#ledger = ledger;
    this.#day = day;
  }

  /** Reads the whole lines that were appended since the last call. */
  sync(): void {
    const { lines, offset } = this.#ledger.readFrom(this.#day, this.#read);
    this.#read = offset;
    for (const line of lines) this.add(line);
  }

  add(line: LedgerLine): void {
    if ("reserves" in line) return void this.open.set(line.reserves, line);
    if (line.settles !== undefined) this.open.delete(line.settles);
    const { job, run, provider, model, chars } = line;
    const names = ["", ...job ? [job, ...run ? [`${job} ${run}`] : []] : []];
    for (const name of names) {
      let sums = this.sums.get(name);
      if (sums === undefined) this.sums.set(name, sums = noSums());
      addSums(sums, sumsOf(line));
    }
    if (line.for === "turn" && chars > 0 && line.in > 0 && !line.estimated) {
      const ref = `${provider}/${model}`;
      this.densities.set(ref, learn(line, this.densities.get(ref)));
    }
  }
}
