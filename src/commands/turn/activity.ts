import { ROOT_RUN, type TurnEvent } from "../../engine/events.ts";
import type { Io } from "../io.ts";

/**
 * Shows a turn's events as lines on standard error: warnings and errors always, what the agent does
 * only when `verbose`, parked questions when `asks` says where they lie.
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
