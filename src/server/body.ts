import type { Clock } from "../platform/clock.ts";
import { HttpError } from "./http_error.ts";

export interface BodyLimits {
  /** Bytes. */
  max: number;
  /** Seconds for the whole of it. */
  timeout: number;
  clock: Clock;
}

/**
 * The JSON object in a request's body.
 *
 * @throws HttpError 400 for anything else, 413 when it is too large and 408 when it is too slow; the rest of
 * it is not read then
 */
export async function readJson(
  request: Request,
  limits: BodyLimits,
): Promise<Record<string, unknown>> {
  const bytes = await readBytes(request, limits);
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new HttpError(400, "invalid JSON body");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new HttpError(400, "invalid JSON body");
  }
  return value as Record<string, unknown>;
}

/** The client is told to open another connection: on this one, the rest of its body is in the way. */
const CLOSE = { connection: "close" };

async function readBytes(request: Request, { max, timeout, clock }: BodyLimits) {
  const tooLarge = () => new HttpError(413, `the body is larger than ${max} bytes`, CLOSE);
  if (Number(request.headers.get("content-length") ?? 0) > max) throw tooLarge();
  if (request.body === null) return new Uint8Array();
  const reader = request.body.getReader();
  const arrived = new AbortController();
  const late = clock.sleep(timeout * 1000, arrived.signal).then(
    () => "late" as const,
    () => "late" as const,
  );
  const pieces: Uint8Array[] = [];
  let length = 0;
  try {
    while (true) {
      const read = await Promise.race([reader.read(), late]);
      if (read === "late") throw new HttpError(408, "the body took too long to arrive", CLOSE);
      if (read.done) break;
      length += read.value.length;
      if (length > max) throw tooLarge();
      pieces.push(read.value);
    }
  } catch (error) {
    reader.cancel().catch(() => {}); // nobody wants the rest
    if (error instanceof HttpError) throw error;
    throw new HttpError(400, "the body broke off", CLOSE);
  } finally {
    arrived.abort();
  }
  return await new Blob(pieces as BlobPart[]).bytes();
}
