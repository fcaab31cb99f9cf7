import { body, type Route, type RouteRequest } from "../route.ts";
import { chatRequest, chatResponse } from "../schemas.ts";
import { streamTurn } from "../turn_stream.ts";

/** `POST /chat` (specification 4.1): one turn, as JSON or as a stream of its events. */
export const chat: Route[] = [{
  method: "POST",
  path: "/chat",
  summary:
    "Runs one turn. With `stream`, or when event streams are accepted, its events are sent as " +
    "they happen, each named by its type; `result` comes last.",
  body: chatRequest,
  answers: chatResponse,
  errors: {
    400: "no prompt, or no name of a session",
    409: "the session cannot be read",
    429: "too many turns are waiting",
    503: "no model can be asked, or the server is stopping",
    504: "the turn took too long and was cancelled",
  },
  async handle(request) {
    const { prompt, session, stream } = await body(request, chatRequest, "prompt");
    const asked = { prompt, session };
    if (stream ?? acceptsEvents(request)) {
      return await streamTurn(request.turns, asked, request.workspace.clock);
    }
    const { signal } = request.request; // aborts when the client goes
    const { result, cut } = await request.turns.run({ ...asked, signal });
    if (cut !== undefined) throw cut;
    return Response.json(result);
  },
}];

function acceptsEvents({ request }: RouteRequest): boolean {
  return (request.headers.get("accept") ?? "").toLowerCase().includes("text/event-stream");
}
