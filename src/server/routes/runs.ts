import * as z from "zod/mini";
import { digest, isEnded, type Run, RUN_STATES, type RunState } from "../../engine/run_store.ts";
import { taskFields, taskOf } from "../../engine/task.ts";
import type { Workspace } from "../../engine/workspace.ts";
import { SESSION_NAME } from "../../sessions/names.ts";
import { readBody, readQuery } from "../http.ts";
import type { Route } from "../route.ts";
import { EVENT_ID, runResult, streamRun } from "../run_events.ts";
import type { Runs } from "../runs.ts";
import { turnResult } from "./chat.ts";
import { type TurnRecord, turnRecord, type Turns } from "../turns.ts";

const runRequest = z.object({
  prompt: z.string().check(z.regex(/\S/)),
  /** As in `POST /chat`. */
  session: z.optional(
    z.nullable(z.union([z.literal(""), z.string().register(z.globalRegistry, SESSION_NAME)])),
  ),
  /** Default: the role that owns the session. */
  role: z.optional(z.string()),
  /** An address that is told of the end of the run. */
  webhook: z.optional(z.string().check(z.maxLength(2048))),
  ...taskFields(),
});

const messageRequest = z.object({ message: z.string().check(z.regex(/\S/)) });

/** An entry of `GET /runs`: an accepted run, or a turn of `POST /chat`, whose id is a number. */
const runEntry = z.object({
  ...turnRecord.shape,
  id: z.union([z.int(), z.string()]),
  state: z.enum(RUN_STATES),
  /** Why an accepted run failed, for programs and for people; empty when it did not. */
  reason: z.optional(z.string()),
  error: z.optional(z.string()),
  /** Indices of its turns in the log of its session. */
  turns: z.optional(z.array(z.int())),
  /** Ids of the asks that it waits for. */
  asks: z.optional(z.array(z.int())),
  /** Messages that it has not read yet. */
  messages: z.optional(z.array(z.string())),
  /** The whole prompt, or its beginning in a list. */
  prompt: z.optional(z.string()),
  role: z.optional(z.string()),
  /** The job that a hook has started. */
  job: z.optional(z.string()),
  /** Who runs it or has run it, where several machines share a store. */
  worker: z.optional(z.string()),
});
type RunEntry = z.infer<typeof runEntry>;

const RANGE = { error: "a whole number from 1 to 1000" };
const runsQuery = z.object({
  state: z.optional(z.enum(RUN_STATES, { error: `one of ${RUN_STATES.join(", ")}` })),
  limit: z._default(
    z.coerce.number(RANGE).check(z.int(RANGE), z.gte(1, RANGE), z.lte(1000, RANGE)),
    100,
  ),
});

const STATUSES = { 404: "no such run" };
const CHANGES = { ...STATUSES, 409: "the run has ended, or belongs to another server" };

/** Runs that continue without a client (specification 4.1). */
export function runRoutes(workspace: Workspace, turns: Turns, runs: Runs): Route[] {
  const entry = (run: Run) => entryOf(run, turns);
  /** Numbers are the ids of turns of `POST /chat`. */
  const found = (id: string): RunEntry => {
    const turn = turns.list().find((each) => String(each.id) === id);
    return turn === undefined ? entry(runs.need(id)) : turnEntry(turn);
  };
  return [
    {
      method: "POST",
      path: "/runs",
      summary:
        "Accepts a run, which continues without the client and after a restart of the server. The same " +
        "`Idempotency-Key` with the same body gives the same run.",
      headers: { "idempotency-key": { description: "The client's name of this request." } },
      body: runRequest,
      accepts: true,
      answers: runEntry,
      statuses: {
        400: "no prompt, no name of a session, or no JSON Schema",
        403:
          "the policy does not let the client run the command of `verify`, or the webhook is not allowed",
        404: "no such session or role",
        409: "the session cannot be read, or `max_cost` is given and the model has no price",
        422: "the key belongs to a request with another body",
        429: "too many turns are waiting",
        503: "no model can be asked, or the server is stopping",
      },
      async handle(request, _, authenticated) {
        const given = await readBody(request, workspace, runRequest, "prompt");
        const { prompt, session, role = "", webhook = "", schema } = given;
        if (schema !== undefined) {
          const { checkSchema } = await import("../../tools/json_schema.ts");
          checkSchema(schema);
        }
        const task = taskOf(given);
        const key = request.headers.get("idempotency-key") || undefined;
        const { run, known } = await runs.accept({
          request: { prompt, role, task, confirmed: authenticated, webhook },
          session: session || undefined,
          body: digest(JSON.stringify(given)),
          key: key && `key ${key}`,
        });
        const location = `/runs/${run.id}`;
        return Response.json(entry(run), { status: known ? 200 : 202, headers: { location } });
      },
    },
    {
      method: "GET",
      path: "/runs",
      summary:
        "The turns and accepted runs that run or wait, then those that ended last, the newest first: `state` " +
        "of the runs, `limit` (100).",
      query: runsQuery,
      answers: z.object({ runs: z.array(runEntry) }),
      statuses: { 400: "no such state, or no such limit" },
      handle(request) {
        const { state, limit } = readQuery(request, runsQuery);
        const states = state === undefined ? RUN_STATES : [state];
        const entries = [
          ...turns.list().map(turnEntry).filter(({ state }) => states.includes(state)),
          ...runs.store.list({ limit, states }).map(entry),
        ];
        return Response.json({ runs: newest(entries).slice(0, limit) });
      },
    },
    {
      method: "GET",
      path: "/runs/:id",
      summary: "A run; one that has ended with its result, as `POST /chat` answers it.",
      params: { id: { type: "string" } },
      answers: z.object({ ...runEntry.shape, result: z.optional(turnResult) }),
      statuses: STATUSES,
      async handle(_, { id = "" }) {
        const shown = found(id);
        const run = runs.store.get(id);
        const result = run && isEnded(run) ? await runResult(workspace, run) : undefined;
        return Response.json({ ...shown, ...result && { result } });
      },
    },
    {
      method: "GET",
      path: "/runs/:id/events",
      summary:
        "The events of a run as server-sent events, as `POST /chat` streams them: those that the log has, then " +
        "those that happen, until the run has ended. `Last-Event-ID` continues after an event, also after a " +
        "restart of the server.",
      params: { id: { type: "string" } },
      headers: {
        "last-event-id": {
          description: "The id of the last event that the client has.",
          pattern: EVENT_ID.source,
        },
      },
      answers: "text/event-stream",
      streams: "Server-sent events: each has an id, its type as its name, and JSON as its data.",
      statuses: { ...STATUSES, 204: "the client has the last event", 400: "no id of an event" },
      handle(request, { id = "" }) {
        const last = request.headers.get("last-event-id") || undefined;
        return streamRun(workspace, runs, runs.need(id), last);
      },
    },
    {
      method: "POST",
      path: "/runs/:id/cancel",
      summary: "Cancels a run. The log of its session keeps what it has done.",
      params: { id: { type: "string" } },
      answers: runEntry,
      statuses: CHANGES,
      async handle(_, { id = "" }) {
        if (await turns.cancel(id)) return Response.json(found(id));
        return Response.json(entry(await runs.cancel(id)));
      },
    },
    {
      method: "POST",
      path: "/runs/:id/messages",
      summary:
        "Sends a message to a run that has not ended: its model reads it before its next reply. A run that " +
        "waits for answers continues.",
      params: { id: { type: "string" } },
      body: messageRequest,
      accepts: true,
      answers: runEntry,
      statuses: { ...CHANGES, 400: "no message", 429: "too many messages wait for the run" },
      async handle(request, { id = "" }) {
        const { message } = await readBody(request, workspace, messageRequest, "message");
        return Response.json(entry(await runs.send(id, message)), { status: 202 });
      },
    },
  ];
}

function entryOf(run: Run, turns: Turns): RunEntry {
  const { id, state, reason, error, session, asks, messages, request: { prompt, role, hook } } =
    run;
  const { queued_at, started_at, ended_at, worker } = run;
  return {
    id,
    state,
    status: statusOf(run),
    reason,
    error,
    session,
    turns: run.turns,
    asks,
    messages,
    queued_at,
    started_at,
    ended_at,
    prompt,
    role,
    ...hook && { job: hook.job },
    ...worker !== "" && { worker },
    agents: state === "running" ? turns.agents(id) : [],
  };
}

/** The status of the last turn, as far as it is known. */
function statusOf({ state, result }: Run): TurnRecord["status"] {
  if (state === "queued" || state === "running" || state === "cancelled") return state;
  const { success, data } = turnRecord.shape.status.safeParse(result?.status);
  return success ? data : state === "failed" ? "error" : "ok";
}

const STATES: Record<TurnRecord["status"], RunState> = {
  queued: "queued",
  running: "running",
  ok: "done",
  truncated: "done",
  empty: "failed",
  error: "failed",
  cancelled: "cancelled",
};

function turnEntry(turn: TurnRecord): RunEntry {
  return { ...turn, state: STATES[turn.status] };
}

/** Those that have not ended first, then those that ended last. */
function newest(entries: RunEntry[]): RunEntry[] {
  const [open, ended] = [
    entries.filter(({ ended_at }) => ended_at === ""),
    entries.filter(({ ended_at }) => ended_at !== ""),
  ];
  return [...open, ...ended.sort((one, other) => one.ended_at < other.ended_at ? 1 : -1)];
}
