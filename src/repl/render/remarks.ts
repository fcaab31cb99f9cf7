import type { TurnEvent } from "../../engine/events.ts";
import { oneLine } from "../../platform/terminal.ts";
import type { Style } from "./style.ts";
import type { LiveCall } from "./turn_run.ts";

type Event<T extends TurnEvent["type"]> = Extract<TurnEvent, { type: T }>;

/** A notice in the colour of its level; errors as `! Error:` (specification 7.3). */
export function noticeLine({ level, message }: Event<"notice">, style: Style): string {
  const text = oneLine(message);
  if (level === "error") return style.red(`! Error: ${text.replace(/^Error: /, "")}`);
  return level === "warning" ? style.yellow(text) : style.dim(text);
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
