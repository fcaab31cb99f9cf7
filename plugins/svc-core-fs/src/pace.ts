/** Milliseconds of work after which others get their turn. */
const SLICE = 5;

/**
 * Keeps long work from holding up everything else in the process: `due` says when to await `rest`.
 * The two are apart because awaiting costs more than most steps of the work.
 */
export class Pace {
  readonly #signal: AbortSignal;
  readonly #now: () => number;
  #since: number;

  /** @param now the time in milliseconds. */
  constructor(signal: AbortSignal, now = () => performance.now()) {
    this.#signal = signal;
    this.#now = now;
    this.#since = now();
  }

  get due(): boolean {
    return this.#now() - this.#since >= SLICE;
  }

  /** @throws what the signal was aborted with. */
  async rest(): Promise<void> {
    // Not setImmediate: while one follows the other, Deno looks at no socket.
    await new Promise<void>((resolve) => setTimeout(resolve, 0));
    this.#signal.throwIfAborted();
    this.#since = this.#now();
  }

  throwIfAborted(): void {
    this.#signal.throwIfAborted();
  }

  /** Sorts in runs that are short, and then merges them, with rests in between. */
  async sort<T>(items: T[], before: (a: T, b: T) => boolean): Promise<T[]> {
    let runs: T[][] = [];
    for (let i = 0; i < items.length; i += RUN) {
      runs.push(items.slice(i, i + RUN).sort((a, b) => before(a, b) ? -1 : 1));
      if (this.due) await this.rest();
    }
    while (runs.length > 1) {
      const merged: T[][] = [];
      for (let i = 0; i < runs.length; i += 2) {
        merged.push(await this.#merge(runs[i]!, runs[i + 1] ?? [], before));
      }
      runs = merged;
    }
    return runs[0] ?? [];
  }

  async #merge<T>(left: T[], right: T[], before: (a: T, b: T) => boolean): Promise<T[]> {
    const result: T[] = [];
    for (let i = 0, j = 0; i < left.length || j < right.length;) {
      const takeLeft = j === right.length || (i < left.length && !before(right[j]!, left[i]!));
      result.push(takeLeft ? left[i++]! : right[j++]!);
      if (result.length % 1024 === 0 && this.due) await this.rest();
    }
    return result;
  }
}

/** Items that are sorted in one go. */
const RUN = 2000;
