import type { TurnEvent, TurnResult } from "../../engine/events.ts";
import { oneLine, visible } from "../../platform/terminal.ts";
import { amount } from "../../usage/ledger.ts";
import { asSlash } from "../commands/table.ts";
import type { Style } from "../../platform/style.ts";
import { count, duration, fit, plural, textWidth, tokensOf, wrapped } from "../../platform/text.ts";
import type { LiveCall, TurnRun } from "./turn_run.ts";

type Event<T extends TurnEvent["type"]> = Extract<TurnEvent, { type: T }>;

/**
 * The footer of a turn, in one line: status unless ok, model, tokens, context and its share of the window, cost, calls,
 * duration, work in the background. A narrow terminal gets the facts that matter most.
 */
export function turnFooter(
  result: TurnResult,
  { context, window }: Pick<TurnRun, "context" | "window">,
  style: Style,
  { columns, background }: { columns: number; background: string[] },
): string {
  const { usage, cost, tool_calls, model, provider, status } = result;
  const share = window === undefined ? "" : `${Math.round(100 * context / window)} %`;
  const counted = usage.prompt_tokens !== undefined || usage.completion_tokens !== undefined;
  const facts = {
    model: oneLine(provider === "" ? model : `${provider}/${model}`),
    tokens: counted
      ? `${count(usage.prompt_tokens ?? 0)} in, ${count(usage.completion_tokens ?? 0)} out`
      : "",
    context: context === 0
      ? ""
      : `context ${count(context)}${share && ` of ${count(window!)} (${share})`}`,
    cost: cost === null ? "" : `cost ${amount(cost)}`,
    calls: tool_calls.length > 0 ? plural(tool_calls.length, "tool call") : "",
    time: duration(result.duration),
    background: background.map(oneLine).join(", "),
  };
  const shown = () => Object.values(facts).filter((fact) => fact !== "").join(" · ");
  const before = status === "ok" ? "" : `${oneLine(status)} `;
  const fits = () => textWidth(before + shown()) <= columns;
  const shorter: Partial<typeof facts>[] = [
    { calls: "" },
    { context: share === "" ? facts.context : `context ${share}` },
    { model: oneLine(model) },
    { model: "" },
    { time: "" },
    { tokens: "" },
  ];
  while (!fits() && shorter.length > 0) Object.assign(facts, shorter.shift());
  const line = style.dim(fit(shown(), Math.max(1, columns - before.length)));
  return before === "" ? line : `${statusText(status, style)} ${line}`;
}

/** The footer of a sub-agent's run. */
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

/** Colours the status of a turn or run. */
function statusText(status: string, style: Style): string {
  const text = oneLine(status);
  if (status === "ok") return style.green(text);
  if (status === "running") return style.cyan(text);
  return status === "error" ? style.red(text) : style.yellow(text);
}

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME = 100;

/** The status line: time, the running tools of every run, tokens so far (sub-agents included). */
export function statusLine(runs: TurnRun[], root: number, since: number, now: number): string {
  const frame = FRAMES[Math.floor(now / FRAME) % FRAMES.length]!;
  const tokens = runs.reduce((sum, run) => sum + run.tokens, 0);
  const about = runs.some(({ guessed }) => guessed) ? "~" : "";
  const active = runs.filter((run) => run.result === undefined);
  const deepest = active.filter((run) => run.id !== root);
  const shown = deepest.length > 0 ? deepest : active;
  return [
    `${frame} ${elapsed(now - since)}`,
    ...(tokens === 0 ? [] : [`${about}${count(tokens)} tokens`]),
    ...shown.map((run) =>
      (run.id === root ? "" : `#${run.id} ${oneLine(run.role)}: `) + doing(run, now)
    ),
  ].join(" · ");
}

function doing(run: TurnRun, now: number): string {
  const [call, ...others] = run.calls.values();
  if (call !== undefined) {
    return oneLine(call.status || call.name) + (others.length > 0 ? ` (+${others.length})` : "");
  }
  const wait = (run.retryAt ?? 0) - now;
  if (wait > 0) return `retrying in ${Math.ceil(wait / 1000)} s`;
  if (run.thinkingSince !== undefined) return "thinking";
  if (!run.begun) return "waiting for the session";
  return run.guessed ? "answering" : "waiting for the model";
}

function elapsed(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** A notice in the colour of its level; errors as `! Error:` (specification 7.3). */
export function noticeLines(
  { level, message }: Event<"notice">,
  style: Style,
  columns: number,
): string[] {
  const text = asSlash(oneLine(message));
  const said = level === "error" ? `! Error: ${text.replace(/^Error: /, "")}` : text;
  const paint = style[({ info: "dim", warning: "yellow", error: "red" } as const)[level]];
  return wrapped(said, columns).split("\n").map(paint);
}

/** A parked ask and how to answer it. */
export function askLines({ id, question }: Event<"ask">, style: Style): string[] {
  return [
    style.yellow(`Ask #${id} waits: ${oneLine(visible(question))}`),
    style.dim(`Answer it with: /asks answer ${id} <text>`),
  ];
}

/** A call denied by the policy or declined by the operator. */
export function refusalLine(
  { decision, reason }: Event<"permission">,
  call: LiveCall,
  style: Style,
): string {
  const why = reason === "" ? "" : `: ${oneLine(visible(reason))}`;
  return `${style.red("✗")} ${oneLine(visible(call.status || call.name))} ${
    style.yellow(decision + why)
  }`;
}
