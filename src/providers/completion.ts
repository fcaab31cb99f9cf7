import type { Clock } from "../platform/clock.ts";
import type { StreamEvent } from "../plugins/api.ts";
import { Assembler } from "./assemble.ts";
import { BackendError, type Peer, statusFailure } from "./failure.ts";
import { type HttpAnswer, readText } from "./http.ts";
import { dataEvents } from "./sse.ts";

/** Milliseconds to wait for token counts after the answer, and for the end after `[DONE]`. */
const USAGE_MS = 10_000;
const END_MS = 250;

/** Milliseconds for the whole body of an error answer, and bytes read of it. */
const ERROR_BODY_MS = 10_000;
const MAX_ERROR_BODY = 64 * 1024;

/**
 * Reads a completion (specification 4.10). What goes wrong once the backend called it complete does no harm.
 *
 * @throws BackendError
 */
export async function* completionEvents(
  answer: HttpAnswer,
  peer: Peer,
): AsyncGenerator<StreamEvent> {
  const assembler = new Assembler(peer);
  try {
    for await (const data of dataEvents(() => answer.read())) {
      yield* assembler.push(data);
      // Reading on to the end, past [DONE] too, lets the connection serve the next request.
      if (assembler.finished) answer.bear(assembler.done ? END_MS : USAGE_MS);
    }
  } catch (error) {
    if (!assembler.finished || !(error instanceof BackendError)) throw error;
  }
  yield* assembler.end();
}

/** Reads why there is no completion, and drops the connection. */
export async function completionFailure(
  answer: HttpAnswer,
  peer: Peer,
  clock: Clock,
): Promise<BackendError> {
  let body = "";
  const read = new AbortController();
  clock.sleep(ERROR_BODY_MS, read.signal).then(() => answer.close(), () => {});
  try {
    body = await readText(answer, MAX_ERROR_BODY);
  } catch (error) {
    if (!(error instanceof BackendError)) throw error; // a status without its body says enough
  } finally {
    read.abort("");
    answer.close();
  }
  return statusFailure(answer.status, body, peer);
}
