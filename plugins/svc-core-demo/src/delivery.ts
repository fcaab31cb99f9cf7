import type { Reply } from "./script.ts";

/** A body before it is delivered. */
export interface Content {
  type: string;
  /** The part that a cut or hanging reply sends. */
  body: Bytes[];
  /** The rest of the body. */
  end: Bytes[];
  /** Whether each element is a separate write. */
  stepwise: boolean;
}

type Bytes = string | Uint8Array<ArrayBuffer>;

/** Called when the client disconnects, or the server closes, before the whole body is sent. */
export type OnGone = () => void;

/** The response that sends `content` with the delivery options of `reply`: in one write or in steps. */
export function deliver(content: Content, reply: Reply, status: number, gone: OnGone): Response {
  const headers = { "content-type": content.type, ...reply.headers };
  const after = typeof reply.cut === "object" ? reply.cut.after : undefined;
  const broken = reply.cut === true || reply.hang === true;
  let writes = broken ? content.body : [...content.body, ...content.end];
  if (reply.split_bytes !== undefined) writes = split(join(writes), reply.split_bytes);
  if (after !== undefined) writes = writes.slice(0, after);
  const stepwise = content.stepwise || broken || after !== undefined ||
    reply.split_bytes !== undefined || reply.chunk_delay_ms !== undefined;
  if (NO_BODY.has(status)) return new Response(null, { status, headers });
  if (!stepwise) return new Response(join(writes), { status, headers });
  return new Response(stream(writes, reply, gone), { status, headers });
}

/** Waits; ends early, without an error, when `signal` aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}

/** Statuses whose responses cannot have a body. */
const NO_BODY = new Set([204, 205, 304]);

function stream(
  writes: Bytes[],
  reply: Reply,
  gone: OnGone,
): ReadableStream<Uint8Array> {
  const left = new AbortController();
  const encoder = new TextEncoder();
  let next = 0;
  return new ReadableStream({
    async pull(controller) {
      if (next > 0) await gap(reply.chunk_delay_ms, left.signal);
      if (left.signal.aborted) return;
      if (next < writes.length) {
        const write = writes[next++]!;
        controller.enqueue(typeof write === "string" ? encoder.encode(write) : write);
      } else if (reply.cut) {
        // An errored body makes Deno close the connection without the last, empty chunk.
        controller.error(new Error("cut"));
      } else if (reply.hang) {
        await new Promise((resolve) => left.signal.addEventListener("abort", resolve));
      } else {
        controller.close();
      }
    },
    cancel() {
      left.abort();
      gone();
    },
  }, { highWaterMark: 0 });
}

/** Deno joins the data of one event loop turn into one write, so each write waits for the next turn. */
function gap(delay: number | undefined, signal: AbortSignal): Promise<void> {
  return delay ? pause(delay, signal) : new Promise((resolve) => setImmediate(resolve));
}

function join(writes: Bytes[]): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder();
  if (writes.every((write) => typeof write === "string")) return encoder.encode(writes.join(""));
  return new Uint8Array(
    writes.flatMap((write) => [...typeof write === "string" ? encoder.encode(write) : write]),
  );
}

function split(bytes: Uint8Array<ArrayBuffer>, size: number): Uint8Array<ArrayBuffer>[] {
  const parts = [];
  for (let i = 0; i < bytes.length; i += size) parts.push(bytes.subarray(i, i + size));
  return parts;
}
