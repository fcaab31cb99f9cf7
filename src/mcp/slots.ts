/** Room for so many at a time, and so many more that wait, in the order in which they came. */
export class Slots {
  readonly #most: number;
  readonly #queue: number;
  readonly #waiting: (() => void)[] = [];
  #taken = 0;
  #idle = Promise.withResolvers<void>();

  constructor({ most, queue }: { most: number; queue: number }) {
    this.#most = most;
    this.#queue = queue;
    this.#idle.resolve();
  }

  /**
   * Waits for room.
   *
   * @returns what gives the room back; undefined when too many wait already
   * @throws the signal's reason when it aborts first
   */
  async take(signal: AbortSignal): Promise<(() => void) | undefined> {
    signal.throwIfAborted();
    if (this.#taken < this.#most) {
      if (this.#taken++ === 0) this.#idle = Promise.withResolvers();
      return () => this.#release();
    }
    if (this.#waiting.length >= this.#queue) return undefined;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = () => {
      const place = this.#waiting.indexOf(resolve);
      if (place < 0) return; // it has just been given room
      this.#waiting.splice(place, 1);
      reject(signal.reason);
    };
    this.#waiting.push(resolve);
    signal.addEventListener("abort", leave, { once: true });
    promise.then(() => signal.removeEventListener("abort", leave), () => {});
    await promise;
    return () => this.#release();
  }

  /** Resolves when nobody has or awaits room. */
  idle(): Promise<void> {
    return this.#idle.promise;
  }

  #release(): void {
    const next = this.#waiting.shift();
    if (next !== undefined) next();
    else if (--this.#taken === 0) this.#idle.resolve();
  }
}
