import type { TurnEvent } from "../../engine/events.ts";
import { oneLine } from "../../platform/terminal.ts";
import { asSlash } from "../as_slash.ts";
import type { Style } from "./style.ts";
import type { LiveCall } from "./turn_run.ts";
import { wrapped } from "./width.ts";

type Event<T extends TurnEvent["type"]> = Extract<TurnEvent, { type: T }>;

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

/** A question that was parked, and how to answer it. */
export function askLines({ id, question }: Event<"ask">, style: Style): string[] {
  return [
    style.yellow(`Ask #${id} waits: ${oneLine(question)}`),
    style.dim(`Answer it with: /asks answer ${id} <text>`),
  ];
}

/** A call that the policy or a person did not let through. */
export function refusalLine(
  { decision, reason }: Event<"permission">,
  call: LiveCall,
  style: Style,
): string {
  const why = reason === "" ? "" : `: ${oneLine(reason)}`;
  return `${style.red("✗")} ${oneLine(call.status || call.name)} ${style.yellow(decision + why)}`;
}
