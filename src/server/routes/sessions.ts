import { checkSessionName } from "../../sessions/names.ts";
import type { SessionDocument } from "../../sessions/schema.ts";
import { HttpError } from "../http_error.ts";
import type { Snapshot } from "../../sessions/snapshot.ts";
import type { Route } from "../route.ts";
import { sessionResponse, sessionsResponse } from "../schemas.ts";

/** The sessions of the worktree (specification 4.1). */
export const sessions: Route[] = [
  {
    method: "GET",
    path: "/sessions",
    summary: "The names of all sessions.",
    answers: sessionsResponse,
    handle: ({ workspace }) => Response.json({ sessions: workspace.sessions.list() }),
  },
  {
    method: "GET",
    path: "/sessions/:name",
    summary: "The log of a session, as it is now. Nothing is changed by reading it.",
    answers: sessionResponse,
    errors: { 400: "no name of a session", 404: "no session of this name that loads" },
    handle({ workspace, request, params: { name = "" } }) {
      checkSessionName(name);
      const headers = { "content-type": "application/json" };
      const snapshot = workspace.sessions.snapshot(name);
      if (snapshot !== undefined) {
        if (request.method !== "HEAD") return new Response(fileStream(snapshot), { headers });
        snapshot[Symbol.dispose](); // nobody will read, or cancel, the body of this answer
        return new Response(null, { headers });
      }
      const document = workspace.sessions.read(name);
      if (document === undefined) throw new HttpError(404, `session not found: ${name}`);
      return new Response(jsonStream(document), { headers });
    },
  },
];

/** A long log from its file; whoever asked parses it. */
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

/** The JSON of a log, a turn at a time: it is not held twice, and a slow reader gets it slowly. */
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
