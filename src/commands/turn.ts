import { resolve } from "node:path";
import { ROOT_RUN, type TurnEvent, type TurnResult } from "../engine/events.ts";
import { LONGEST_WAIT, taskOf, type TurnTask } from "../engine/task.ts";
import type { Workspace } from "../engine/workspace.ts";
import { errorMessage, SvcError, usageError } from "../platform/error.ts";
import { readJson, writeFileAtomic } from "../platform/files.ts";
import { stripControl, terminalColumns } from "../platform/terminal.ts";
import { UNATTENDED } from "../policy/gate.ts";
import { pathOption, textOption, trustOption } from "./command.ts";
import { type Io, toJson, toJsonPieces } from "./io.ts";
import { nameOf, pathOf } from "./names.ts";
import { choice, float, integer, option, optional, type Value, withDefault } from "./options.ts";

const UNITS: Record<string, number> = { "": 1, s: 1, m: 60, h: 3600, d: 86_400 };

/** How a duration is written, such as 90 (seconds), 20m, 6h or 7d. */
export const DURATION = /^([0-9]+(?:\.[0-9]+)?)([smhd]?)$/;

/** The seconds of a written duration; undefined for any other text, and for more than a hundred years. */
export function secondsOf(written: string): number | undefined {
  const [, digits, unit] = DURATION.exec(written) ?? [];
  const seconds = Number(digits) * UNITS[unit ?? ""]!;
  return seconds <= LONGEST_WAIT ? seconds : undefined;
}

/** A duration in seconds: a number with an optional unit, such as 90, 20m, 6h or 7d. */
export const duration: Value<number> = {
  metavar: "DURATION",
  parse(word) {
    const seconds = secondsOf(word);
    if (seconds !== undefined) return seconds;
    throw new Error(`"${word}" is no duration such as 90, 20m or 6h.`);
  },
};

/** How a turn is printed. */
export const turnOutput = option(
  "--output",
  choice(["json", "text", "stream-json", "markdown"]),
  "json: the whole result. text: the answer as it comes. stream-json: one event per line. " +
    "markdown: the result for people, as in the summary of a CI job.",
);

const number = (flag: `--${string}`, value: Value<number>, description: string) =>
  optional(option(flag, value, description));

/** What a turn must keep to, and how its result is checked: the options of `run`, `teams run` and `jobs add`. */
export const taskOptions = {
  max_cost: number(
    "--max-cost",
    float("AMOUNT", 0),
    "Most that it may cost with all its agents, by the setting prices.",
  ),
  max_total_tokens: number(
    "--max-total-tokens",
    integer("N", 1),
    "Most tokens, read and written, of all its agents.",
  ),
  max_tool_calls: number(
    "--max-tool-calls",
    integer("N", 1),
    "Most tool calls of all its agents.",
  ),
  max_rounds: number(
    "--max-rounds",
    integer("N", 1),
    "Most replies with tool calls of one agent.",
  ),
  timeout: number(
    "--timeout",
    duration,
    "How long it may take, such as 90, 20m or 6h; 0: no cap.",
  ),
  quota_wait: number(
    "--wait",
    duration,
    "How long to wait in all for a quota that the backend says will open again (default: the setting quota_wait). " +
      "A backend that is busy, fails or cannot be reached is tried for retry_budget seconds (60) in any case.",
  ),
  verify: textOption(
    "--verify",
    "COMMAND",
    "Run this when the model says it is done; only exit code 0 makes the result verified.",
  ),
  verify_rounds: number(
    "--verify-rounds",
    integer("N", 0),
    "How often the model may correct its work after that (default 3).",
  ),
  schema: textOption("--schema", pathOf("FILE"), "A JSON Schema that the answer must satisfy."),
};

/**
 * The task that the options describe.
 *
 * @throws SvcError `schema` (exit 2) when the file of `--schema` cannot be read or is no valid JSON Schema
 */
export async function readTask(
  { schema, ...values }: Omit<TurnTask, "schema"> & { schema?: string },
  io: Io,
): Promise<TurnTask> {
  if (schema === undefined) return taskOf(values);
  let parsed: unknown;
  try {
    parsed = readJson(resolve(io.environment.cwd, schema));
  } catch (error) {
    if (!(error instanceof SyntaxError)) {
      if (error instanceof Deno.errors.NotFound) {
        throw usageError(
          "schema",
          `There is no file ${schema}, which --schema names.`,
          'Pass a JSON Schema, such as {"type": "object", "required": ["faults"]} in a file.',
        );
      }
      throw usageError("schema", `The schema ${schema} cannot be read: ${errorMessage(error)}.`);
    }
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw usageError("schema", `The schema ${schema} is not a JSON object.`, "Pass a JSON Schema.");
  }
  const task = taskOf({ ...values, schema: parsed as Record<string, unknown> });
  const { checkSchema } = await import("../tools/json_schema.ts");
  checkSchema(task.schema!, `The file ${schema}`);
  return task;
}

/** The options of every command that runs agents without a terminal. */
export const turnOptions = {
  session: textOption(
    "--session-id",
    nameOf("sessions"),
    "Continue this session, or create it.",
  ),
  model: textOption("--model", nameOf("models", "REF"), "A model, or <provider>/<model>."),
  provider: textOption("--provider", nameOf("providers"), "The provider for this run."),
  base_url: textOption("--base-url", "URL", "The backend's address for this run."),
  mode: textOption(
    "--mode",
    nameOf("modes", "MODE"),
    "build, plan, or a mode of your configuration.",
  ),
  output: withDefault(turnOutput, "json"),
  result: textOption("--result", pathOf("FILE"), "Write the result to this file too, as JSON."),
  unattended: option(
    "--unattended",
    "No operator: questions are parked, standard input is not read.",
  ),
  approve_model: option(
    "--approve-model",
    "Approve the models that the configuration and roles refer to.",
  ),
  yes: option("--yes", "Approve every call that the policy asks about."),
  no: option("--no", "Refuse every such call (the default)."),
  verbose: option("--verbose", "Show the activity on standard error."),
  trust: trustOption,
  path: pathOption,
  ...taskOptions,
};

/**
 * The settings that the options make for this run.
 *
 * @throws SvcError `usage` (exit 2) for options that exclude each other
 */
export function turnOverrides(values: {
  yes: boolean;
  no: boolean;
  model?: string;
  provider?: string;
  base_url?: string;
  mode?: string;
  unattended: boolean;
}): Record<string, unknown> {
  if (values.yes && values.no) {
    throw usageError("usage", "--yes and --no exclude each other.", "Pass one of them.");
  }
  const { model, provider, base_url, mode, unattended } = values;
  const given = { model, provider, base_url, mode, unattended: unattended || undefined };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

/** How a turn is shown. */
export interface TurnShown {
  output: "json" | "text" | "stream-json" | "markdown";
  /** A file for the result as JSON. */
  result?: string;
  verbose: boolean;
  /** The option of this name, if it was given. */
  max_rounds?: number;
}

/**
 * Shows a turn to its end: its result or its answer as output, the agents' activity as notes.
 *
 * @returns the exit code: 0 for a turn that ended `ok` or `truncated`, 130 for a cancelled one, 3 for one that a
 * limit ended, else 1
 */
export async function showTurn(
  turn: AsyncIterable<TurnEvent>,
  shown: TurnShown,
  workspace: Pick<Workspace, "asks" | "config">,
  io: Io,
): Promise<number> {
  const calls = shown.verbose ? await callLines(workspace, io) : undefined;
  const show = turnRenderer({ output: shown.output, calls }, workspace.asks.path, io);
  const markdown = shown.output === "markdown" ? await import("./turn_markdown.ts") : undefined;
  const changed = markdown?.changedFiles();
  let status = "";
  let reason = "";
  for await (const event of turn) {
    show(event);
    changed?.see(event);
    if (event.type !== "turn_finished" || event.run !== ROOT_RUN) continue;
    if (markdown) io.out(markdown.resultMarkdown(event.result, changed!.files));
    if (shown.result !== undefined) writeResult(event.result, shown.result, io);
    ({ status, reason } = event.result);
    const denied = shown.output === "stream-json" ? [] : deniedLines(event.result);
    for (const line of denied) io.note(line);
  }
  if (status === "cancelled") return 130;
  const limited = reason === "rounds" && shown.max_rounds !== undefined;
  if (reason === "budget" || reason === "timeout" || limited) return 3;
  return status === "ok" || status === "truncated" ? 0 : 1;
}

/**
 * Writes the result in place of the file. The agent may have made that a link, whose target is not written.
 *
 * @throws SvcError `result_file` (exit 1) when the file cannot be written
 */
function writeResult(result: TurnResult, file: string, { environment }: Io): void {
  const path = resolve(environment.cwd, file);
  const text = toJson(result, 2) + "\n";
  try {
    // `/dev/stdout` and its like are links that no agent has made.
    if (path.startsWith("/dev/")) Deno.writeTextFileSync(path, text);
    else writeFileAtomic(path, text);
  } catch (error) {
    throw new SvcError("result_file", `The result cannot be written: ${errorMessage(error)}`);
  }
}

/** Reasons that a line about refused calls names at most. */
const MOST_REASONS = 5;

/** The calls of a turn that were refused, and why, in one line; a hint in a second; none without such calls. */
function deniedLines({ denied, refused }: TurnResult): string[] {
  if (denied.length === 0) return [];
  const label = (tool: string) => refused.find((each) => each.startsWith(`${tool} (`)) ?? tool;
  const causes = [...new Set(denied.map(({ tool, reason }) => `${label(tool)}: ${reason}`))];
  const calls = denied.length === 1 ? "1 call was" : `${denied.length} calls were`;
  const more = causes.length > MOST_REASONS ? `; and ${causes.length - MOST_REASONS} more` : "";
  const hint =
    "hint: Allow them in the settings, which svc permissions shows; --yes approves every such call.";
  return [
    `${calls} refused: ${causes.slice(0, MOST_REASONS).join("; ")}${more}`,
    ...denied.some(({ reason }) => reason.endsWith(UNATTENDED)) ? [hint] : [],
  ];
}

/** Shows the events of a turn as they come. */
export function turnRenderer(
  { output, calls }: Pick<TurnShown, "output"> & { calls?: CallLines },
  asksPath: string,
  io: Io,
): (event: TurnEvent) => void {
  const asks = calls !== undefined || output === "text" ? asksPath : undefined;
  const note = activity(io, { calls, asks });
  let open = false; // the last printed text did not end its line
  return (event) => {
    if (output === "stream-json") io.out(toJson(event) + "\n");
    if (output === "text" && event.run === ROOT_RUN) {
      if (event.type === "token") {
        io.out(stripControl(event.content));
        open = !event.content.endsWith("\n");
      } else if (open && event.type !== "thinking") {
        io.out("\n");
        open = false;
      }
    }
    note(event);
    if (output === "json" && event.type === "turn_finished" && event.run === ROOT_RUN) {
      for (const piece of toJsonPieces(event.result, 2)) io.out(piece);
      io.out("\n");
    }
  };
}

/** The lines of a finished call after the first one: its error, a program's last lines, the diff of an edit. */
export type CallLines = (
  result: TurnEvent & { type: "tool_result" },
  call: TurnEvent & { type: "tool_call" } | undefined,
) => string[];

/** How the calls of a verbose turn are shown on standard error. */
export async function callLines(
  { config }: Pick<Workspace, "config">,
  io: Io,
): Promise<CallLines> {
  const { outcomeLines } = await import("./outcome.ts");
  const { terminalStyle } = await import("../platform/style.ts");
  const setting = () => config.get("repl.theme");
  const { environment } = io;
  const style = terminalStyle({ isTerminal: io.isTerminal("error"), environment, setting });
  const view = { style, show_errors: false, show_notes: false, brief: false };
  const width = () => (io.columns?.() ?? terminalColumns() ?? 100) - 2;
  return (result, call) => outcomeLines(result, call, { ...view, columns: width() }).lines.slice(1);
}

/**
 * Shows a turn's events as lines on standard error: warnings and errors always, the agent's activity
 * only with `calls`, parked questions when `asks` is the path of their inbox.
 */
export function activity(
  io: Io,
  { calls, asks }: { calls?: CallLines; asks?: string },
): (event: TurnEvent) => void {
  const verbose = calls !== undefined;
  const open = new Map<string, TurnEvent & { type: "tool_call" }>();
  let thinking = false;
  return (event) => {
    const from = event.run === ROOT_RUN ? "" : `#${event.run} `;
    if (event.type === "ask" && asks !== undefined) {
      io.note(`Ask #${event.id} waits in ${asks}: ${event.question.replace(/\s+/g, " ")}`);
      io.note(`Answer it with: svc asks answer ${event.id} "<text>"`);
    }
    if (event.type === "notice" && (verbose || event.level !== "info")) {
      io.note(from + (event.level === "error" ? `error: ${event.message}` : event.message));
    }
    if (!verbose) return;
    if (event.type === "thinking" && !thinking) io.note(`${from}  thinking`);
    thinking = event.type === "thinking";
    const line = describe(event);
    if (line !== "") io.note(from + line);
    if (event.type === "tool_call") open.set(`${event.run} ${event.id}`, event);
    if (event.type !== "tool_result") return;
    const call = `${event.run} ${event.id}`;
    for (const each of calls(event, open.get(call))) io.note(`${from}  ${each}`, true);
    open.delete(call);
  };
}

function describe(event: TurnEvent): string {
  switch (event.type) {
    case "turn_started":
      return `session ${event.session}, turn ${event.index}: ${event.provider}/${event.model}, ` +
        `mode ${event.mode}`;
    case "tool_call":
      return `  ${event.status || event.name}`;
    case "permission":
      return event.decision === "granted" ? "" : `  ${event.decision}: ${event.reason}`;
    case "tool_result": {
      const lines = event.output.split("\n");
      const size = lines.length === 1 ? "1 line" : `${lines.length} lines`;
      const exit = event.details?.exit_code ?? 0;
      const first = event.is_error ? lines[0] : exit > 0 ? `exit ${exit}` : event.note || size;
      const failed = event.is_error || exit > 0;
      return `  ${failed ? "! " : ""}${first} (${event.duration.toFixed(2)} s)`;
    }
    case "ask_routed":
      return `  asks ${event.to === "human" ? "the operator" : `#${event.to}`}`;
    case "handoff":
      return event.target === "done" ? "  done" : `  hands over to #${event.target}`;
    case "run_started":
      return `  ${event.role} starts in session ${event.session}, for #${event.parent}`;
    case "turn_finished": {
      const { status, duration, tool_calls, session } = event.result;
      const calls = tool_calls.length === 1 ? "1 tool call" : `${tool_calls.length} tool calls`;
      return `${status} in ${duration.toFixed(2)} s, ${calls}; ` +
        `log: .svc/sessions/${session}.json`;
    }
    default:
      return "";
  }
}
