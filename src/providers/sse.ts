import { BackendError } from "./failure.ts";

/** Longest event, or whole document, that is taken from a backend, in characters. */
const MAX_EVENT = 32 * 1024 * 1024;

/**
 * The `data` of each server-sent event of a body. A body that is one JSON document instead of an event
 * stream is yielded whole. An event that the end of the body cuts off is dropped, unless it is complete
 * but for its blank line.
 *
 * @param read yields the next bytes, or undefined at the end.
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
    throw new BackendError(
      0,
      "The backend answered with a web page instead of a completion.",
      "Check the base URL.",
    );
  }
  if (/^[{[](?!DONE)/.test(start)) {
    yield* wholeDocument(start, next, max_event);
    return;
  }

  const { createParser } = await import("eventsource-parser");
  let events: string[] = [];
  const parser = createParser({
    onEvent: (event) => events.push(event.data),
    onError(error) {
      if (error.type === "max-buffer-size-exceeded") throw tooLong();
    },
    maxBufferSize: max_event,
  });
  for (let text: string | undefined = start; text !== undefined; text = await next()) {
    parser.feed(text);
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

/** True when a text is one whole JSON value. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function tooLong(): BackendError {
  return new BackendError(0, "The backend sent an event too long to keep.");
}
