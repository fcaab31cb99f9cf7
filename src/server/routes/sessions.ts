import * as z from "zod/mini";
import type { Workspace } from "../../engine/workspace.ts";
import { checkSessionName, SESSION_NAME } from "../../sessions/names.ts";
import type { Snapshot } from "../../sessions/read.ts";
import { type SessionDocument, sessionDocument } from "../../sessions/schema.ts";
import type { SessionSummary } from "../../sessions/look.ts";
import type { SessionChanges, Undone } from "../../engine/undo.ts";
import { HttpError, readBody, readQuery, writtenDuration } from "../http.ts";
import type { Route } from "../route.ts";

/** Sessions on a page, where the query does not say. */
const PAGE = 100;
const LARGEST_PAGE = 1000;

const RANGE = { error: `a whole number from 1 to ${LARGEST_PAGE}` };
const sessionsQuery = z.object({
  /** As `svc sessions list N`. */
  limit: z.optional(
    z.coerce.number(RANGE).check(z.int(RANGE), z.gte(1, RANGE), z.lte(LARGEST_PAGE, RANGE)),
  ),
  offset: z.optional(z.coerce.number().check(z.int(), z.gte(0))),
  prefix: z.optional(z.string()),
  since: z.optional(writtenDuration),
  details: z.optional(z.enum(["true", "false"])),
});

const summary: z.ZodMiniType<SessionSummary> = z.object({
  name: z.string(),
  first_prompt: z.string(),
  turns: z.int(),
  running: z.boolean(),
  worker: z.optional(z.string()),
  created_at: z.string(),
  updated_at: z.string(),
  bytes: z.int(),
  role: z.string(),
  job: z.string(),
  parent_id: z.string(),
});

const TURN = { error: "the number of a turn" };
const changesQuery = z.object({
  turn: z.optional(z.coerce.number(TURN).check(z.int(TURN), z.gte(1, TURN))),
});

const changesAnswer: z.ZodMiniType<SessionChanges> = z.object({
  session: z.string(),
  turns: z.array(z.object({
    turn: z.int(),
    at: z.string(),
    state: z.enum(["applied", "undone", "running"]),
    interrupted: z.boolean(),
    unknown: z.string(),
    files: z.array(z.object({
      path: z.string(),
      change: z.enum(["added", "deleted", "changed", "renamed", "mode"]),
      from: z.string(),
      binary: z.boolean(),
      added: z.int(),
      removed: z.int(),
      agents: z.array(z.string()),
      diff: z.string(),
      note: z.string(),
    })),
  })),
});

const undoRequest = z.object({
  turn: z.optional(z.int().check(z.gte(1))),
  redo: z.optional(z.boolean()),
});

const undone: z.ZodMiniType<Undone> = z.object({
  session: z.string(),
  turn: z.int(),
  state: z.enum(["undone", "applied"]),
  files: z.array(z.string()),
  unknown: z.string(),
  interrupted: z.boolean(),
});

/** The sessions of the worktree (specification 4.1). */
export function sessionRoutes(workspace: Workspace): Route[] {
  const { sessions, clock } = workspace;
  return [
    {
      method: "GET",
      path: "/sessions",
      summary:
        "The names of all sessions, sorted. With a query, a page of them, the newest first, and the number of all that " +
        "match: `limit` (100) and `offset`; `prefix` of the name, such as job_; `since`, written in this time; " +
        "`details`, what `svc sessions list` shows of each.",
      query: sessionsQuery,
      answers: z.object({
        sessions: z.array(z.string()),
        total: z.optional(z.int()),
        details: z.optional(z.array(summary)),
      }),
      statuses: { 400: "no such page, or no duration" },
      async handle(request) {
        const query = readQuery(request, sessionsQuery);
        if (Object.keys(query).length === 0) {
          return Response.json({ sessions: await sessions.names() });
        }
        const { limit = PAGE, offset = 0, prefix, since: back, details } = query;
        const since = back === undefined ? undefined : clock.now() - back * 1000;
        const page = await sessions.index({ prefix, since, offset, limit });
        const answer = { sessions: page.names, total: page.total };
        if (details !== "true") return Response.json(answer);
        return Response.json({ ...answer, details: await page.summaries() });
      },
    },
    {
      method: "GET",
      path: "/sessions/:name",
      summary: "The log of a session, as it is now. Nothing is changed by reading it.",
      params: { name: { type: "string", ...SESSION_NAME } },
      answers: sessionDocument,
      statuses: { 400: "no name of a session", 404: "no session of this name that loads" },
      async handle(request, { name = "" }) {
        checkSessionName(name);
        await sessions.current(name);
        const headers = { "content-type": "application/json" };
        const snapshot = sessions.snapshot(name);
        if (snapshot !== undefined) {
          if (request.method !== "HEAD") return new Response(fileStream(snapshot), { headers });
          snapshot[Symbol.dispose](); // the body of this answer is neither read nor cancelled
          return new Response(null, { headers });
        }
        const document = sessions.read(name);
        if (document === undefined) throw new HttpError(404, `session not found: ${name}`);
        return new Response(jsonStream(document), { headers });
      },
    },
    {
      method: "GET",
      path: "/sessions/:name/changes",
      summary: "What the turns of a session changed in files, as `svc changes` shows it.",
      params: { name: { type: "string", ...SESSION_NAME } },
      query: changesQuery,
      answers: changesAnswer,
      statuses: { 400: "no name of a session, or no turn", 404: "no such session or turn" },
      async handle(request, { name = "" }) {
        checkSessionName(name);
        const { turn } = readQuery(request, changesQuery);
        const { sessionChanges } = await import("../../engine/undo.ts");
        return Response.json(await sessionChanges(workspace, { session: name, turn }));
      },
    },
    {
      method: "POST",
      path: "/sessions/:name/undo",
      summary:
        "Takes back what a turn changed in files, or with `redo` makes it again: all of it, or nothing. Without `turn`, " +
        "the last one that changed something.",
      params: { name: { type: "string", ...SESSION_NAME } },
      body: undoRequest,
      answers: undone,
      statuses: {
        400: "no name of a session, or no turn",
        404: "no such session or turn",
        409:
          "a turn of the session runs, a file has changed since, or there is nothing to take back",
      },
      async handle(request, { name = "" }) {
        checkSessionName(name);
        const { turn, redo } = await readBody(request, workspace, undoRequest);
        const { undo } = await import("../../engine/undo.ts");
        return Response.json(await undo(workspace, { session: name, turn, redo }));
      },
    },
  ];
}

/** Sends a long log from its file; the client parses it. */
function fileStream(snapshot: Snapshot): ReadableStream<Uint8Array> {
  const pieces = snapshot.bytes();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await pieces.next();
        if (!done) return controller.enqueue(value);
        controller.close();
      } catch (error) {
        controller.error(error);
      }
      snapshot[Symbol.dispose]();
    },
    cancel: () => snapshot[Symbol.dispose](),
  }, { highWaterMark: 0 });
}

/** Sends a log as JSON one turn at a time, as the client reads it: it is not held in memory twice. */
function jsonStream({ turns, ...head }: SessionDocument): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let next = -1;
  return new ReadableStream({
    pull(controller) {
      const [comma, turn] = [next > 0 ? "," : "", turns[next]];
      const text = next < 0
        ? `${JSON.stringify(head).slice(0, -1)},"turns":[`
        : turn === undefined
        ? "]}"
        : comma + JSON.stringify(turn);
      controller.enqueue(encoder.encode(text));
      if (next >= 0 && turn === undefined) controller.close();
      next++;
    },
  });
}
