import { stripControl } from "../platform/terminal.ts";
import type { ToolArguments, ToolDefinition } from "../plugins/api.ts";

const MAX_LINE = 160;

/** One printable line that says what a call does: the tool's own `status`, or its name and key argument. */
export function activityLine(tool: ToolDefinition, args: ToolArguments): string {
  const line = stripControl(statusOf(tool, args)).replace(/\s+/g, " ").trim();
  if (line.length <= MAX_LINE) return line;
  return line.slice(0, MAX_LINE - 1).toWellFormed() + "…";
}

/** The parameter that activity lines show: `key_arg`, or the first required one, or empty. */
export function keyArgument(tool: ToolDefinition): string {
  return tool.key_arg ?? tool.parameters.required?.[0] ?? "";
}

function statusOf(tool: ToolDefinition, args: ToolArguments): string {
  try {
    const status: unknown = tool.status?.(args);
    if (typeof status === "string" && status !== "") return status;
  } catch {
    // a tool that cannot describe its call is described for it
  }
  const value = args[keyArgument(tool)];
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
  return `${tool.name} ${text}`;
}
