import { oneLine } from "../../platform/terminal.ts";
import type { TurnResult } from "../../engine/events.ts";
import { count, duration, plural, tokensOf } from "./facts.ts";
import type { Style } from "./style.ts";

/** The line under a turn: how it ended when not well, model, tokens, context, tool calls, time. */
export function turnFooter(result: TurnResult, context: number, style: Style): string {
  const { usage, tool_calls, model, provider } = result;
  const counted = usage.prompt_tokens !== undefined || usage.completion_tokens !== undefined;
  const facts = [
    oneLine(provider === "" ? model : `${provider}/${model}`),
    ...(counted
      ? [`${count(usage.prompt_tokens ?? 0)} in, ${count(usage.completion_tokens ?? 0)} out`]
      : []),
    ...(context > 0 ? [`context ${count(context)}`] : []),
    ...(tool_calls.length > 0 ? [plural(tool_calls.length, "tool call")] : []),
    duration(result.duration),
  ];
  const line = style.dim(facts.filter((fact) => fact !== "").join(" · "));
  return result.status === "ok" ? line : `${statusText(result.status, style)} ${line}`;
}

/** How a sub-agent's run ended. */
export function runFooter(
  { status, result, toolCalls }: { status: string; result?: TurnResult; toolCalls: number },
  style: Style,
): string {
  const tokens = result === undefined ? 0 : tokensOf(result.usage);
  const facts = [
    ...(result === undefined ? [] : [duration(result.duration)]),
    ...(tokens > 0 ? [`${count(tokens)} tokens`] : []),
    ...(toolCalls > 0 ? [plural(toolCalls, "tool call")] : []),
  ];
  return [statusText(status, style), ...facts.map(style.dim)].join(style.dim(" · "));
}

/** The status of a turn or run in its colour. */
function statusText(status: string, style: Style): string {
  const text = oneLine(status);
  if (status === "ok") return style.green(text);
  if (status === "running") return style.cyan(text);
  return status === "error" ? style.red(text) : style.yellow(text);
}
