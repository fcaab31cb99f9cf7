import { type Clock, NO_REASON } from "../platform/clock.ts";

/** Milliseconds of silence after which a comment keeps the connection open. */
const SILENCE = 15_000;
/** Bytes that may wait for a slow client. Beyond that the client counts as gone. */
const BACKLOG = 8 * 1024 * 1024;
/** Bytes that wait for a client while what the log has is sent. */
const AHEAD = 256 * 1024;

/** An answer of server-sent events. Comments keep a silent one open. */
export class EventStream {
  /** Aborts when the client disconnects or stops reading. */
  readonly gone: AbortSignal;
  readonly response: Response;
  readonly #gone = new AbortController();
  readonly #over = new AbortController();
  readonly #encoder = new TextEncoder();
  readonly #clock: Clock;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #sent: number;
  #read = Promise.withResolvers<void>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sent = clock.now();
    this.gone = this.#gone.signal;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => void (this.#controller = controller),
      pull: () => this.#read.resolve(),
      cancel: () => this.#leave(),
    }, new ByteLengthQueuingStrategy({ highWaterMark: 0 }));
    this.response = new Response(body, {
      headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
    });
    this.#keepAlive();
  }

  /** Lets the client know that the answer has begun. */
  open(): void {
    this.#write(": open\n\n");
  }

  /** @param id what the client names to continue after this event. Default: that of the event before */
  send(type: string, data: unknown, id?: string): void {
    const named = id === undefined ? "" : `id: ${id}\n`;
    this.#write(`${named}event: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  /** Resolves when little waits for the client. @throws when it has gone */
  async ready(): Promise<void> {
    this.gone.throwIfAborted();
    if ((this.#controller.desiredSize ?? 0) > -AHEAD) return;
    this.#read = Promise.withResolvers();
    await this.#read.promise;
    this.gone.throwIfAborted();
  }

  /** Ends the answer. */
  close(): void {
    if (this.gone.aborted || this.#over.signal.aborted) return;
    this.#over.abort(NO_REASON);
    this.#controller.close();
  }

  /** Breaks the connection to a client that is too slow. */
  fail(): void {
    if (this.gone.aborted || this.#over.signal.aborted) return;
    this.#leave();
    this.#controller.error(this.gone.reason);
  }

  #write(text: string): void {
    if (this.gone.aborted || this.#over.signal.aborted) return;
    if ((this.#controller.desiredSize ?? 0) < -BACKLOG) return this.fail();
    this.#controller.enqueue(this.#encoder.encode(text));
    this.#sent = this.#clock.now();
  }

  #leave(): void {
    this.#gone.abort(new DOMException("The client disconnected.", "AbortError"));
    this.#over.abort(NO_REASON);
    this.#read.resolve();
  }

  /** Sends a comment whenever nothing has been sent for a while. */
  async #keepAlive(): Promise<void> {
    const clock = this.#clock;
    try {
      while (true) {
        await clock.sleep(Math.max(1, this.#sent + SILENCE - clock.now()), this.#over.signal);
        if (clock.now() - this.#sent >= SILENCE) this.#write(": keep-alive\n\n");
      }
    } catch {
      // the answer is over
    }
  }
}
