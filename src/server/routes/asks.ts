import * as z from "zod/mini";
import { askSchema } from "../../asks/store.ts";
import type { Workspace } from "../../engine/workspace.ts";
import { HttpError, readBody } from "../http.ts";
import type { Route } from "../route.ts";

const answerRequest = z.object({ answer: z.string().check(z.regex(/\S/)) });

const answerResponse = z.object({
  ask: askSchema(),
  session: z.string(),
  resume: z.string(),
  injected: z.boolean(),
});

const ASK_ID = /^[0-9]{1,15}$/;

/**
 * The inbox of parked questions (specification 4.1).
 *
 * @param answered called after an answer; never rejects
 */
export function askRoutes(workspace: Workspace, answered: () => Promise<void>): Route[] {
  return [
    {
      method: "GET",
      path: "/asks",
      summary: "All asks, in the order in which they were parked.",
      answers: z.object({ asks: z.array(askSchema()) }),
      handle: () => Response.json({ asks: workspace.asks.list() }),
    },
    {
      method: "POST",
      path: "/asks/:id/answer",
      role: "answer",
      summary: "Answers an ask; the session that asked gets the answer into its log.",
      params: { id: { type: "string", pattern: ASK_ID.source } },
      body: answerRequest,
      answers: answerResponse,
      statuses: { 400: "no answer", 404: "no such ask", 409: "it is already answered" },
      async handle(request, { id = "" }) {
        const { answer } = await readBody(request, workspace, answerRequest, "answer");
        if (!ASK_ID.test(id)) throw new HttpError(404, `ask not found: ${id}`);
        const given = await workspace.asks.answer(Number(id), answer);
        await answered();
        return Response.json(given);
      },
    },
  ];
}
