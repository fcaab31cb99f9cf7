/**
 * Lets one piece of work through in each turn of the event loop: whatever many ask for at the same time
 * does not keep others waiting for longer than one piece.
 */
export class Pace {
  readonly #waiting: (() => void)[] = [];
  #taken = false;

  /** Resolves when the caller may do its piece: at once when nobody else did in this turn of the loop. */
  turn(): Promise<void> {
    if (this.#taken) return new Promise((resume) => this.#waiting.push(resume));
    this.#take();
    return Promise.resolve();
  }

  #take(): void {
    this.#taken = true;
    setImmediate(() => {
      this.#taken = false;
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#take();
      next();
    });
  }
}
