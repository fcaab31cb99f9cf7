/** Bytes of one answer, or of one event of a stream. */
const MOST = 16 * 1024 * 1024;
const LINE_FEED = 10;

/** `fetch`, with answers that end in an error where they get too large. */
export async function boundedFetch(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  if (response.body === null) return response;
  const events = (response.headers.get("content-type") ?? "").includes("text/event-stream");
  let length = 0;
  const body = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(bytes, controller) {
        // An event is over at an empty line: a stream may be long, none of its events.
        const over = events ? afterEmptyLine(bytes) : -1;
        length = over < 0 ? length + bytes.length : bytes.length - over;
        if (length > MOST) throw new Error("the answer is too large");
        controller.enqueue(bytes);
      },
    }),
  );
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}

/** Where the last event in these bytes ends; -1 when none does. */
function afterEmptyLine(bytes: Uint8Array): number {
  for (let at = bytes.lastIndexOf(LINE_FEED); at > 0; at = bytes.lastIndexOf(LINE_FEED, at - 1)) {
    if (bytes[at - 1] === LINE_FEED || (bytes[at - 1] === 13 && bytes[at - 2] === LINE_FEED)) {
      return at + 1;
    }
  }
  return -1;
}
