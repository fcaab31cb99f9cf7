import type { TurnResult } from "../events.ts";

/** How a turn ended, as a memory notes it: well or not, and its answer or its errors. */
export function outcome(
  { status, content, errors }: TurnResult,
): { ok: boolean; text: string } {
  const text = content || errors.map(({ message }) => message).join("; ");
  return { ok: status === "ok" || status === "truncated", text };
}
