import * as z from "zod/mini";
import { TURN_REASONS, type TurnResult } from "../../engine/events.ts";
import { taskFields, taskOf } from "../../engine/task.ts";
import type { Workspace } from "../../engine/workspace.ts";
import type { Clock } from "../../platform/clock.ts";
import { errorMessage } from "../../platform/error.ts";
import { jsonPieces } from "../../platform/files.ts";
import type { NewAttachment } from "../../sessions/attachments.ts";
import { SESSION_NAME } from "../../sessions/names.ts";
import { EventStream } from "../event_stream.ts";
import { HttpError, httpError, readBody } from "../http.ts";
import type { Route } from "../route.ts";
import type { TurnRequest, Turns } from "../turns.ts";

/** The beginnings of images that models take: PNG, JPEG, GIF, WebP. */
const IMAGE =
  /^(?:iVBORw0KGgo|\/9j\/|R0lGOD|UklGR[g-v][A-Za-z0-9+/]{4}[BFJNRVZdhlptx159]XRUJQ)[A-Za-z0-9+/]*={0,2}$/;

const name = z.string().check(z.minLength(1), z.maxLength(500));
const attached = z.union([
  z.object({ name, text: z.string() }),
  z.object({ name, image: z.string().check(z.regex(IMAGE)) }),
]);

const chatRequest = z.object({
  prompt: z.string().check(z.regex(/\S/)),
  /** Loads or creates a session of this name, or loads that of a handle; left out, null or empty: a new one. */
  session: z.optional(
    z.nullable(z.union([z.literal(""), z.string().register(z.globalRegistry, SESSION_NAME)])),
  ),
  /** Texts, and images in base64, that the model is given with the prompt. */
  attachments: z.optional(z.array(attached).check(z.maxLength(20))),
  /** Answers with the turn's events, as `Accept: text/event-stream` does. */
  stream: z.optional(z.boolean()),
  ...taskFields(),
});

/** The turn result (specification 4.1, 4.4). */
export const turnResult: z.ZodMiniType<TurnResult> = z.object({
  content: z.string(),
  thinking: z.string(),
  tool_calls: z.array(z.object({
    name: z.string(),
    arguments: z.record(z.string(), z.unknown()),
    is_error: z.boolean(),
    refused: z.boolean(),
  })),
  refused: z.array(z.string()),
  denied: z.array(z.object({ tool: z.string(), reason: z.string() })),
  errors: z.array(z.object({
    code: z.int(),
    message: z.string(),
    kind: z.optional(z.enum(["overflow", "permanent", "announced", "transient", "stalled"])),
    retry_at: z.optional(z.number()),
    window: z.optional(z.number()),
  })),
  duration: z.number(),
  usage: z.record(z.string(), z.number()),
  /** Token counts of this turn and of all agents that it started. */
  total_usage: z.record(z.string(), z.number()),
  /** What `total_usage` costs, by the setting `prices`; null when a model that was asked has no price. */
  cost: z.nullable(z.number()),
  model: z.string(),
  provider: z.string(),
  session: z.string(),
  status: z.enum(["ok", "error", "empty", "truncated", "cancelled"]),
  /** Why the turn did not end as it should, for programs; empty when it did, or when none applies. */
  reason: z.enum(["", ...TURN_REASONS]),
  verified: z.optional(z.boolean()),
  verdict: z.optional(z.object({ passed: z.boolean(), rounds: z.int() })),
  data: z.optional(z.unknown()),
});

/** `POST /chat` (specification 4.1): one turn, as JSON or as a stream of its events. */
export function chatRoutes(workspace: Workspace, turns: Turns): Route[] {
  return [{
    method: "POST",
    path: "/chat",
    summary:
      "Runs one turn. With `stream`, or when event streams are accepted, its events are sent as " +
      "they happen, each named by its type; `result` comes last.",
    body: chatRequest,
    answers: turnResult,
    streams: "Server-sent events: each has its type as its name, and JSON as its data.",
    statuses: {
      400: "no prompt, no name of a session, or no JSON Schema",
      403: "the policy does not let the client run the command of `verify`",
      409: "the session cannot be read, or `max_cost` is given and the model has no price",
      429: "too many turns are waiting",
      503: "no model can be asked, or the server is stopping",
      504: "the turn took too long and was cancelled",
    },
    async handle(request, _, authenticated) {
      const body = await readBody(request, workspace, chatRequest, "prompt");
      const { prompt, session, stream, schema, attachments: given = [] } = body;
      if (schema !== undefined) {
        const { checkSchema } = await import("../../tools/json_schema.ts");
        checkSchema(schema);
      }
      const task = taskOf(body);
      const attachments = given.length === 0 ? [] : await attachmentsOf(given);
      const turn = {
        prompt,
        session: session || undefined,
        task,
        attachments,
        confirmed: authenticated,
      };
      if (stream ?? acceptsEvents(request)) return await streamTurn(turns, turn, workspace.clock);
      const { signal } = request; // aborts when the client disconnects
      const { result, cut } = await turns.run({ ...turn, signal });
      if (cut !== undefined) throw cut;
      return resultResponse(result);
    },
  }];
}

/** Characters of an answer from which on it is sent in pieces, between which other requests are answered. */
const LONG = 256 * 1024;

function resultResponse(result: TurnResult): Response {
  if (result.content.length < LONG) return Response.json(result);
  const pieces = jsonPieces(result);
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const { done, value } = pieces.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
  });
  return new Response(body, { headers: { "content-type": "application/json" } });
}

/** @throws HttpError 400 for one that is too large */
async function attachmentsOf(given: z.infer<typeof attached>[]): Promise<NewAttachment[]> {
  const { attachment } = await import("../../engine/attachments.ts");
  return given.map((each) => {
    try {
      return attachment(each.name, contentOf(each));
    } catch (error) {
      throw new HttpError(400, errorMessage(error));
    }
  });
}

function contentOf(given: z.infer<typeof attached>): Uint8Array<ArrayBuffer> {
  if ("text" in given) return new TextEncoder().encode(given.text.replaceAll("\0", "\ufffd"));
  const digits = given.image.replace(/=+$/, "");
  return Uint8Array.fromBase64(digits.slice(0, digits.length % 4 === 1 ? -1 : undefined));
}

function acceptsEvents({ headers }: Request): boolean {
  return (headers.get("accept") ?? "").toLowerCase().includes("text/event-stream");
}

/**
 * Runs a turn and sends its events as an event stream: each TurnEvent under its type, an `error` with
 * `{"error": <string>}` when the turn cannot begin or is cut short, and at the end `result` with the turn
 * result. The turn is cancelled when the client disconnects or stops reading.
 *
 * @throws as `Turns.run` does, for errors before the first event
 */
export async function streamTurn(
  turns: Turns,
  request: Pick<TurnRequest, "prompt" | "session" | "task" | "attachments" | "confirmed">,
  clock: Clock,
): Promise<Response> {
  const stream = new EventStream(clock);
  const begun = Promise.withResolvers<void>();
  const turn = turns.run({
    ...request,
    signal: stream.gone,
    onAdmitted: () => begun.resolve(),
    emit: (each) => stream.send(each.type, each),
  });
  const failed = (error: unknown) => stream.send("error", { error: httpError(error).message });
  turn.then(({ result, cut }) => {
    if (cut !== undefined) failed(cut);
    stream.send("result", result);
  }, failed).finally(() => stream.close());
  await Promise.race([begun.promise, turn]); // an error before the first event has its own status
  return stream.response;
}
