import { withDefault } from "@optique/core/modifiers";
import { option } from "@optique/core/primitives";
import { choice } from "@optique/core/valueparser";
import { ROOT_RUN, type TurnEvent } from "../engine/events.ts";
import type { Workspace } from "../engine/workspace.ts";
import { usageError } from "../platform/error.ts";
import { stripControl } from "../platform/terminal.ts";
import { pathOption, text, textOption, trustOption } from "./command.ts";
import { type Io, toJson } from "./io.ts";
import { nameOf } from "./names.ts";

/** How a turn is printed. */
export const turnOutput = option("--output", choice(["json", "text", "stream-json"]), {
  description: text(
    "json: the whole result. text: the answer as it comes. stream-json: one event per line.",
  ),
});

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
  unattended: option("--unattended", {
    description: text("No operator: questions are parked, standard input is not read."),
  }),
  approve_model: option("--approve-model", {
    description: text("Approve the models that the configuration and roles refer to."),
  }),
  yes: option("--yes", { description: text("Approve every call that the policy asks about.") }),
  no: option("--no", { description: text("Refuse every such call (the default).") }),
  verbose: option("--verbose", { description: text("Show the activity on standard error.") }),
  trust: trustOption,
  path: pathOption,
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

/**
 * Reads the prompt: the argument, or standard input for `-` or when there is none.
 *
 * @throws SvcError `no_prompt` (exit 2) when it is empty
 */
export async function readPrompt(
  given: string | undefined,
  values: { unattended: boolean },
  io: Io,
  { missing, hint }: { missing: string; hint: string },
): Promise<string> {
  // Standard input is read only when it is the prompt: a pipe that stays open must not block a run.
  const piped = given === "-" ||
    (given === undefined && !values.unattended && !io.isTerminal("in"));
  const prompt = (piped ? await io.readInput() : given ?? "").trim();
  if (prompt === "") {
    throw usageError("no_prompt", missing, hint);
  }
  return prompt;
}

/** How a turn is shown. */
export interface TurnShown {
  output: "json" | "text" | "stream-json";
  verbose: boolean;
}

/**
 * Shows a turn to its end: its result or its answer as output, the agents' activity as notes.
 *
 * @returns the exit code: 0 for a turn that ended `ok` or `truncated`, 130 for a cancelled one, else 1
 */
export async function showTurn(
  turn: AsyncIterable<TurnEvent>,
  shown: TurnShown,
  { asks }: Pick<Workspace, "asks">,
  io: Io,
): Promise<number> {
  const show = turnRenderer(shown, asks.path, io);
  let status = "";
  for await (const event of turn) {
    show(event);
    if (event.type === "turn_finished" && event.run === ROOT_RUN) status = event.result.status;
  }
  if (status === "cancelled") return 130;
  return status === "ok" || status === "truncated" ? 0 : 1;
}

/** Shows the events of a turn as they come. */
export function turnRenderer(
  { output, verbose }: TurnShown,
  asksPath: string,
  io: Io,
): (event: TurnEvent) => void {
  const asks = verbose || output === "text" ? asksPath : undefined;
  const note = activity(io, { verbose, asks });
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
      io.out(toJson(event.result, 2) + "\n");
    }
  };
}

/**
 * Shows a turn's events as lines on standard error: warnings and errors always, the agent's activity
 * only when `verbose`, parked questions when `asks` is the path of their inbox.
 */
export function activity(
  io: Io,
  { verbose, asks }: { verbose: boolean; asks?: string },
): (event: TurnEvent) => void {
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
      const first = event.is_error ? lines[0] : event.note || size;
      return `  ${event.is_error ? "! " : ""}${first} (${event.duration.toFixed(2)} s)`;
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
