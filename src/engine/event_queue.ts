import type { TurnEvent } from "./events.ts";

/** The events of tools that run, on their way to the turn's stream. */
export class EventQueue {
  #events: TurnEvent[] = [];
  #wake = () => {};

  push(event: TurnEvent): void {
    this.#events.push(event);
    this.#wake();
  }

  /** Yields what arrives until `work` settles, and returns what it came to. */
  async *during<T>(work: Promise<T>): AsyncGenerator<TurnEvent, T> {
    let settled = false;
    const settle = () => {
      settled = true;
      this.#wake();
    };
    work.then(settle, settle);
    while (true) {
      yield* this.#events.splice(0);
      if (this.#events.length > 0) continue; // arrived while the consumer had the last ones
      if (settled) return await work;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }
}
