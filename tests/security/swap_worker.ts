// The main module of a thread; `races_test.ts` starts it.

/** Entries that are put at a place in turn. */
export interface Swap {
  place: string;
  first: string;
  second: string;
  seed: number;
  /** 0: the number of swaps; 1: not 0 once the thread is to end. */
  shared: SharedArrayBuffer;
}

const scope = self as unknown as Worker;
scope.onmessage = ({ data }: MessageEvent<Swap>) => {
  const { place, shared } = data;
  const state = new Int32Array(shared);
  let [out, next] = [data.first, data.second];
  put(out, place);
  for (let seed = data.seed; Atomics.load(state, 1) === 0;) {
    // Both states last from no time to that of a whole call.
    seed = Math.imul(seed, 1103515245) + 12345 | 0;
    for (const end = performance.now() + (seed >>> 16) / 65536 * 0.3; performance.now() < end;);
    Deno.renameSync(place, out);
    put(next, place);
    [out, next] = [next, out];
    Atomics.add(state, 0, 1);
  }
  scope.postMessage("ended");
};

/** Moves an entry to the place, where a tool may have made another one meanwhile. */
function put(entry: string, place: string): void {
  while (true) {
    try {
      return Deno.renameSync(entry, place);
    } catch {
      new Deno.Command("rm", { args: ["-rf", place] }).outputSync();
    }
  }
}
