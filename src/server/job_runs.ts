import type { JobContext } from "../jobs/context.ts";
import { beginRun, finishRun, JobRun } from "../jobs/run.ts";
import { errorMessage } from "../platform/error.ts";
import { HttpError } from "./http_error.ts";

/** The job runs that were asked for over HTTP. They go on when the request is over. */
export class JobRuns {
  readonly #context: JobContext;
  readonly #live = new Set<Promise<void>>();
  readonly #stop = new AbortController();

  constructor(context: JobContext) {
    this.#context = context;
  }

  /**
   * Begins a run with its retries.
   *
   * @throws SvcError `unknown_job`; HttpError 409 when the job does not begin a run now
   */
  async start(name: string): Promise<void> {
    const run = await beginRun(this.#context, name, "run");
    if (!(run instanceof JobRun)) throw new HttpError(409, `The job ${name} ${run.refused}.`);
    const { clock } = this.#context;
    const { signal } = this.#stop;
    const work = finishRun(run, { clock, signal }).catch((error) =>
      this.#context.warn(`The run of the job ${name} broke off: ${errorMessage(error)}`)
    ).finally(() => this.#live.delete(work));
    this.#live.add(work);
  }

  /** Resolves when no run is left. */
  async idle(): Promise<void> {
    while (this.#live.size > 0) await Promise.all(this.#live);
  }

  /** Has every run end as interrupted. */
  cancelAll(): void {
    this.#stop.abort(new DOMException("The server is stopping.", "AbortError"));
  }
}
