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

/**
 * Runs a tool's handler (specification 7.3, 8). Never rejects: a throw becomes `Error: <message>`.
 *
 * When `context.signal` aborts, a handler has three seconds to finish; what it returns in time is its
 * result, and otherwise the result is `Error: cancelled`, and its own is discarded.
 *
 * @param options.max_result_chars a longer result is cut in the middle; 0 means unlimited. A function gets its length
 * @param options.mask replaces secrets in the result; default: none are
 * @param options.keep keeps the whole of a result that is cut, and returns the path of the file
 */
export async function runTool(
  tool: ToolDefinition,
  args: ToolArguments,
  context: ToolContext,
  options: {
    max_result_chars: number | ((length: number) => Promise<number>);
    clock: Clock;
    mask?: (text: string) => string;
    keep?: (whole: string) => Promise<string>;
  },
): Promise<ToolOutcome> {
  const { clock, max_result_chars: most } = options;
  const started = clock.now();
  const whole = (await handle(tool, args, context, clock)).toWellFormed();
  const text = options.mask?.(whole) ?? whole;
  const is_error = text.startsWith("Error:") || safely(() => tool.error?.(text), false) === true;
  const note = is_error ? "" : safely(() => tool.note?.(text), "") ?? "";
  const limit = typeof most === "number" ? most : await most(text.length);
  const output = await limited(text, limit, options.keep);
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

/** A result of at most `limit` characters: its beginning and its end, and between them a line about the rest. */
async function limited(
  text: string,
  limit: number,
  keep?: (whole: string) => Promise<string>,
): Promise<string> {
  if (limit <= 0 || text.length <= limit) return text;
  let path = "";
  try {
    path = await keep?.(text) ?? "";
  } catch {
    // The disk is full: the line says no path.
  }
  return withoutMiddle(text, limit, path);
}

/**
 * The beginning and the end of a text, cut at line boundaries where they are near, and between them a line that says
 * how much was left out. A limit of 0 means unlimited.
 *
 * @param path where the whole text is. Default: nowhere
 */
export function withoutMiddle(text: string, limit: number, path = ""): string {
  if (limit <= 0 || text.length <= limit) return text;
  const where = path === "" ? "" : `; the whole is in ${path}, for file_read and grep`;
  const half = Math.floor(Math.max(limit / 2, limit - 60 - where.length) / 2);
  // A boundary far away means an overlong line: most of the text would be lost with it.
  const newline = text.lastIndexOf("\n", half);
  const end = newline >= half / 2 ? newline : half;
  const next = text.indexOf("\n", text.length - half - 1) + 1;
  const from = next > 0 && next <= text.length - half / 2 ? next : text.length - half;
  // A character cut in two leaves half of it behind.
  const isHigh = (at: number) => (text.charCodeAt(at) & 0xfc00) === 0xd800;
  const head = text.slice(0, isHigh(end - 1) ? end - 1 : end);
  const tail = text.slice(isHigh(from - 1) ? from + 1 : from);
  const left = text.length - head.length - tail.length;
  return `${head}\n... (${left} of ${text.length} characters left out${where}) ...\n${tail}`;
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
