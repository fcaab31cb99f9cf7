import type { Clock } from "../platform/clock.ts";
import { errorMessage } from "../platform/error.ts";
import { missingPackage } from "../plugins/modules.ts";
import type { ResultDetails, ToolArguments, ToolContext, ToolDefinition } from "../plugins/api.ts";

/** The result of a call. */
export interface ToolOutcome {
  /** Well-formed text; begins with `Error:` when the handler failed. */
  output: string;
  is_error: boolean;
  /** A soft remark such as "no matches", or empty. */
  note: string;
  /** Seconds. */
  duration: number;
  details?: ResultDetails;
}

/** Milliseconds a cancelled handler has for ending its children and saying what it did. */
const CANCEL_GRACE = 3000;
const TRUNCATED = "... (truncated)";

/**
 * Runs a tool's handler (specification 7.3, 8). Never rejects: a throw becomes `Error: <message>`.
 *
 * When `context.signal` aborts, a handler has three seconds to finish; what it returns in time is its
 * result, and otherwise the result is `Error: cancelled`, and its own is discarded.
 *
 * @param options.max_result_chars a longer result is cut at a line boundary; 0 means unlimited.
 * @param options.mask replaces secrets in the result; default: none are
 */
export async function runTool(
  tool: ToolDefinition,
  args: ToolArguments,
  context: ToolContext,
  options: { max_result_chars: number; clock: Clock; mask?: (text: string) => string },
): Promise<ToolOutcome> {
  const { clock } = options;
  const started = clock.now();
  const whole = (await handle(tool, args, context, clock)).toWellFormed();
  const text = options.mask?.(whole) ?? whole;
  const is_error = text.startsWith("Error:") || safely(() => tool.error?.(text), false) === true;
  const note = is_error ? "" : safely(() => tool.note?.(text), "") ?? "";
  const output = truncate(text, options.max_result_chars);
  const details = safely(() => tool.details?.(output, args), undefined);
  return {
    output,
    is_error,
    note: typeof note === "string" ? note : "",
    duration: Math.max(0, clock.now() - started) / 1000,
    ...details !== undefined && { details: numbers(details) },
  };
}

/** The fields of details that are what they must be. */
function numbers({ exit_code, output_at, line }: ResultDetails): ResultDetails {
  const known = Object.entries({ exit_code, output_at, line });
  return Object.fromEntries(known.filter(([, value]) => Number.isSafeInteger(value)));
}

/** Cuts a text to at most `limit` characters at a line boundary and says so. 0 means unlimited. */
export function truncate(text: string, limit: number): string {
  if (limit <= 0 || text.length <= limit) return text;
  // A boundary in the first half means one overlong line: most of the result would be lost with it.
  const boundary = text.lastIndexOf("\n", limit);
  const kept = text.slice(0, boundary >= limit / 2 ? boundary : limit);
  // A surrogate pair cut in two leaves its first half behind.
  const whole = kept.isWellFormed() ? kept : kept.slice(0, -1);
  return `${whole}\n${TRUNCATED}`;
}

async function handle(
  tool: ToolDefinition,
  args: ToolArguments,
  context: ToolContext,
  clock: Clock,
): Promise<string> {
  const { signal } = context;
  if (signal.aborted) return "Error: cancelled";
  const done = new AbortController();
  const abandoned = Promise.withResolvers<string>();
  const wait = () =>
    clock.sleep(CANCEL_GRACE, done.signal)
      .then(() => abandoned.resolve("Error: cancelled"), () => {});
  signal.addEventListener("abort", wait, { once: true });
  try {
    const result: unknown = await Promise.race([call(tool, args, context), abandoned.promise]);
    return typeof result === "string"
      ? result
      : `Error: ${tool.name} returned ${kind(result)} instead of text`;
  } catch (error) {
    return signal.aborted ? "Error: cancelled" : failure(tool, error);
  } finally {
    signal.removeEventListener("abort", wait);
    if (signal.aborted) done.abort();
  }
}

/** Turns a synchronous throw into a rejection. */
// deno-lint-ignore require-await
async function call(tool: ToolDefinition, args: ToolArguments, context: ToolContext) {
  return tool.handler(args, context);
}

function failure(tool: ToolDefinition, error: unknown): string {
  const missing = missingPackage(error);
  if (missing !== undefined) return `Error: ${tool.name} ${missing}`;
  const message = errorMessage(error).trim() || "the tool failed";
  return message.startsWith("Error:") ? message : `Error: ${message}`;
}

function kind(value: unknown): string {
  return value === undefined || value === null ? "nothing" : `a value of type ${typeof value}`;
}

function safely<T>(ask: () => T, otherwise: T): T {
  try {
    return ask();
  } catch {
    return otherwise;
  }
}
