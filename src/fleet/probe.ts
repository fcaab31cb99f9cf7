import type { Clock } from "../platform/clock.ts";
import { errorMessage } from "../platform/error.ts";

/** Milliseconds that an agent has for its answer (specification 8). */
const TIMEOUT = 2000;
/**
 * The last part of the timeout. A supervisor that was stopped (SIGSTOP) during the first part still has this
 * time to read an answer that has arrived meanwhile.
 */
const LAST = 500;
/** Characters of an answer that are read. */
const ENOUGH = 1000;

/** Sends `GET /health` to an agent. Returns undefined when it is healthy, otherwise the error. */
export async function probeHealth(port: number, clock: Clock): Promise<string | undefined> {
  const answer = await get(port, "/health", clock);
  if (typeof answer === "string") return answer;
  return answer.status === 200 ? undefined : `GET /health answered ${answer.status}`;
}

/**
 * Checks with `GET /version` that an agent listens on a port. Returns undefined when it does, otherwise the
 * error. Status 401 counts as an agent, which may require a token.
 *
 * @param own the agent has a `command` of its own: any answer will do
 */
export async function probeVersion(
  port: number,
  clock: Clock,
  { own }: { own: boolean },
): Promise<string | undefined> {
  const answer = await get(port, "/version", clock);
  if (typeof answer === "string") return answer;
  if (own || answer.status === 401 || /"version"\s*:\s*"/.test(answer.text)) return undefined;
  return "GET /version is not answered as svc does";
}

async function get(
  port: number,
  path: string,
  clock: Clock,
): Promise<{ status: number; text: string } | string> {
  const late = new AbortController();
  const done = new AbortController();
  clock.sleep(TIMEOUT - LAST, done.signal).then(() => clock.sleep(LAST, done.signal)).then(
    () => late.abort(new Error(`GET ${path} was not answered within ${TIMEOUT / 1000} s`)),
    () => {},
  );
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      signal: late.signal,
      redirect: "manual",
    });
    return { status: response.status, text: await beginning(response) };
  } catch (error) {
    const { cause = error } = error as Error;
    const reason = errorMessage(cause);
    return /refused/i.test(reason) ? `nothing listens on port ${port}` : reason.slice(0, 200);
  } finally {
    done.abort();
  }
}

/** The start of a body of any length. Reading a short body as a whole needs less memory. */
async function beginning(response: Response): Promise<string> {
  const length = response.headers.get("content-length");
  if (length !== null && Number(length) <= ENOUGH) return await response.text();
  const reader = response.body?.getReader();
  if (reader === undefined) return "";
  const decoder = new TextDecoder();
  let text = "";
  while (text.length < ENOUGH) {
    const { value, done } = await reader.read();
    if (done) return text;
    text += decoder.decode(value, { stream: true });
  }
  await reader.cancel();
  return text;
}
