// The main module of the thread that helps a long search; `search_helper.ts` starts it, and compile.sh bundles it.
import { candidates } from "./grep.ts";
import type { Batch } from "./search_helper.ts";
import { Pace } from "./walk.ts";

const scope = globalThis as unknown as {
  onmessage: (event: { data: Batch }) => void;
  postMessage(found: string[]): void;
};

const buffer = new Uint8Array(256 * 1024);
/** This thread has nothing else to do. */
const pace = new Pace(new AbortController().signal, () => 0);
/** The batches use the buffer one after the other. */
let last = Promise.resolve();

scope.onmessage = ({ data: { paths, pattern } }) => {
  last = last.then(async () => {
    scope.postMessage(await candidates(paths, { pattern, pace, buffer }));
  });
};
