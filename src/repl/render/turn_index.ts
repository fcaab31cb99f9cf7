import { oneLine, stripControl } from "../../platform/terminal.ts";
import type { Turn } from "../../sessions/schema.ts";
import type { Style } from "./style.ts";
import { fit, textWidth } from "./width.ts";

/** Cells that are left to a prompt and to an excerpt on the narrowest of terminals. */
const LEAST = 20;

/**
 * The turn index (specification 4.7 `/history`), one line each: `#<index> [<status>] <duration> <tool count>
 * <prompt>`; `thoughts` adds the first line of the reasoning, or all of it.
 */
export function historyLines(
  turns: readonly Turn[],
  thoughts: "none" | "first" | "all",
  style: Style,
  columns: number,
): string[] {
  return turns.flatMap((turn) => [
    line(turn, style, columns),
    ...reasoning(turn, thoughts, style, columns),
  ]);
}

/** How long a turn took; empty while it runs. */
export function duration({ started_at, ended_at }: Turn): string {
  const seconds = (Date.parse(ended_at) - Date.parse(started_at)) / 1000;
  if (Number.isNaN(seconds)) return "";
  return seconds < 60
    ? `${seconds.toFixed(1)}s`
    : `${Math.floor(seconds / 60)}m${String(Math.round(seconds % 60)).padStart(2, "0")}s`;
}

function line(turn: Turn, style: Style, columns: number): string {
  const { index, status, parts } = turn;
  const tools = parts.filter(({ type }) => type === "tool").length;
  const said = parts.find(({ type }) => type === "user" || type === "command");
  const paint = status === "ok" ? style.green : status === "running" ? style.cyan : style.yellow;
  const count = tools === 1 ? "1 tool" : `${tools} tools`;
  const facts = `#${index} ${paint(`[${status}]`)} ${duration(turn) || "-"} ${count} `;
  const room = Math.max(LEAST, columns - textWidth(facts));
  return facts + (said !== undefined && "text" in said ? fit(firstLine(said.text), room) : "");
}

function reasoning(
  { parts }: Turn,
  thoughts: "none" | "first" | "all",
  style: Style,
  columns: number,
): string[] {
  if (thoughts === "none") return [];
  return parts.flatMap((part) => {
    if (part.type !== "thinking") return [];
    const lines = thoughts === "all"
      ? stripControl(part.text).split("\n")
      : [fit(firstLine(part.text), Math.max(LEAST, columns - 4))];
    return lines.map((each) => style.dim(`    ${each}`));
  });
}

function firstLine(text: string): string {
  return oneLine(text.trim().split("\n", 1)[0]!);
}
