import { jsonOr } from "../platform/files.ts";
import { BackendError, RefusedRequest } from "./failure.ts";

/** Maximum length of an event, or of a whole document, in characters. */
const MAX_EVENT = 32 * 1024 * 1024;

/**
 * Yields the `data` of each server-sent event of a body. Deviations of backends from the format:
 * - A body that is one JSON document instead of a stream is yielded whole.
 * - Events without a blank line between them are separated.
 * - The last event may lack its blank line; one that is cut off is dropped.
 * - An error is yielded as `{"error": ...}`, whatever its framing.
 *
 * @param read returns the next bytes, or undefined at the end.
 * @throws BackendError for a web page, or for an event longer than `max_event`.
 */
export async function* dataEvents(
  read: () => Promise<Uint8Array | undefined>,
  max_event = MAX_EVENT,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const next = async () => {
    const bytes = await read();
    return bytes === undefined ? undefined : decoder.decode(bytes, { stream: true });
  };

  let start = "";
  for (let text: string | undefined; start === "" && (text = await next()) !== undefined;) {
    start = text.trimStart();
  }
  if (start.startsWith("<")) {
    throw new RefusedRequest(
      0,
      "The backend answered with a web page instead of a completion.",
      "Check the base URL.",
      { kind: "permanent" },
    );
  }
  if (/^[{[](?!DONE)/.test(start)) {
    yield* wholeDocument(start, next, max_event);
    return;
  }

  const { createParser } = await import("eventsource-parser");
  const reframe = reframer();
  let events: string[] = [];
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (event === "error") events.push(asError(data));
      else if (data.includes("\n") && !isJson(data)) events.push(...data.split("\n"));
      else events.push(data);
    },
    onError(error) {
      if (error.type === "max-buffer-size-exceeded") throw tooLong();
    },
    maxBufferSize: max_event,
  });
  for (let text: string | undefined = start; text !== undefined; text = await next()) {
    parser.feed(reframe(text));
    if (events.length === 0) continue;
    yield* events;
    events = [];
  }
  parser.feed("\n\n");
  yield* events.filter((data) => data.trim() === "[DONE]" || isJson(data));
}

async function* wholeDocument(
  start: string,
  next: () => Promise<string | undefined>,
  max_event: number,
): AsyncGenerator<string> {
  const pieces = [start];
  let size = start.length;
  for (let text = await next(); text !== undefined; text = await next()) {
    size += text.length;
    if (size > max_event) throw tooLong();
    pieces.push(text);
  }
  const document = pieces.join("");
  if (isJson(document)) yield document;
}

/**
 * Some servers send an error in the middle of a stream as a field of its own (`error: {...}`), or as a bare
 * document. Rewrites such lines as events.
 */
function reframer(): (text: string) => string {
  let held = ""; // the start of a line that may turn out to be such a field
  let fresh = true; // whether the next text starts a line
  return (text) => {
    const all = held + text;
    if (all === "") return "";
    const last = Math.max(all.lastIndexOf("\n"), all.lastIndexOf("\r")) + 1;
    const line = all.slice(last);
    const open = (last > 0 || fresh) && line.length < ERROR.length && ERROR.startsWith(line);
    held = open ? line : "";
    const lines = all.slice(0, all.length - held.length)
      .replace(fresh ? /(^|[\r\n])(error:|\{)/g : /([\r\n])(error:|\{)/g, framed);
    fresh = open;
    return lines;
  };
}

const ERROR = "error:";

function framed(_: string, before: string, start: string): string {
  return start === ERROR ? `${before}event: error\ndata:` : `${before}data: ${start}`;
}

/** The data of an event that is marked as an error outside of its data. */
function asError(data: string): string {
  const value = jsonOr(data, data);
  return JSON.stringify(value?.error ? value : { error: value });
}

/** True when a text is one whole JSON value. */
export function isJson(text: string): boolean {
  return jsonOr(text, undefined) !== undefined;
}

function tooLong(): BackendError {
  return new BackendError(0, "The backend sent an event too long to keep.");
}
