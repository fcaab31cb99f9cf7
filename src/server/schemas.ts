import * as z from "zod/mini";
import { askSchema } from "../asks/store.ts";
import { historyEntry, job } from "../jobs/schema.ts";
import { sessionDocument, turnStatus } from "../sessions/schema.ts";

/** Text that says something. */
const said = () => z.string().check(z.refine((text) => text.trim() !== ""), z.minLength(1));

/** Body of `POST /chat` (specification 4.1). */
export const chatRequest = z.object({
  prompt: said(),
  /** Loads or creates a session of this name; left out: a fresh one. */
  session: z.optional(z.string()),
  /** Answers with the turn's events, as `Accept: text/event-stream` does. */
  stream: z.optional(z.boolean()),
});

/** The turn result (specification 4.1, 4.4). */
export const chatResponse = z.object({
  content: z.string(),
  thinking: z.string(),
  tool_calls: z.array(z.object({
    name: z.string(),
    arguments: z.record(z.string(), z.unknown()),
    is_error: z.boolean(),
  })),
  errors: z.array(z.object({ code: z.int(), message: z.string() })),
  duration: z.number(),
  usage: z.record(z.string(), z.number()),
  model: z.string(),
  provider: z.string(),
  session: z.string(),
  status: z.enum(["ok", "error", "empty", "truncated", "cancelled"]),
});

export const answerRequest = z.object({ answer: said() });

export const answerResponse = z.object({
  ask: askSchema(),
  session: z.string(),
  resume: z.string(),
  injected: z.boolean(),
});

export const asksResponse = z.object({ asks: z.array(askSchema()) });

export const sessionsResponse = z.object({ sessions: z.array(z.string()) });

export const sessionResponse = sessionDocument;

export const healthResponse = z.object({ status: z.string() });

export const versionResponse = z.object({ version: z.string() });

/** A turn of this server, with the agents that took part. */
const runRecord = z.object({
  id: z.int(),
  /** Empty until a fresh session is made. */
  session: z.string(),
  status: z.union([z.literal("queued"), turnStatus]),
  queued_at: z.string(),
  /** Empty while it waits, and so is `ended_at` until it has ended. */
  started_at: z.string(),
  ended_at: z.string(),
  agents: z.array(z.object({
    id: z.int(),
    parent: z.int(),
    role: z.string(),
    session: z.string(),
    status: turnStatus,
  })),
});
export type RunRecord = z.infer<typeof runRecord>;

export const runsResponse = z.object({ runs: z.array(runRecord) });

export const jobsResponse = z.object({ jobs: z.array(job) });

export const jobResponse = z.object({ job });

export const jobWithHistory = z.object({ job, history: z.array(historyEntry) });

export const errorResponse = z.object({ error: z.string() });
