import { HttpError } from "../http_error.ts";
import { body, type Route } from "../route.ts";
import { answerRequest, answerResponse, asksResponse } from "../schemas.ts";

/** The inbox of parked questions (specification 4.1). */
export const asks: Route[] = [
  {
    method: "GET",
    path: "/asks",
    summary: "All asks, in the order in which they were parked.",
    answers: asksResponse,
    handle: ({ workspace }) => Response.json({ asks: workspace.asks.list() }),
  },
  {
    method: "POST",
    path: "/asks/:id/answer",
    summary: "Answers an ask; the session that asked gets the answer into its log.",
    body: answerRequest,
    answers: answerResponse,
    errors: { 400: "no answer", 404: "no such ask", 409: "it is already answered" },
    async handle(request) {
      const { answer } = await body(request, answerRequest, "answer");
      const { id = "" } = request.params;
      if (!/^\d{1,15}$/.test(id)) throw new HttpError(404, `ask not found: ${id}`);
      return Response.json(await request.workspace.asks.answer(Number(id), answer));
    },
  },
];
