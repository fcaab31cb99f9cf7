import type { ToolArguments, ToolContext, ToolDefinition, ToolPaths } from "../plugins/api.ts";
import { runProcess } from "../platform/process.ts";
import { authorize } from "../policy/gate.ts";
import { runTool, type ToolOutcome } from "../tools/execute.ts";
import type { Prepared } from "../tools/prepare.ts";
import type { CallScope } from "./call_scope.ts";
import type { EventQueue } from "./event_queue.ts";
import type { TurnEvent } from "./events.ts";
import { type CoreContext, coreTool } from "./tools/core.ts";

/** A scope with the events of its running tools. */
interface RunningScope extends CallScope {
  events: EventQueue;
}

/**
 * Takes a call through the policy and into the audit, and starts its tool where it may run.
 *
 * @returns `granted` is false for a refusal; the outcome then says why
 */
export async function* startCall(
  prepared: Prepared,
  scope: RunningScope,
): AsyncGenerator<TurnEvent, { granted: boolean; outcome: Promise<ToolOutcome> }> {
  // A call that cannot run is the model's mistake, not a refusal: it may well do better next time.
  if (!prepared.ok) return { granted: true, outcome: Promise.resolve(failure(prepared.message)) };
  const { tool, args } = prepared;
  const { policy, guard, grants, operator, session, run, signal } = scope;
  const authorization = await authorize({
    tool,
    args,
    policy,
    operator,
    grants,
    guard,
    refuse: () => coreTool(tool)?.refuse?.(args, scope.agents) ?? Promise.resolve(""),
    demand: () => coreTool(tool)?.demand?.(args, scope.agents) ?? Promise.resolve(""),
    preview: (paths) => preview(tool, args, toolContext(tool, paths, scope)),
    run,
    session: session.name,
    signal,
  });
  const { entry, reason, granted, paths } = authorization;
  if (authorization.noop) {
    return { granted: true, outcome: Promise.resolve(failure(authorization.message)) };
  }
  session.recordPermission(entry);
  yield {
    type: "permission",
    run,
    tool: tool.name,
    action: entry.action,
    decision: entry.decision,
    path: entry.path,
    reason,
  };
  if (!granted) return { granted, outcome: Promise.resolve(failure(authorization.message)) };
  const options = {
    max_result_chars: scope.config.get("tool_max_result_chars"),
    clock: scope.clock,
  };
  return { granted, outcome: runTool(tool, args, toolContext(tool, paths, scope), options) };
}

async function preview(
  tool: ToolDefinition,
  args: ToolArguments,
  context: ToolContext,
): Promise<string> {
  if (typeof tool.confirm !== "function") return "";
  try {
    return await tool.confirm(args, context);
  } catch {
    return ""; // the call itself will say what is wrong
  }
}

function toolContext(tool: ToolDefinition, paths: ToolPaths, scope: RunningScope): ToolContext {
  const { config, signal, session, clock, run, runs, tools, questions, agents, events, key } =
    scope;
  const { spend } = scope;
  const context: ToolContext = {
    config,
    paths,
    signal,
    session: session.name,
    reads: scope.policy.reads(),
    key,
    run: (request) => runProcess(request, signal, clock),
  };
  if (coreTool(tool) === undefined) return context;
  const categories = [...new Set(tools.list().map(({ permission }) => permission))];
  const emit = (event: TurnEvent) => events.push(event);
  const agent = { run, runs, questions, categories, agents, emit, spend };
  return { ...context, agent } as CoreContext;
}

function failure(message: string): ToolOutcome {
  return { output: message, is_error: true, note: "", duration: 0 };
}
