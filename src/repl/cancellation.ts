import type { Input } from "./input/input.ts";

/** What Ctrl-C, SIGINT and the end of the process cancel: the work that runs, if any does. */
export class Cancellation {
  readonly #input: Pick<Input, "watch">;
  readonly #running = new Set<AbortController>();

  constructor(input: Pick<Input, "watch">) {
    this.#input = input;
  }

  /** Work begins; until it is released, Ctrl-C aborts the signal. */
  begin(): { signal: AbortSignal; release(): void } {
    const controller = new AbortController();
    this.#running.add(controller);
    const watch = this.#input.watch({ interrupt: () => this.cancel() });
    return {
      signal: controller.signal,
      release: () => {
        this.#running.delete(controller);
        watch.stop();
      },
    };
  }

  /** Cancels what runs; says whether anything did. */
  cancel(): boolean {
    const reason = new DOMException("Interrupted.", "AbortError");
    for (const controller of this.#running) controller.abort(reason);
    return this.#running.size > 0;
  }
}
