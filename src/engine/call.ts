import { runProcess } from "../platform/process.ts";
import type {
  ChatMessage,
  ConfigView,
  ToolArguments,
  ToolContext,
  ToolDefinition,
  ToolPaths,
  WireToolCall,
} from "../plugins/api.ts";
import { authorize } from "../policy/gate.ts";
import { runTool, type ToolOutcome } from "../tools/execute.ts";
import { prepareCall, type Prepared } from "../tools/prepare.ts";
import { activityLine } from "../tools/registry.ts";
import type { CallScope } from "./call_scope.ts";
import { EventQueue, type ResultToolCall, type TurnEvent } from "./events.ts";
import { type CoreContext, coreTool } from "./tools/core.ts";

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
  const { refineQuery } = await import("./search.ts");
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

/** Writes the tool part, with the output as the log's settings want it (specification 2.13, 8). */
export async function logCall(
  name: string,
  input: ToolArguments,
  outcome: ToolOutcome,
  scope: CallScope,
): Promise<void> {
  const { config } = scope;
  let analysis = "";
  if (config.get("tool_analysis")) {
    const { analyse } = await import("./call.ts");
    analysis = await analyse(name, input, outcome, scope);
  }
  scope.log.append({
    type: "tool",
    name,
    input,
    output: loggedOutput(name, outcome, config),
    is_error: outcome.is_error,
    ...(analysis === "" ? {} : { analysis }),
  });
}

function loggedOutput(name: string, outcome: ToolOutcome, config: ConfigView): string {
  const { output, is_error } = outcome;
  const noise: string[] = config.get("noise_tools");
  if (noise.includes(name) && !is_error) {
    return `[${name} result excluded from log, see tool call above for parameters]`;
  }
  const cap: number = config.get("session_tool_max_chars");
  if (cap <= 0 || output.length <= cap) return output;
  return `${output.slice(0, cap).toWellFormed()}… (truncated from ${output.length} chars)`;
}

const LONGEST_OUTPUT = 4000;

/**
 * One line of insight on a tool result, asked of the model itself (`tool_analysis`). Empty when the
 * model cannot be asked: an analysis is never worth failing a turn.
 */
export async function analyse(
  name: string,
  input: ToolArguments,
  outcome: ToolOutcome,
  { provider, signal, spend }: Pick<CallScope, "provider" | "signal" | "spend">,
): Promise<string> {
  const question =
    `A tool was called: ${name} ${JSON.stringify(input)}. Its result follows. Say in ` +
    `one short line what it tells.\n\n${outcome.output.slice(0, LONGEST_OUTPUT)}`;
  try {
    const answer = await provider.chat_nonstreaming([{ role: "user", content: question }], {
      signal,
      spend,
    });
    return answer.trim().split("\n")[0]!.trim();
  } catch {
    return "";
  }
}
