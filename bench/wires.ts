import { ChatRequest } from "../plugins/svc-core-demo/src/completion.ts";
import { type Reply, type Script, ScriptPlayer } from "../plugins/svc-core-demo/src/script.ts";

/** The protocols of the peers that do not speak chat completions. */
export type Wire = "responses" | "messages";

/** A scripted backend that speaks another protocol. */
export interface WireServer {
  /** Without a path: `http://127.0.0.1:<port>` */
  url: string;
  /** The requests for answers, in order. */
  // deno-lint-ignore no-explicit-any
  readonly requests: any[];
  /** The headers of the newest request, also of one for the models. */
  readonly headers: Headers;
  close(): Promise<void>;
}

/**
 * Serves a script as `POST /v1/responses` or `POST /v1/messages`, streamed: texts, reasoning with its seal, tool
 * calls, `usage` and `finish` in the words of the protocol, `raw` and HTTP answers.
 */
export function startWire(wire: Wire, script: Script): WireServer {
  const player = new ScriptPlayer(script);
  const requests: unknown[] = [];
  let headers = new Headers();
  const { read, write } = WIRES[wire];
  const options = { port: 0, hostname: "127.0.0.1", onListen() {} };
  const server = Deno.serve(options, async (request) => {
    headers = request.headers;
    if (request.method !== "POST" || !new URL(request.url).pathname.endsWith(`/${wire}`)) {
      const models = Array.isArray(script.models) ? script.models : [];
      return Response.json({ data: models.map((id) => ({ id })) });
    }
    const body = await request.json();
    requests.push(body);
    const chat = new ChatRequest(JSON.stringify({ model: body.model, messages: read(body) }));
    const reply = player.next(chat);
    if (reply === undefined) return Response.json({ error: "script exhausted" }, { status: 500 });
    const { status, body: answer = {}, raw } = reply;
    if (status !== undefined) return Response.json(answer, { status, headers: reply.headers });
    if (typeof raw === "string") return new Response(raw, { headers: STREAM });
    const events = write(reply, requests.length);
    const stream = ReadableStream.from(
      events.map(({ type, ...data }) =>
        `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
      ),
    ).pipeThrough(new TextEncoderStream());
    return new Response(stream, { headers: STREAM });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    requests,
    get headers() {
      return headers;
    },
    close: () => server.shutdown(),
  };
}

const STREAM = { "content-type": "text/event-stream" };

// deno-lint-ignore no-explicit-any
type Json = any;
type Event = { type: string; [field: string]: unknown };
type Message = { role: string; content: string };

const WIRES: Record<Wire, {
  read(body: Json): Message[];
  write(reply: Reply, number: number): Event[];
}> = {
  responses: { read: readResponses, write: writeResponses },
  messages: { read: readMessages, write: writeMessages },
};

/** A content, or the texts in its parts. */
function textOf(content: Json): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part: Json) => part.text ?? textOf(part.content)).join("\n");
}

function readResponses({ instructions = "", input }: Json): Message[] {
  return [
    { role: "system", content: instructions },
    ...input.flatMap((item: Json) => {
      if (item.role !== undefined) return [{ role: item.role, content: textOf(item.content) }];
      if (item.output === undefined) return [];
      return [{ role: "tool", content: textOf(item.output) }];
    }),
  ];
}

function writeResponses(reply: Reply, number: number): Event[] {
  const id = `resp_${number}`;
  const items = [
    ...reply.thinking !== undefined
      ? [{
        type: "reasoning",
        id: `rs_${number}`,
        summary: [{ type: "summary_text", text: [reply.thinking].flat().join("") }],
        encrypted_content: `sealed ${number}`,
      }]
      : [],
    ...pieces(reply).length > 0
      ? [{
        type: "message",
        id: `msg_${number}`,
        role: "assistant",
        content: [{ type: "output_text", text: pieces(reply).join(""), annotations: [] }],
      }]
      : [],
    ...callsOf(reply, number).map(({ name, arguments: args, id: call_id }, index) => ({
      type: "function_call",
      id: `fc_${number}_${index}`,
      call_id,
      name,
      arguments: args,
    })),
  ];
  const usage = { input_tokens: 100, output_tokens: 10, total_tokens: 110, ...reply.usage };
  const cut = reply.finish && { incomplete_details: { reason: reply.finish } };
  const status = cut ? "incomplete" : "completed";
  return [
    { type: "response.created", response: { id, status: "in_progress", output: [] } },
    ...items.flatMap((item, output_index): Event[] => [
      { type: "response.output_item.added", output_index, item },
      ...deltasOf(item, reply).map(({ type, delta }) => ({
        ...{ type, item_id: item.id, output_index },
        ...{ content_index: 0, delta },
      })),
      { type: "response.output_item.done", output_index, item },
    ]),
    { type: `response.${status}`, response: { id, status, output: items, usage, ...cut } },
  ];
}

function deltasOf(item: Json, reply: Reply): { type: string; delta: string }[] {
  switch (item.type) {
    case "message":
      return pieces(reply).map((delta) => ({ type: "response.output_text.delta", delta }));
    case "reasoning":
      return [reply.thinking ?? []].flat().map((delta) => (
        { type: "response.reasoning_summary_text.delta", delta }
      ));
    default:
      return [{ type: "response.function_call_arguments.delta", delta: item.arguments }];
  }
}

function readMessages({ system, messages }: Json): Message[] {
  return [
    { role: "system", content: textOf(system) },
    ...messages.flatMap(({ role, content }: Json): Message[] => {
      if (typeof content === "string") return [{ role, content }];
      const results = content.filter((part: Json) => part.type === "tool_result");
      return results.length > 0
        ? results.map((part: Json) => ({ role: "tool", content: textOf(part.content) }))
        : [{ role, content: textOf(content) }];
    }),
  ];
}

function writeMessages(reply: Reply, number: number): Event[] {
  const calls = callsOf(reply, number);
  const texts = pieces(reply);
  const blocks = [
    ...reply.thinking !== undefined
      ? [{
        start: { type: "thinking", thinking: "", signature: "" },
        deltas: [
          ...[reply.thinking].flat().map((thinking) => ({ type: "thinking_delta", thinking })),
          { type: "signature_delta", signature: `sealed ${number}` },
        ],
      }]
      : [],
    ...texts.length > 0
      ? [{
        start: { type: "text", text: "" },
        deltas: texts.map((text) => ({ type: "text_delta", text })),
      }]
      : [],
    ...calls.map(({ name, arguments: args, id }) => ({
      start: { type: "tool_use", id, name, input: {} },
      deltas: [{ type: "input_json_delta", partial_json: args }],
    })),
  ];
  const message = {
    ...{ id: `msg_${number}`, type: "message", role: "assistant", model: "bench", content: [] },
    ...{ stop_reason: null, usage: { input_tokens: 100, ...reply.usage, output_tokens: 1 } },
  };
  const stop_reason = reply.finish ?? (calls.length > 0 ? "tool_use" : "end_turn");
  return [
    { type: "message_start", message },
    ...blocks.flatMap(({ start, deltas }, index): Event[] => [
      { type: "content_block_start", index, content_block: start },
      ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index },
    ]),
    { type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 10 } },
    { type: "message_stop" },
  ];
}

/** The calls of a reply; arguments that are a text are sent as they are. */
function callsOf({ tool_calls = [] }: Reply, number: number) {
  return tool_calls.map(({ name, arguments: args = {}, id = `call_${number}_${name}` }) => (
    { name, id, arguments: typeof args === "string" ? args : JSON.stringify(args) }
  ));
}

function pieces({ text = [] }: Reply): string[] {
  return typeof text === "string" ? [text] : text;
}
