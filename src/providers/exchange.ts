import { type Clock, LARGE, NO_REASON } from "../platform/clock.ts";
import { jsonPieces } from "../platform/files.ts";
import type { ChatMessage, ProviderOptions, StreamEvent } from "../plugins/api.ts";
import type { Assembler } from "./deltas.ts";
import { BackendError, type Peer, RefusedRequest, statusFailure } from "./failure.ts";
import { type HttpAnswer, readText } from "./http.ts";
import { dataEvents } from "./sse.ts";

/**
 * The JSON of a request. A large one is made in pieces, each in a turn of `pace`, and sent in pieces.
 *
 * @param messages those that the payload is made of
 * @param made keeps the JSON of the messages for the next request, which sends them again: they never change
 */
export async function requestBody(
  payload: Record<string, unknown>,
  messages: ChatMessage[] = [],
  pace: ProviderOptions["pace"],
  made: WeakMap<object, string>,
): Promise<string | Blob> {
  const list = payload.messages === undefined ? "input" : "messages";
  const chars = messages.reduce((sum, message) => sum + charsOf(message), 0);
  if (chars <= LARGE || pace === undefined) return jsonOf(payload, made);
  const mark = crypto.randomUUID();
  const [before, after] = JSON.stringify({ ...payload, [list]: [mark] }).split(`"${mark}"`);
  const parts: Blob[] = [];
  let text = before!;
  for (const [i, item] of (payload[list] as object[]).entries()) {
    if (i > 0) text += ",";
    for (const piece of jsonPieces(item)) {
      text += piece;
      if (text.length < PIECE) continue;
      parts.push(new Blob([text]));
      text = "";
      await pace.turn();
    }
  }
  return new Blob([...parts, text + after]);
}

/**
 * Reads an answer (specification 4.10). Failures after the finish reason are ignored.
 *
 * @throws BackendError
 */
export async function* answerEvents(
  answer: HttpAnswer,
  assembler: Assembler,
  cut?: (arrived: number) => void,
): AsyncGenerator<StreamEvent> {
  let refused = false;
  try {
    for await (const data of dataEvents(() => answer.read())) {
      const { kept } = assembler;
      yield* assembler.push(data);
      if (assembler.kept > kept) answer.noteContent();
      // The body is read to its end, past [DONE], so that the connection can be reused.
      if (assembler.finished) answer.setIdleLimit(assembler.done ? END_MS : USAGE_MS);
    }
  } catch (error) {
    refused = error instanceof RefusedRequest && assembler.arrived === 0;
    if (!assembler.finished || !(error instanceof BackendError)) throw error;
  } finally {
    if (!assembler.counted && !refused) cut?.(assembler.arrived);
  }
  yield* assembler.end();
}

/** Reads an error answer and closes the connection. */
export async function answerFailure(
  answer: HttpAnswer,
  peer: Peer,
  clock: Clock,
): Promise<BackendError> {
  let body = "";
  const read = new AbortController();
  clock.sleep(ERROR_BODY_MS, read.signal).then(() => answer.close(), () => {});
  try {
    body = await readText(answer, MAX_ERROR_BODY);
  } catch (error) {
    if (!(error instanceof BackendError)) throw error; // the status is enough
  } finally {
    read.abort(NO_REASON);
    answer.close();
  }
  const { status, headers } = answer;
  return statusFailure({ status, headers, body }, peer);
}

/** The JSON of tools, which all sessions of a process send. */
const TOOLS = new WeakMap<object, string>();

function jsonOf(payload: Record<string, unknown>, messages: WeakMap<object, string>): string {
  const pieces: string[] = [];
  for (const [name, value] of Object.entries(payload)) {
    if (value === undefined) continue;
    pieces.push(pieces.length === 0 ? "{" : ",", JSON.stringify(name), ":");
    if (!Array.isArray(value)) {
      pieces.push(JSON.stringify(value));
      continue;
    }
    const made = name === "tools" ? TOOLS : messages;
    let before = "[";
    for (const item of value) {
      pieces.push(before, itemJson(item, made));
      before = ",";
    }
    pieces.push(before === "[" ? "[]" : "]");
  }
  pieces.push("}");
  return pieces.join("");
}

function itemJson(item: unknown, made: WeakMap<object, string>): string {
  if (typeof item !== "object" || item === null) return JSON.stringify(item) ?? "null";
  let text = made.get(item);
  if (text === undefined) made.set(item, text = JSON.stringify(item));
  return text;
}

/** Characters of a piece of a large request. */
const PIECE = 256 * 1024;

function charsOf({ content, images = [], tool_calls = [] }: ChatMessage): number {
  let chars = content?.length ?? 0;
  for (const { data } of images) chars += data.length;
  for (const call of tool_calls) chars += call.function.arguments.length;
  return chars;
}

/** Milliseconds to wait for token counts after the answer, and for the end after `[DONE]`. */
const USAGE_MS = 10_000;
const END_MS = 250;

/** Milliseconds for reading the body of an error answer, and its maximum size in bytes. */
const ERROR_BODY_MS = 10_000;
const MAX_ERROR_BODY = 64 * 1024;
