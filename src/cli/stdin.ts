import type { InputRequest } from "../commands/io.ts";
import { NO_REASON, systemClock } from "../platform/clock.ts";

/** Milliseconds of reading after which the operator is told that it goes on. */
const SLOW = 5000;

/** Reads standard input; see {@linkcode Io.readBytes}. */
export async function readBytes(
  { most, patience, slow }: InputRequest,
): Promise<Uint8Array | "silent"> {
  if (patience !== undefined && Deno.stdin.isTerminal()) return new Uint8Array();
  const reader = Deno.stdin.readable.getReader();
  const done = new AbortController();
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    let next = reader.read();
    // A file and an empty device answer at once; only a pipe can be silent.
    if (patience !== undefined) {
      const silent = systemClock.sleep(patience, done.signal).then(() => "silent" as const);
      const first = await Promise.race([next, silent]);
      if (first === "silent") return first;
    }
    systemClock.sleep(SLOW, done.signal).then(slow, () => {});
    for (let read; !(read = await next).done && size <= most; next = reader.read()) {
      chunks.push(read.value);
      size += read.value.length;
    }
  } finally {
    done.abort(NO_REASON);
    reader.cancel().catch(() => {});
  }
  const bytes = new Uint8Array(Math.min(size, most + 1));
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk.subarray(0, bytes.length - at), at);
    at = Math.min(at + chunk.length, bytes.length);
  }
  return bytes;
}
