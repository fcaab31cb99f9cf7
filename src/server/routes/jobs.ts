import { moveGate } from "../../jobs/transitions.ts";
import type { Route } from "../route.ts";
import { jobResponse, jobsResponse, jobWithHistory } from "../schemas.ts";

const GATES = {
  approve: "Approves a job, or grants the run that waits for it.",
  reject: "Rejects a job: it is proposed again, and disabled.",
  enable: "Enables a job.",
  disable: "Disables a job; a run that has begun goes on.",
} as const;

const ERRORS = { 404: "no such job", 409: "the job's state does not allow it" };

/** The operator's side of jobs (specification 3.1). */
export const jobs: Route[] = [
  {
    method: "GET",
    path: "/jobs",
    summary: "All jobs, without their histories.",
    answers: jobsResponse,
    handle: ({ jobs }) => Response.json({ jobs: jobs.register.list() }),
  },
  {
    method: "GET",
    path: "/jobs/:name",
    summary: "A job with its history, the oldest attempt first.",
    answers: jobWithHistory,
    errors: { 404: ERRORS[404] },
    handle({ jobs: { register }, params: { name = "" } }) {
      return Response.json({ job: register.need(name), history: register.history(name) });
    },
  },
  ...Object.entries(GATES).map(([trigger, summary]): Route => ({
    method: "POST",
    path: `/jobs/:name/${trigger}`,
    summary,
    answers: jobResponse,
    errors: ERRORS,
    async handle({ jobs, params: { name = "" } }) {
      return Response.json({ job: await moveGate(jobs, name, trigger as keyof typeof GATES) });
    },
  })),
  {
    method: "POST",
    path: "/jobs/:name/run",
    summary: "Begins a run now, which also approves the job. How it ends is in the job's history.",
    answers: jobResponse,
    errors: ERRORS,
    async handle({ jobs, jobRuns, params: { name = "" } }) {
      await jobRuns.start(name);
      return Response.json({ job: jobs.register.need(name) });
    },
  },
];
