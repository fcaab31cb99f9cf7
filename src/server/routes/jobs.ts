import * as z from "zod/mini";
import type { JobContext } from "../../jobs/context.ts";
import { NAME_PATTERN } from "../../catalog/schema.ts";
import { beginRun, finishRun, JobRun } from "../../jobs/run.ts";
import { historyEntry, job } from "../../jobs/schema.ts";
import { moveGate } from "../../jobs/transitions.ts";
import { errorMessage } from "../../platform/error.ts";
import { HttpError } from "../http.ts";
import type { Route } from "../route.ts";

const GATES = {
  approve: "Approves a job, or grants the run that waits for it.",
  reject: "Rejects a job: it is proposed again, and disabled.",
  enable: "Enables a job.",
  disable: "Disables a job; a run that has begun goes on.",
} as const;

const STATUSES = { 404: "no such job", 409: "the job's state does not allow it" };

const NAME = { name: { type: "string", pattern: NAME_PATTERN.source } };

const jobResponse = z.object({ job });

/** The operator's side of jobs (specification 3.1). */
export function jobRoutes(jobs: JobContext, runs: JobRuns): Route[] {
  const { register } = jobs;
  return [
    {
      method: "GET",
      path: "/jobs",
      summary: "All jobs, without their histories.",
      answers: z.object({ jobs: z.array(job) }),
      async handle() {
        await register.refresh();
        return Response.json({ jobs: register.list() });
      },
    },
    {
      method: "GET",
      path: "/jobs/:name",
      summary: "A job with its history, the oldest attempt first.",
      params: NAME,
      answers: z.object({ job, history: z.array(historyEntry) }),
      statuses: { 404: STATUSES[404] },
      async handle(_, { name = "" }) {
        await register.refresh();
        return Response.json({ job: register.need(name), history: register.history(name) });
      },
    },
    ...Object.entries(GATES).map(([trigger, summary]): Route => ({
      method: "POST",
      path: `/jobs/:name/${trigger}`,
      summary,
      params: NAME,
      answers: jobResponse,
      approves: true,
      statuses: STATUSES,
      async handle(_, { name = "" }) {
        return Response.json({ job: await moveGate(jobs, name, trigger as keyof typeof GATES) });
      },
    })),
    {
      method: "POST",
      path: "/jobs/:name/run",
      summary:
        "Begins a run now, which also approves the job. How it ends is in the job's history.",
      params: NAME,
      answers: jobResponse,
      approves: true,
      statuses: STATUSES,
      async handle(_, { name = "" }) {
        await runs.start(name);
        return Response.json({ job: register.need(name) });
      },
    },
  ];
}

/** The job runs that clients started. They continue after their request. */
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

  /** Ends every run as interrupted. */
  cancelAll(): void {
    this.#stop.abort(new DOMException("The server is stopping.", "AbortError"));
  }
}
