import { SvcError } from "../platform/error.ts";

/** A request that is answered with an error: its status, and the sentence of the body. */
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

/** The statuses of what rooms below throw; anything else is our own failure. */
const STATUS: Record<string, number> = {
  session_name: 400,
  no_answer: 400,
  ask_unknown: 404,
  ask_answered: 409,
  session_unreadable: 409,
  session_busy: 409,
  unknown_job: 404,
  job_refused: 409,
};

/** Nobody reads it; it is counted. */
const GONE = "the client went away";

/** What any thrown value is answered with. Only sentences written for people leave the process. */
export function httpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  if (error instanceof DOMException && error.name === "AbortError") return new HttpError(499, GONE);
  if (!(error instanceof SvcError)) return new HttpError(500, "internal error");
  const usage = error.exit === 2 ? 503 : 500; // the configuration is wrong, not the request
  const status = Object.hasOwn(STATUS, error.code) ? STATUS[error.code]! : usage;
  const hint = status === 503 && error.hint !== "" ? ` ${error.hint}` : "";
  return new HttpError(status, `${error.message}${hint}`);
}
