import { relative } from "node:path";
import type {
  ConfigView,
  ToolArguments,
  ToolContext,
  ToolDefinition,
  ToolPaths,
  WireToolCall,
} from "../plugins/api.ts";
import { traceHeaders } from "../platform/trace.ts";
import type { Attachment, NewPart } from "../sessions/schema.ts";
import { type Authorization, authorize } from "../policy/gate.ts";
import { CONFINED } from "../policy/roles.ts";
import { runTool, type ToolOutcome } from "../tools/execute.ts";
import { prepareChecked, type Prepared, sendableArguments } from "../tools/prepare.ts";
import { activityLine } from "../tools/registry.ts";
import { mayChange } from "./changes.ts";
import { type DeniedCall, EventQueue, type ResultToolCall, type TurnEvent } from "./events.ts";
import type { HookedCall } from "./hooks.ts";
import { Progress } from "./progress.ts";
import type { Reply } from "./reply.ts";
import type { TurnScope } from "./scope.ts";
import { type AgentActions, type CoreContext, coreTool } from "./tools/core.ts";
import { tracedTool } from "./trace.ts";

/** The results of a batch of calls. */
interface BatchResult {
  calls: ResultToolCall[];
  /** A tool ended the loop. */
  stop: boolean;
  /** The labels of refused calls; see {@linkcode TurnResult.refused}. */
  refused: string[];
  /** See {@linkcode TurnResult.denied}; also the calls of agents that these calls started. */
  denied: DeniedCall[];
}

/**
 * Runs the calls of one reply: each through preparation, the policy and the audit, then the tool.
 * Neighbouring calls that only read run side by side; results are logged and returned in order.
 */
export async function* runCalls(
  reply: Pick<Reply, "tool_calls" | "origin">,
  scope: TurnScope,
): AsyncGenerator<TurnEvent, BatchResult> {
  const result: BatchResult = { calls: [], stop: false, refused: [], denied: [] };
  const events = new EventQueue();
  for (const group of await groups(reply.tool_calls, scope)) {
    const running = [];
    /** The place in the log when so many calls are announced and have no result. */
    const at = (pending: number) => `${scope.log.parts}${".c".repeat(pending)}`;
    for (const [i, { call, prepared: given }] of group.entries()) {
      await refineArgument(given, scope);
      const hooked = await scope.hooks?.call(call.id, given, prepareWith(scope)) ??
        { prepared: given };
      const { prepared } = hooked;
      yield { ...announce(call, prepared, scope), at: at(i + 1) };
      const { origin } = reply;
      const started = yield* startCall(
        { id: call.id, origin },
        hooked,
        scope,
        events,
        result.denied,
      );
      running.push({ call, prepared, ...started });
    }
    for (
      const [i, { call, prepared, granted, reason, images, outcome: pending }] of running.entries()
    ) {
      let outcome = yield* events.during(pending);
      if (scope.hooks !== undefined && granted && prepared.ok) {
        outcome = await scope.hooks.result(call.id, prepared.tool, prepared.args, outcome);
      }
      const name = prepared.ok ? prepared.tool.name : prepared.name;
      const { args } = prepared;
      await logCall(
        {
          name,
          input: args,
          call: callAsSent(call, name, args),
          ...images?.length && !outcome.is_error && { attachments: images },
        },
        outcome,
        scope,
        granted,
      );
      const category = prepared.ok ? prepared.tool.permission : "";
      scope.repetition?.add(name, args, { category, result: outcome.output });
      const refused = !granted || isRefusal(prepared, outcome);
      result.calls.push({ name, arguments: args, is_error: outcome.is_error, refused });
      if (refused && prepared.ok) {
        result.refused.push(`${name} (${prepared.tool.permission})`);
        result.denied.push({
          tool: name,
          reason: reason || outcome.output.replace(/^Error: /, ""),
        });
      }
      result.stop ||= granted && prepared.ok && prepared.tool.loop === "stop" && !outcome.is_error;
      yield {
        type: "tool_result",
        run: scope.agent.run,
        id: call.id,
        name,
        ...outcome,
        echo: prepared.ok && prepared.tool.echo === true,
        at: at(running.length - i - 1),
      };
    }
  }
  return result;
}

interface PreparedCall {
  call: WireToolCall;
  prepared: Prepared;
}

/** The most calls that run side by side: each may hold open files and a whole result. */
const MAX_PARALLEL = 16;

/**
 * Consecutive calls that may run side by side form a group, and so do those that start agents; every other
 * call is a group of its own.
 */
async function groups(calls: WireToolCall[], scope: TurnScope): Promise<PreparedCall[][]> {
  const result: PreparedCall[][] = [];
  let most = 1;
  for (const call of calls) {
    const prepared = await prepareWith(scope)(call.function);
    const before = most;
    most = prepared.ok ? maxParallel(prepared.tool, scope.agent.config) : 1;
    const last = result.at(-1);
    if (most === before && last !== undefined && last.length < most) last.push({ call, prepared });
    else result.push([{ call, prepared }]);
  }
  return result;
}

function prepareWith({ tools, policy }: TurnScope) {
  return (written: { name: string; arguments: string }) =>
    prepareChecked(tools, (tool) => policy.offers(tool), written);
}

/** How many neighbouring calls of a tool run side by side at most. */
function maxParallel(tool: ToolDefinition, config: ConfigView): number {
  const setting = coreTool(tool)?.parallel_setting;
  if (setting !== undefined) return config.get(setting);
  return tool.parallel ?? ["read", "list", "web"].includes(tool.permission) ? MAX_PARALLEL : 1;
}

/** Has the model rewrite the query of a search, where the setting `query_refine` is on. */
async function refineArgument(
  prepared: Prepared,
  { agent, signal }: TurnScope,
): Promise<void> {
  const name = prepared.ok ? prepared.tool.refine : undefined;
  if (name === undefined || !agent.config.get("query_refine")) return;
  const query = prepared.args[name];
  if (typeof query !== "string") return;
  const { refineQuery } = await import("./search.ts");
  prepared.args[name] = await refineQuery(query, {
    provider: agent.provider,
    signal,
  });
}

function announce(
  call: WireToolCall,
  prepared: Prepared,
  scope: TurnScope,
): TurnEvent & { type: "tool_call" } {
  return {
    type: "tool_call",
    run: scope.agent.run,
    id: call.id,
    name: prepared.ok ? prepared.tool.name : prepared.name,
    arguments: prepared.args,
    category: prepared.ok ? prepared.tool.permission : "",
    status: prepared.ok ? activityLine(prepared.tool, prepared.args) : "",
  };
}

/** An error that counts as a refusal, so that an agent that is refused again and again is stopped. */
function isRefusal(prepared: Prepared, { is_error }: ToolOutcome): boolean {
  return is_error && prepared.ok && coreTool(prepared.tool)?.error_refuses === true;
}

/** A call that runs, or one that was refused, for a reason. */
interface StartedCall {
  granted: boolean;
  reason?: string;
  /** The images that the tool has given so far, which are kept. */
  images?: Attachment[];
  outcome: Promise<ToolOutcome>;
}

/**
 * Authorizes a call, records the decision, and starts the tool where it is granted.
 *
 * @param denied gets the refused calls of agents that the call starts
 * @returns `granted` is false for a refusal; the outcome then says why
 */
async function* startCall(
  { id, origin }: { id: string; origin?: "text" },
  { prepared, refusal = "", demand = "" }: HookedCall,
  scope: TurnScope,
  events: EventQueue,
  denied: DeniedCall[],
): AsyncGenerator<TurnEvent, StartedCall> {
  // A call that cannot run is the model's mistake, not a refusal: the next one may be right.
  if (!prepared.ok) return { granted: true, outcome: Promise.resolve(failure(prepared.message)) };
  if (scope.result !== undefined && !scope.agent.meter.takeCall()) {
    return { granted: true, outcome: Promise.resolve(failure(NOT_RUN)) };
  }
  const { tool, args } = prepared;
  const { agent: { rights, session, sandbox, run, config, clock, mask, changes }, policy, signal } =
    scope;
  const core = coreTool(tool);
  const actions = core && agentActions(scope, events, denied);
  const contextAt = (paths: ToolPaths, environment?: Authorization["environment"]) =>
    toolContext(paths, environment, scope, actions);
  const authorization = await authorize({
    tool,
    args,
    policy,
    operator: scope.hooks?.watched(rights.operator) ?? rights.operator,
    grants: rights.grants,
    guard: rights.guard,
    refuse: async () => refusal || (await core?.refuse?.(args, actions!) ?? ""),
    demand: async () => demand || (await core?.demand?.(args, actions!) ?? ""),
    preview: (paths) => preview(tool, args, contextAt(paths)),
    run,
    session: session.name,
    signal,
  });
  const { reason, denial, granted, paths, environment } = authorization;
  const entry = { ...authorization.entry, ...(origin && { origin }) };
  const confined = granted && CONFINED.includes(tool.permission);
  session.recordPermission(
    confined ? { ...entry, sandbox: await sandbox.kind() ?? "none" } : entry,
  );
  if (authorization.noop) {
    return { granted: true, outcome: Promise.resolve(failure(authorization.message)) };
  }
  const shown = granted && !rights.headless && tool.permission === "edit" && entry.scope !== "once"
    ? await preview(tool, args, contextAt(paths, environment))
    : "";
  yield {
    type: "permission",
    run,
    tool: tool.name,
    action: entry.action,
    decision: entry.decision,
    path: entry.path ?? "",
    reason,
    ...shown !== "" && shown.length <= MAX_PREVIEW && { preview: shown },
  };
  if (!granted) {
    const outcome = Promise.resolve(failure(authorization.message));
    return { granted, reason: denial, outcome };
  }
  const agents = tool.permission === "delegate" || tool.permission === "team";
  if (agents || mayChange(tool, args)) await scope.checker?.beforeChange();
  await changes.before(tool, args, paths, session.name);
  const message = changes.warning();
  if (message !== "") yield { type: "notice", run, level: "warning", message };
  const set = config.get("tool_max_result_chars") || Infinity;
  const max_result_chars = async (length: number) =>
    Math.min(set, await scope.room?.(length) ?? Infinity);
  const keep = async (whole: string) =>
    relative(paths.worktree, await session.kept.keepText(whole));
  const progress = new Progress({
    clock,
    mask,
    emit: (piece) => events.push({ type: "tool_output", run, id, name: tool.name, ...piece }),
  });
  const images: Attachment[] = [];
  const most = await max_result_chars(0);
  const call = () => {
    const context: ToolContext = {
      ...contextAt(paths, environment),
      max_result: most,
      attach: async (name, image) => {
        const { imageAttachment } = await import("./attachments.ts");
        images.push(await session.kept.keep(imageAttachment(name, image)));
      },
      progress: (text) => progress.write(text),
      trace: traceHeaders(),
      ask: (questions, signal) =>
        (actions ?? agentActions(scope, events, denied)).askHuman(questions, signal),
    };
    return runTool(tool, args, context, { max_result_chars, clock, mask, keep });
  };
  const outcome = tracedTool(tool, args, id, call).finally(() => progress.end());
  return { granted, images, outcome };
}

/** Characters of the longest preview in an event. */
const MAX_PREVIEW = 200_000;

async function preview(
  tool: ToolDefinition,
  args: ToolArguments,
  context: ToolContext,
): Promise<string> {
  if (typeof tool.confirm !== "function") return "";
  try {
    return await tool.confirm(args, context);
  } catch {
    return ""; // the call itself reports what is wrong
  }
}

/** @param actions what a core tool gets in addition */
function toolContext(
  paths: ToolPaths,
  environment: Authorization["environment"],
  { agent: { config, session, sandbox, commands, key, changes }, policy, signal }: TurnScope,
  actions: AgentActions | undefined,
): ToolContext {
  const context: ToolContext = {
    config,
    paths: changes.watched(paths, session.name),
    signal,
    session: session.name,
    reads: policy.reads(),
    key,
    run: (request) => sandbox.run({ ...request, env: { ...request.env, ...environment } }, signal),
    commands: {
      start: (request) =>
        commands.start(session.name, { ...request, env: { ...request.env, ...environment } }),
      find: (id) => commands.of(session.name)?.find(id),
    },
  };
  return actions === undefined ? context : { ...context, agent: actions } as CoreContext;
}

function agentActions(
  { agent, tools, signal, models, hooks }: TurnScope,
  events: EventQueue,
  denied: DeniedCall[],
) {
  const categories = [...new Set(tools.list().map(({ permission }) => permission))];
  const emit = (event: TurnEvent) => {
    const human = event.type === "ask" || event.type === "ask_routed" && event.to === "human";
    if (human && event.run === agent.run) hooks?.ask(event.question);
    events.push(event);
  };
  const deny = (calls: DeniedCall[]) => void denied.push(...calls);
  const { quota_wait } = models ?? {};
  return agent.links.actions(categories, {
    signal,
    emit,
    deny,
    quota_wait,
    meter: agent.meter,
  });
}

const NOT_RUN = "Error: not run: no further tool call is allowed by the budget of this run.";

/** The result of a call that did not run. `[cancelled] ...` is no error (specification 7.3). */
function failure(message: string): ToolOutcome {
  return { output: message, is_error: message.startsWith("Error:"), note: "", duration: 0 };
}

type ToolPart = Extract<NewPart, { type: "tool" }>;

/** What a later request needs to repeat a call byte for byte. */
function callAsSent(
  { id, extra_content, function: sent }: WireToolCall,
  name: string,
  input: ToolArguments,
): ToolPart["call"] {
  const given = sendableArguments(sent.arguments);
  return {
    id,
    ...(sent.name !== name && { name: sent.name }),
    ...(given !== JSON.stringify(input) && { arguments: given }),
    ...(extra_content && { extra_content }),
  };
}

/**
 * Writes the tool part of the log (specification 2.13, 8). The model is sent the whole output, by later processes too.
 *
 * @param granted whether the call was not refused; a refusal is logged as it is
 */
async function logCall(
  part: Pick<ToolPart, "name" | "input" | "call" | "attachments">,
  outcome: ToolOutcome,
  scope: TurnScope,
  granted: boolean,
): Promise<void> {
  const { config } = scope.agent;
  const { name } = part;
  const { output, is_error } = outcome;
  const noise: string[] = config.get("noise_tools");
  const leftOut = granted && !is_error && noise.includes(name);
  const analysis = granted && config.get("tool_analysis")
    ? await analyse(name, part.input, outcome, scope)
    : "";
  const logged = {
    ...part,
    type: "tool" as const,
    output: leftOut
      ? `[${name} result excluded from log, see tool call above for parameters]`
      : granted
      ? cutOutput(output, config.get("session_tool_max_chars"))
      : output,
    is_error,
    ...(analysis === "" ? {} : { analysis }),
  };
  scope.log.append(logged, output, logged.output !== output);
}

/** An output cut at `session_tool_max_chars`; 0 means unlimited. */
function cutOutput(output: string, cap: number): string {
  if (cap <= 0 || output.length <= cap) return output;
  return `${output.slice(0, cap).toWellFormed()}… (truncated from ${output.length} chars)`;
}

const LONGEST_OUTPUT = 4000;

/**
 * One line of insight on a tool result, asked of the model itself (`tool_analysis`). Empty when the
 * model cannot be asked: a failed analysis does not fail the turn.
 */
async function analyse(
  name: string,
  input: ToolArguments,
  outcome: ToolOutcome,
  { agent: { provider }, signal }: TurnScope,
): Promise<string> {
  const question =
    `A tool was called: ${name} ${JSON.stringify(input)}. Its result follows. Say in ` +
    `one short line what it tells.\n\n${outcome.output.slice(0, LONGEST_OUTPUT)}`;
  try {
    const answer = await provider.chat_nonstreaming([{ role: "user", content: question }], {
      signal,
      purpose: "analysis",
    });
    return answer.trim().split("\n")[0]!.trim();
  } catch {
    return "";
  }
}
