import * as z from "zod/mini";
import { DURATION, secondsOf } from "../commands/turn.ts";
import { LONGEST_WAIT } from "../engine/task.ts";
import type { Workspace } from "../engine/workspace.ts";
import { nearest, SvcError } from "../platform/error.ts";

/** An error that a request is answered with: its status and the sentence in the body. */
export class HttpError extends Error {
  readonly status: number;
  readonly headers: Record<string, string>;

  constructor(status: number, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }

  /** `{"error": <string>}` (specification 7.1). */
  response(): Response {
    return Response.json({ error: this.message }, { status: this.status, headers: this.headers });
  }
}

/** The statuses of errors that other modules throw, by their code. */
const STATUS: Record<string, number> = {
  session_name: 400,
  schema: 400,
  no_price: 409,
  no_answer: 400,
  ask_unknown: 404,
  ask_answered: 409,
  no_session: 404,
  session_unreadable: 409,
  session_busy: 409,
  unknown_job: 404,
  job_refused: 409,
  no_turn: 404,
  no_changes: 409,
  changed_since: 409,
  no_run: 404,
  run_state: 409,
  run_foreign: 409,
  key_reused: 422,
};

/** The error that a thrown value is answered with. Only messages of SvcError and HttpError reach the client. */
export function httpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  if (error instanceof DOMException && error.name === "AbortError") {
    return new HttpError(499, "the client went away"); // for the metrics: no client reads it
  }
  if (!(error instanceof SvcError)) return new HttpError(500, "internal error");
  const fallback = error.exit === 2 ? 503 : 500; // exit 2: the configuration is wrong, not the request
  const status = Object.hasOwn(STATUS, error.code) ? STATUS[error.code]! : fallback;
  const hint = status === 503 && error.hint !== "" ? ` ${error.hint}` : "";
  return new HttpError(status, `${error.message}${hint}`);
}

/**
 * Reads the query of a request and checks it against a schema. Parameters that the schema does not have are ignored.
 *
 * @throws HttpError 400 `wrong "<parameter>"`, with the rule that the schema gives
 */
export function readQuery<T extends z.ZodMiniObject>({ url }: Request, schema: T): z.infer<T> {
  const given = Object.fromEntries(new URL(url).searchParams);
  const { success, data, error } = schema.safeParse(given);
  if (success) return data;
  const [{ path, message }] = error.issues as [z.core.$ZodIssue];
  throw new HttpError(400, `wrong "${String(path[0])}": ${message}`);
}

/** A duration in a query, as its seconds; a hundred years at most. */
export const writtenDuration = z.pipe(
  z.string().check(z.regex(DURATION, { error: "a duration such as 12h or 7d" })),
  z.transform((text) => secondsOf(text) ?? LONGEST_WAIT),
);

/** Settings `serve.max_body` and `serve.body_timeout`, and the clock of the latter. */
type BodyLimits = Pick<Workspace, "config" | "clock">;

/**
 * Reads a JSON body and checks it against a schema.
 *
 * @param required the field without which the request means nothing. Default: there is none
 * @throws HttpError 400 `missing "<required>"`, `wrong "<field>"`, or `unknown "<field>"` for a misspelt one;
 * otherwise as {@linkcode readJson}
 */
export async function readBody<T extends z.ZodMiniObject>(
  request: Request,
  limits: BodyLimits,
  schema: T,
  required?: string,
): Promise<z.infer<T>> {
  const body = await readJson(request, limits);
  const fields = Object.keys(schema.shape);
  for (const name of Object.keys(body).filter((each) => !fields.includes(each))) {
    const meant = nearest(name, fields);
    if (meant !== undefined) {
      throw new HttpError(400, `unknown ${JSON.stringify(name)}; did you mean "${meant}"?`);
    }
  }
  const { success, data, error } = schema.safeParse(body);
  if (success) return data;
  if (required !== undefined && error.issues.some(({ path }) => path[0] === required)) {
    throw new HttpError(400, `missing "${required}"`);
  }
  throw new HttpError(400, `wrong "${String(error.issues[0]?.path[0])}"`);
}

/**
 * Reads the JSON object in a request's body.
 *
 * @throws HttpError 400 `invalid JSON body` for anything else, 413 when it is too large, 408 when it is too
 * slow; the rest of the body is not read then
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

/** The client needs another connection: the rest of its body blocks this one. */
const CLOSE = { connection: "close" };

/**
 * Reads the body of a request.
 *
 * @throws as {@linkcode readJson} for its size and its time
 */
export async function readBytes(
  request: Request,
  { config, clock }: BodyLimits,
): Promise<Uint8Array> {
  const max = config.get("serve.max_body");
  const tooLarge = () => new HttpError(413, `the body is larger than ${max} bytes`, CLOSE);
  const announced = Number(request.headers.get("content-length") ?? NaN);
  if (announced > max) throw tooLarge();
  if (request.body === null) return new Uint8Array();
  const reader = request.body.getReader();
  const arrived = new AbortController();
  const late = clock.sleep(config.get("serve.body_timeout") * 1000, arrived.signal).then(
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
    reader.cancel().catch(() => {}); // the connection may be closed already
    if (error instanceof HttpError) throw error;
    // A client that shuts its writing side after the body still reads the answer.
    if (length !== announced) throw new HttpError(400, "the body broke off", CLOSE);
  } finally {
    arrived.abort("the body has arrived"); // without a reason, an error is made
  }
  return await new Blob(pieces as BlobPart[]).bytes();
}
