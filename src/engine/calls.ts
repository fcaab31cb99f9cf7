import type { ChatMessage, ConfigView, ToolDefinition, WireToolCall } from "../plugins/api.ts";
import { activityLine } from "../tools/describe.ts";
import type { ToolOutcome } from "../tools/execute.ts";
import { prepareCall, type Prepared } from "../tools/prepare.ts";
import type { CallScope } from "./call_scope.ts";
import { EventQueue } from "./event_queue.ts";
import type { ResultToolCall, TurnEvent } from "./events.ts";
import { startCall } from "./tool_call.ts";
import { logCall } from "./tool_part.ts";
import { coreTool } from "./tools/core.ts";

/** What a batch of calls came to. */
export interface BatchResult {
  /** The tool messages for the next round, one per call, in order. */
  messages: ChatMessage[];
  calls: ResultToolCall[];
  /** A tool ended the loop. */
  stop: boolean;
  /** Every call of the batch was refused. */
  refused: boolean;
}

/**
 * Runs the calls of one reply: each through preparation, the policy and the audit, then the tool.
 * Neighbouring calls that only read run side by side; results are logged and returned in order.
 */
export async function* runCalls(
  calls: WireToolCall[],
  scope: CallScope,
): AsyncGenerator<TurnEvent, BatchResult> {
  const result: BatchResult = { messages: [], calls: [], stop: false, refused: true };
  const events = new EventQueue();
  for (const group of groups(calls, scope)) {
    const running = [];
    for (const { call, prepared } of group) {
      await refineArgument(prepared, scope);
      yield announce(call, prepared, scope);
      const started = yield* startCall(prepared, { ...scope, events });
      running.push({ call, prepared, ...started });
    }
    for (const { call, prepared, granted, outcome: pending } of running) {
      const outcome = yield* events.during(pending);
      const name = prepared.ok ? prepared.tool.name : prepared.name;
      await logCall(name, prepared.args, outcome, scope);
      result.messages.push({ role: "tool", tool_call_id: call.id, content: outcome.output });
      result.calls.push({ name, arguments: prepared.args, is_error: outcome.is_error });
      result.refused &&= !granted || isRefusal(prepared, outcome);
      result.stop ||= granted && prepared.ok && prepared.tool.loop === "stop" && !outcome.is_error;
      yield {
        type: "tool_result",
        run: scope.run,
        id: call.id,
        name,
        ...outcome,
        echo: prepared.ok && prepared.tool.echo === true,
      };
    }
  }
  return result;
}

interface PreparedCall {
  call: WireToolCall;
  prepared: Prepared;
}

/** Calls that run side by side at most: each may hold open files and a whole result. */
const MAX_BESIDE = 16;

/**
 * Consecutive calls that may run side by side form a group, and so do those that start agents; every other
 * call is a group alone.
 */
function groups(calls: WireToolCall[], scope: CallScope): PreparedCall[][] {
  const result: PreparedCall[][] = [];
  let most = 1;
  for (const call of calls) {
    const prepared = prepareCall(scope.tools, (tool) => scope.policy.offers(tool), call.function);
    const before = most;
    most = prepared.ok ? mostBeside(prepared.tool, scope.config) : 1;
    const last = result.at(-1);
    if (most === before && last !== undefined && last.length < most) last.push({ call, prepared });
    else result.push([{ call, prepared }]);
  }
  return result;
}

/** How many calls like this one run side by side at most. */
function mostBeside(tool: ToolDefinition, config: ConfigView): number {
  if (coreTool(tool)?.name === "delegate") return config.get("delegate.max_parallel");
  return tool.parallel ?? ["read", "list", "web"].includes(tool.permission) ? MAX_BESIDE : 1;
}

/** Puts the query of a search as the model would, where `query_refine` wants it. */
async function refineArgument(prepared: Prepared, scope: CallScope): Promise<void> {
  const name = prepared.ok ? prepared.tool.refine : undefined;
  if (name === undefined || !scope.config.get("query_refine")) return;
  const query = prepared.args[name];
  if (typeof query !== "string") return;
  const { refineQuery } = await import("./refine.ts");
  prepared.args[name] = await refineQuery(query, scope);
}

function announce(call: WireToolCall, prepared: Prepared, scope: CallScope): TurnEvent {
  return {
    type: "tool_call",
    run: scope.run,
    id: call.id,
    name: prepared.ok ? prepared.tool.name : prepared.name,
    arguments: prepared.args,
    category: prepared.ok ? prepared.tool.permission : "",
    status: prepared.ok ? activityLine(prepared.tool, prepared.args) : "",
  };
}

/** An ask that brought nothing: an agent that asks and is refused in turn would never be stopped. */
function isRefusal(prepared: Prepared, { is_error }: ToolOutcome): boolean {
  return is_error && prepared.ok && coreTool(prepared.tool)?.name === "ask";
}
