import type { Clock } from "../platform/clock.ts";
import { httpError } from "./http_error.ts";
import type { TurnRequest, Turns } from "./turns.ts";

/** Milliseconds of silence after which a comment keeps the connection open. */
const SILENCE = 15_000;
/** Bytes that may wait for a client which does not read; with more it counts as gone. */
const BACKLOG = 8 * 1024 * 1024;

/**
 * Runs a turn and sends its events as an event stream: each TurnEvent under its type, an `error` with
 * `{"error": <string>}` when the turn cannot begin or is cut short, and in the end `result` with the turn
 * result. A client that goes, or that stops reading, cancels the turn.
 *
 * @throws as `Turns.run` does, for what goes wrong before the first event
 */
export async function streamTurn(
  turns: Turns,
  asked: Pick<TurnRequest, "prompt" | "session">,
  clock: Clock,
): Promise<Response> {
  const gone = new AbortController();
  const leave = () => gone.abort(new DOMException("The client went.", "AbortError"));
  const over = new AbortController();
  const encoder = new TextEncoder();
  let controller!: ReadableStreamDefaultController<Uint8Array>;
  let sent = clock.now();
  const send = (text: string) => {
    if (gone.signal.aborted) return;
    if ((controller.desiredSize ?? 0) < -BACKLOG) {
      leave();
      controller.error(gone.signal.reason);
      return;
    }
    controller.enqueue(encoder.encode(text));
    sent = clock.now();
  };
  const event = (type: string, data: unknown) =>
    send(`event: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
  const stream = new ReadableStream<Uint8Array>({
    start: (made) => void (controller = made),
    cancel: leave,
  }, new ByteLengthQueuingStrategy({ highWaterMark: 0 }));

  const begun = Promise.withResolvers<void>();
  const turn = turns.run({
    ...asked,
    signal: gone.signal,
    onAdmitted: () => begun.resolve(),
    emit: (each) => event(each.type, each),
  });
  await Promise.race([begun.promise, turn]); // what is wrong from the start has a status of its own
  const failed = (error: unknown) => event("error", { error: httpError(error).message });
  turn.then(({ result, cut }) => {
    if (cut !== undefined) failed(cut);
    event("result", result);
  }, failed).finally(() => {
    over.abort();
    if (!gone.signal.aborted) controller.close();
  });
  keepAlive(() => sent, () => send(": keep-alive\n\n"), clock, over.signal);
  return new Response(stream, {
    headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
  });
}

/** Sends a comment whenever nothing has been sent for a while. */
async function keepAlive(
  last: () => number,
  beat: () => void,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  try {
    while (true) {
      await clock.sleep(Math.max(1, last() + SILENCE - clock.now()), signal);
      if (clock.now() - last() >= SILENCE) beat();
    }
  } catch {
    // the turn is over
  }
}
