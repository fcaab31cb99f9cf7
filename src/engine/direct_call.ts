import type { PolicySettings } from "../policy/settings.ts";
import type { CallScope } from "./call_scope.ts";
import { runCalls } from "./calls.ts";
import type { TurnEvent, TurnResult } from "./events.ts";

/**
 * Runs one tool call that a person typed (specification 4.7 `/tool`): through the policy like a model's, and
 * into the log as a turn of its own.
 *
 * @param text what was typed, for the log
 */
export async function* directCall(
  text: string,
  call: { name: string; arguments: string },
  scope: Omit<CallScope, "log"> & { settings: PolicySettings },
): AsyncGenerator<TurnEvent, void> {
  const { session, config, settings, signal, grants } = scope;
  await session.acquireTurn(signal);
  const log = session.beginTurn({
    model: "",
    provider: "",
    mode: settings.mode,
    reasoning: config.get("reasoning"),
  });
  let status: TurnResult["status"] = "error";
  try {
    log.append({ type: "command", text });
    const calls = [{ id: "call_1", type: "function" as const, function: call }];
    const batch = yield* runCalls(calls, { ...scope, log });
    if (batch.calls.every(({ is_error }) => !is_error)) status = "ok";
  } finally {
    grants.endTurn();
    log.end(signal.aborted ? "cancelled" : status);
  }
}
