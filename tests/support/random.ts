/** Random and long tests: their length, and the seed that all their randomness comes from. */

/** `SVC_TEST_FULL=1` runs long campaigns in full; a sample is the default. */
export const FULL = Deno.env.get("SVC_TEST_FULL") === "1";

/** `SVC_TEST_SEED` repeats a run; the default is new each time. */
export const SEED = Number(
  Deno.env.get("SVC_TEST_SEED") ?? crypto.getRandomValues(new Uint32Array(1))[0],
);

/** The length of a campaign: in full, or its sample. */
export function length(full: number, sample: number): number {
  return FULL ? full : sample;
}

/** Parameters of `fc.assert` for a property that is tried this often in full, and a fifth of it else. */
export function runs(full: number): { numRuns: number; seed: number } {
  return { numRuns: length(full, Math.ceil(full / 5)), seed: SEED | 0 };
}

/** All elements in full, and each `step`th one, from a random one on, in a sample. */
export function sample<T>(list: T[], step: number): T[] {
  const first = new Random().below(step);
  return list.filter((_, index) => FULL || index % step === first);
}

/** Pseudo-random numbers (mulberry32), the same on every machine. */
export class Random {
  #state: number;

  constructor(seed: number = SEED) {
    this.#state = seed | 0;
  }

  /** A number from 0 to less than 1. */
  next(): number {
    let t = this.#state = this.#state + 0x6d2b79f5 | 0;
    t = Math.imul(t ^ t >>> 15, t | 1);
    t ^= t + Math.imul(t ^ t >>> 7, t | 61);
    return ((t ^ t >>> 14) >>> 0) / 4294967296;
  }

  /** A whole number from 0 to less than `n`. */
  below(n: number): number {
    return Math.floor(this.next() * n);
  }

  /** An element of the list. */
  one<T>(list: T[]): T {
    return list[this.below(list.length)]!;
  }
}
