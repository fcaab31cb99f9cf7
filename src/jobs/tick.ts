import { errorMessage } from "../platform/error.ts";
import type { JobContext } from "./attempt.ts";
import { isDue, isRunnable, plannedRun } from "./due.ts";
import { recover } from "./recover.ts";
import { JobRun } from "./run.ts";
import { readTime } from "./schedule.ts";

/**
 * Runs the jobs of one worktree as they come due (specification 4.5). It has no loop of its own: who owns
 * the time calls `tick`.
 */
export class Scheduler {
  readonly #context: JobContext;
  /** The runs whose next attempt waits for the end of its backoff. */
  readonly #waiting = new Map<string, JobRun>();

  constructor(context: JobContext) {
    this.#context = context;
  }

  /**
   * Makes one attempt of every job that is due, in the order of their names, one at a time or as many as
   * `concurrency` says. While a job waits out a backoff the others have their turn; its own comes with the
   * first tick after that. What goes wrong with one job is warned about and holds up no other.
   *
   * @returns the milliseconds at which something is due next; undefined when nothing is planned
   */
  async tick(signal: AbortSignal, concurrency = 1): Promise<number | undefined> {
    const { clock } = this.#context;
    await this.#safely("the register", () => recover(this.#context));
    await this.#plan();
    const due = this.#due(clock.now());
    const worker = async () => {
      while (!signal.aborted) {
        const name = due.shift();
        if (name === undefined) return;
        await this.#safely(name, () => this.#attempt(name, signal));
      }
    };
    await Promise.all(Array.from({ length: Math.max(1, concurrency) }, worker));
    return this.#next();
  }

  /** Leaves the runs that wait for their next attempt to the next start. */
  async close(): Promise<void> {
    for (const [name, run] of this.#waiting) await this.#safely(name, () => run.suspend());
    this.#waiting.clear();
  }

  async #attempt(name: string, signal: AbortSignal): Promise<void> {
    const waiting = this.#waiting.get(name);
    this.#waiting.delete(name);
    const run = waiting ?? await JobRun.begin(this.#context, name, "tick");
    if (!(run instanceof JobRun)) return;
    await run.attempt(signal);
    if (run.next !== undefined) this.#waiting.set(name, run);
  }

  /** The names of what is due, in their order. */
  #due(now: number): string[] {
    const runs = [...this.#waiting.values()].filter(({ next }) => next! <= now);
    const jobs = this.#context.register.list().filter((job) =>
      isRunnable(job) && isDue(job, now) && !this.#waiting.has(job.name)
    );
    const names = [...runs, ...jobs].map(({ name }) => name);
    return names.sort((one, other) => one < other ? -1 : 1);
  }

  #next(): number | undefined {
    const times = [
      ...[...this.#waiting.values()].map(({ next }) => next!),
      ...this.#context.register.list().filter(isRunnable)
        .flatMap(({ next_run_at }) => readTime(next_run_at) ?? []),
    ];
    return times.length === 0 ? undefined : times.reduce((one, other) => Math.min(one, other));
  }

  /** Gives a next run to the jobs that have none, because they were written by hand. */
  async #plan(): Promise<void> {
    const { register, clock } = this.#context;
    const unplanned = register.list().filter((job) =>
      job.next_run_at === "" && isRunnable(job) && plannedRun(job, clock.now()) !== ""
    );
    for (const { name } of unplanned) {
      await this.#safely(
        name,
        () =>
          register.change(
            name,
            (job) =>
              job.next_run_at === ""
                ? { set: { next_run_at: plannedRun(job, clock.now()) } }
                : undefined,
          ),
      );
    }
  }

  async #safely(about: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#context.warn(`${about}: ${errorMessage(error)}`);
    }
  }
}
