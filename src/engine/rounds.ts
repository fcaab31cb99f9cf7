import type { ChatMessage, ToolDefinition, Usage, WireToolCall } from "../plugins/api.ts";
import { sendableArguments } from "../tools/prepare.ts";
import type { CallScope } from "./call_scope.ts";
import { runCalls } from "./calls.ts";
import type { ResultToolCall, TurnEvent, TurnResult } from "./events.ts";
import { loggedReply } from "./logged_reply.ts";
import type { Reply } from "./reply.ts";

/** Rounds in which every call was refused, after which the loop stops (specification 5.3.7). */
const REFUSAL_CAP = 3;

/** What a turn has come to so far. */
export interface TurnState {
  status: TurnResult["status"];
  content: string;
  thinking: string[];
  calls: ResultToolCall[];
  errors: { code: number; message: string }[];
  usage: Usage;
}

/** What the rounds of one turn work on. */
export interface RoundScope extends CallScope {
  state: TurnState;
}

/**
 * Rounds of one reply and its tool calls each, until the model answers without calling a tool, a tool ends
 * the loop, or a cap is reached.
 *
 * @param messages those of the first request; what is said and done is added
 * @throws Error a sentence that says which cap was reached; the signal's reason when it aborts
 */
export async function* runRounds(
  messages: ChatMessage[],
  scope: RoundScope,
): AsyncGenerator<TurnEvent> {
  const { tools, session, run, state, signal, config } = scope;
  const most: number = config.get("max_rounds");
  let refusals = 0;
  for (let round = 1;; round++) {
    const schema = tools.schema((tool) => offers(tool, scope));
    const reply = yield* loggedReply(messages, schema, scope);
    for (const { code, message } of reply.errors) session.recordError(code, message);
    state.errors.push(...reply.errors);
    state.status = reply.status;
    state.content = reply.content;
    if (reply.content !== "" || reply.tool_calls.length > 0) {
      messages.push(assistantMessage(reply));
    }
    if (reply.tool_calls.length === 0) {
      if (state.calls.length > 0 && (reply.status === "empty" || reply.status === "error")) {
        yield {
          type: "notice",
          run,
          level: "warning",
          message: "The tool results so far are saved; a follow-up can ask for the answer again.",
        };
      }
      return;
    }
    const batch = yield* runCalls(reply.tool_calls, scope);
    messages.push(...batch.messages);
    state.calls.push(...batch.calls);
    signal.throwIfAborted();
    refusals = batch.refused ? refusals + 1 : 0;
    if (refusals === REFUSAL_CAP) {
      throw new Error(`Stopped: every tool call of ${REFUSAL_CAP} rounds in a row was refused.`);
    }
    if (batch.stop) return;
    if (round === most) {
      throw new Error(
        `Stopped after ${most} rounds of tool calls (setting max_rounds). Their results are saved; a ` +
          "follow-up goes on from there.",
      );
    }
  }
}

/** What the policy offers, and what there is leave for. */
function offers(tool: ToolDefinition, { policy, grants }: RoundScope): boolean {
  return policy.offers(tool) || (grants.has(tool.permission) && policy.offers(tool, true));
}

function assistantMessage(reply: Reply): ChatMessage {
  return {
    role: "assistant",
    content: reply.content === "" ? null : reply.content,
    ...(reply.thinking === "" ? {} : { reasoning_content: reply.thinking }),
    ...(reply.reasoning_details && { reasoning_details: reply.reasoning_details }),
    ...(reply.tool_calls.length === 0 ? {} : { tool_calls: reply.tool_calls.map(sendable) }),
  };
}

function sendable(call: WireToolCall): WireToolCall {
  const { name, arguments: given } = call.function;
  return { ...call, function: { name, arguments: sendableArguments(given) } };
}
