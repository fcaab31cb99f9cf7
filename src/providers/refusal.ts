import { jsonOr } from "../platform/files.ts";
import type { FailureKind } from "../plugins/api.ts";
import { announcedTime } from "./retry.ts";

/** How a request failed, as far as the backend tells it. */
export interface FailureFacts {
  kind?: FailureKind;
  /** See {@linkcode StreamEvent}. */
  retry_at?: number;
  window?: number;
}

/** What a backend says about a request that it refuses. */
export interface ErrorReport {
  /** The HTTP status; 0 for an error object inside a stream that names none. */
  status: number;
  headers?: Headers;
  /** The error body, parsed where it is JSON. */
  body: unknown;
}

/** The kind of a refusal (specification 7.2), read from its status, headers, codes and wording. */
export function refusalFacts({ status, headers, body }: ErrorReport, now: number): FailureFacts {
  const fields = [...errorFields(body)];
  const text = textOf(fields, /^(message|detail|details|msg|error|errors|description|raw|reason)$/);
  const codes = textOf(fields, /^(code|type|status|reason|error|error_?(code|type))$/);
  if (overflows(status, codes, text)) {
    const window = windowOf(fields, text);
    return { kind: "overflow", ...(window !== undefined && { window }) };
  }
  const account = !MINUTE_LIMIT.test(text);
  if (status === 401 || status === 404 || status === 410) return { kind: "permanent" };
  if (account && EXHAUSTED_CODE.test(codes)) return { kind: "permanent" };
  const retry_at = announcedTime({ status, headers, fields, text }, now);
  if (retry_at !== undefined) return { kind: "announced", retry_at };
  if (account && EXHAUSTED.test(text)) return { kind: "permanent" };
  const rejected = REJECTED_CODE.test(codes) || MODEL_GONE.test(text);
  if (status !== 429 && rejected) return { kind: "permanent" };
  return { kind: status === 0 || isTransient(status) ? "transient" : "permanent" };
}

/** The answers that another attempt may not get: timeouts, conflicts, rate limits, failures of the server. */
function isTransient(status: number): boolean {
  return status === 408 || status === 409 || status === 425 || status === 429 || status >= 500;
}

// The wordings are those of real backends; tests/providers/refusal_test.ts has a table of them.

const OVERFLOW_CODE =
  /context_?(length|window)_?exceeded|exceed_context_size|max_prompt_tokens_exceeded|prompt_too_long|request_too_large|tokens_limit_reached/i;
const OVERFLOW = RegExp(
  [
    String.raw`context[ _-]?(length|window|size|limit)`,
    String
      .raw`\b(prompt|inputs?|request|messages?)\b.{0,60}\b(too (long|large)|exceed(s|ed)?|(longer|larger|greater|more) than)\b`,
    String.raw`maximum prompt length|prompt tokens? .{0,20}exceed|too many (input |prompt )?tokens`,
    String
      .raw`only supports up to|must (be|have) (less|fewer) than .{0,12}(tokens|max_seq_len)|max input (length|characters)`,
    String.raw`reduce the length of|model token limit|total (number of )?tokens .{0,30}exceed`,
    String.raw`range of input length|max_new_tokens. must be <=|must be at least 1, got -`,
    String
      .raw`n_keep .* n_ctx|long context requests|(prompt|输入|上下文).{0,12}(超长|超出|超过|过长)`,
  ].join("|"),
  "i",
);
/** Limits of time, of the output, or of one field, which a shorter conversation does not satisfy. */
const NOT_OVERFLOW =
  /rate.?limit|quota|per.(minute|hour|day)|please wait|(try again|retry) (in|after|later)|too many requests|max_tokens.{0,12}must be less|maximum tokens you requested|tool_call|image (size|exceeds)/i;
/** A request that exceeds what is allowed in a minute: it never fits. */
const TOO_LARGE_AT_ONCE = /\blimit:? (\d+), requested:? (\d+)/i;

const EXHAUSTED_CODE =
  /insufficient_(quota|balance|credits?|funds)|billing|exceeded_current_quota|payment_required|arrearage|budget_exceeded/i;
const EXHAUSTED =
  /insufficient (balance|credits?|funds|quota)|credit balance is too low|(used all|run out of|have any|more|exceeded).{0,30} credits|exceeded (your |its )?(current|monthly|api) quota|spending limit|account .{0,60}(not active|suspended|good standing)|budget has been exceeded|credits? expired|余额不足|欠费/i;
/** One vendor reports a limit per minute as an exhausted quota. */
const MINUTE_LIMIT = /error-code#token-limit/;
const REJECTED_CODE =
  /invalid_api_key|authentication|permission|unauthorized|model_not_found|not_found_error|decommissioned|invalid_request/i;
const MODEL_GONE =
  /\bmodel\b.{0,60}(not found|does not exist|has been (deprecated|decommissioned|removed)|no longer)/i;

function overflows(status: number, codes: string, text: string): boolean {
  if (status === 401 || status === 402 || status === 404) return false;
  if (OVERFLOW_CODE.test(`${codes} ${text}`)) return true;
  const [, limit, requested] = TOO_LARGE_AT_ONCE.exec(text) ?? [];
  if (Number(requested) > Number(limit)) return true;
  if (status === 413) return true;
  return OVERFLOW.test(text) && !NOT_OVERFLOW.test(text);
}

const WINDOWS = [
  /n_ctx\W{1,3}(\d{3,})/i,
  /\d (?:tokens )?>\s*(\d{3,})/,
  /<=\s*(\d{3,})/,
  /\[1, ?(\d{3,})\]/,
  /(\d{3,}) maximum context/i,
  /context[ _-]?(?:length|window|size)(?: limit)? ?(?:of only |of |is |: ?|\()?(\d{3,})/i,
  /supports up to (\d{3,})/i,
  /\bmax(?:imum)?\b(?!.{0,20} by )[^\d>]{0,60}?(\d{3,})/i,
  /max_seq_len \(?(\d{3,})/i,
  /\blimit(?: of| is|:)? (\d{3,})/i,
  /cannot exceed (\d{3,})/i,
];

/** The size of the context window in tokens, where the backend names it. */
function windowOf(fields: Field[], text: string): number | undefined {
  const field = fields.find(([name, value]) => name === "n_ctx" && Number(value) > 0);
  if (field !== undefined) return Number(field[1]);
  const found = WINDOWS.map((pattern) => pattern.exec(text)?.[1]).find((size) => size);
  return found === undefined ? undefined : Number(found);
}

/** A field of an error body: its name, and a text or number. */
export type Field = [name: string, value: string | number];

/** Fields in which backends repeat what they were sent. */
const ECHOES = new Set(["input", "failed_generation", "ctx"]);

/** The fields of an error body, also those of JSON that a gateway wraps into a text. */
function* errorFields(value: unknown, name = "message", depth = 0): Generator<Field> {
  if (depth > 8) return;
  if (typeof value === "number") yield [name, value];
  else if (typeof value === "string") {
    const start = value.indexOf("{");
    const inner = start < 0
      ? undefined
      : jsonOr(value.slice(start, value.lastIndexOf("}") + 1), undefined);
    yield [name, inner === undefined ? value : value.slice(0, start)];
    if (inner !== undefined) yield* errorFields(inner, name, depth + 1);
  } else if (typeof value === "object" && value !== null) {
    for (const [key, each] of Object.entries(value)) {
      if (!ECHOES.has(key)) yield* errorFields(each, Array.isArray(value) ? name : key, depth + 1);
    }
  }
}

/** Characters of an error body's texts that are read. */
const MAX_TEXT = 8000;

/** The values of some fields in one line, with plain numbers. */
function textOf(fields: Field[], names: RegExp): string {
  return fields.filter(([name]) => names.test(name)).map(([, value]) => value).join(" ")
    .slice(0, MAX_TEXT).replace(/\s+/g, " ").replace(/(\d)[,_](?=\d{3})/g, "$1");
}
