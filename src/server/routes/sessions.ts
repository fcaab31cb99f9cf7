import * as z from "zod/mini";
import type { Workspace } from "../../engine/workspace.ts";
import { checkSessionName, SESSION_NAME } from "../../sessions/names.ts";
import type { Snapshot } from "../../sessions/read.ts";
import { type SessionDocument, sessionDocument } from "../../sessions/schema.ts";
import { HttpError } from "../http.ts";
import type { Route } from "../route.ts";

/** The sessions of the worktree (specification 4.1). */
export function sessionRoutes({ sessions }: Workspace): Route[] {
  return [
    {
      method: "GET",
      path: "/sessions",
      summary: "The names of all sessions.",
      answers: z.object({ sessions: z.array(z.string()) }),
      handle: () => Response.json({ sessions: sessions.list() }),
    },
    {
      method: "GET",
      path: "/sessions/:name",
      summary: "The log of a session, as it is now. Nothing is changed by reading it.",
      params: { name: { type: "string", ...SESSION_NAME } },
      answers: sessionDocument,
      statuses: { 400: "no name of a session", 404: "no session of this name that loads" },
      handle(request, { name = "" }) {
        checkSessionName(name);
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
