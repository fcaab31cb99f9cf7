import type { Clock } from "../platform/clock.ts";
import { errorMessage } from "../platform/error.ts";
import type {
  ChatMessage,
  Provider,
  SearchService,
  ToolDefinition,
  Usage,
  WireToolCall,
} from "../plugins/api.ts";
import type { Grants } from "../policy/gate.ts";
import type { Operator } from "../policy/operator.ts";
import { actionOf, Policy } from "../policy/policy.ts";
import type { PolicySettings } from "../policy/settings.ts";
import type { TurnLog } from "../sessions/session.ts";
import { sendableArguments } from "../tools/prepare.ts";
import type { ToolRegistry } from "../tools/registry.ts";
import { runCalls } from "./call.ts";
import type { CallScope } from "./call_scope.ts";
import { ProviderContext, type ProviderContextOptions } from "./context.ts";
import type { ResultToolCall, TurnEvent, TurnResult } from "./events.ts";
import { addUsage, loggedReply, type Reply } from "./reply.ts";
import type { RunRegistry } from "./runs.ts";

/** Everything one agent needs; `agentEngine` assembles it from a workspace. */
export interface EngineOptions extends ProviderContextOptions {
  clock: Clock;
  tools: ToolRegistry;
  /** What the agent can be granted at most. */
  limit: PolicySettings;
  /** What was approved for the rest of the session; an engine that takes another's place goes on with it. */
  grants: Grants;
  operator: Operator;
  provider: Provider;
  /** Called when a turn begins, which uses the provider. */
  used: () => void;
  /** Where this agent's run is registered (specification 2.5), and the run's number there. */
  runs: RunRegistry;
  run: number;
  /** The stored key of a name, if it was stored for the address; see `ToolContext`. */
  key: (name: string, address: string) => string;
  /** What searches the web before a turn (`web_search`). Default: nothing ever is. */
  search?: () => SearchService | undefined;
}

/** One agent on one session. Turns run one after another. */
export class Engine {
  readonly #options: EngineOptions;
  readonly #policy: Policy;
  readonly #context: ProviderContext;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#policy = new Policy(options.settings, options.guard, options.config, options.limit);
    this.#context = new ProviderContext(options, this.#policy);
  }

  /**
   * Runs one turn and yields what happens (specification 6.2). The last event is `turn_finished`.
   * Aborting the signal, or leaving the iteration, cancels the turn and its child processes; what was
   * produced is kept in the log with status `cancelled`.
   */
  async *turn(
    prompt: string,
    { signal }: { signal?: AbortSignal } = {},
  ): AsyncGenerator<TurnEvent, void> {
    const { runs, run } = this.#options;
    runs.resume(run, { task: prompt });
    try {
      for await (const event of this.#turn(prompt, signal)) {
        if (event.run === run) runs.record(event); // those of other runs have been, where they began
        if (event.type === "turn_finished" && event.run === run) {
          runs.finish(run, event.result.status);
        }
        yield event;
      }
    } finally {
      this.#options.grants.endTurn();
      runs.finish(run, "cancelled"); // when the consumer left
    }
  }

  async *#turn(prompt: string, signal?: AbortSignal): AsyncGenerator<TurnEvent, void> {
    const { session, provider, clock, run, settings, config } = this.#options;
    const closing = new AbortController();
    const either = signal ? AbortSignal.any([signal, closing.signal]) : closing.signal;
    const started = clock.now();
    const pending: TurnEvent[] = [];
    const tell = (message: string) =>
      pending.push({ type: "notice", run, level: "warning", message });
    const state: TurnState = {
      status: "error",
      content: "",
      thinking: [],
      calls: [],
      errors: [],
      usage: {},
    };
    const spend = (usage: Usage) => addUsage(state.usage, usage);
    let log: TurnLog | undefined;
    let ended = false;
    const end = (status: TurnResult["status"]) => {
      if (ended) return;
      ended = true;
      state.status = status;
      log?.end(status);
    };
    try {
      const waiting = Promise.withResolvers<"waiting">();
      const acquired = session.acquireTurn(either, () => waiting.resolve("waiting"));
      acquired.catch(() => {}); // also when nobody is there any more to hear of it
      if (await Promise.race([acquired, waiting.promise]) === "waiting") {
        const message = `Session ${session.name} is busy with another turn; waiting for it.`;
        yield { type: "notice", run, level: "warning", message };
      }
      await acquired;
      log = session.beginTurn({
        model: provider.model,
        provider: provider.name,
        mode: settings.mode,
        reasoning: config.get("reasoning"),
      });
      this.#options.used();
      yield {
        type: "turn_started",
        run,
        session: session.name,
        index: log.index,
        model: provider.model,
        provider: provider.name,
        mode: settings.mode,
      };
      yield* pending.splice(0);
      log.append({ type: "user", text: prompt });
      const tools = await this.tools(either);
      const found = await this.#searchFirst(prompt, either, tell, spend);
      if (found !== "") log.append({ type: "system", text: found });
      const messages = await this.#context.messages(prompt, log.index, tools, tell);
      if (found !== "") messages.push({ role: "system", content: found });
      yield* pending.splice(0);
      yield* runRounds(messages, {
        ...this.#options,
        tools,
        policy: this.#policy,
        log,
        state,
        spend,
        signal: either,
      });
      this.#context.keep(messages, log.index);
      end(state.status);
    } catch (error) {
      if (!either.aborted) {
        const failure = { code: 0, message: errorMessage(error) };
        state.errors.push(failure);
        state.status = "error";
        try {
          if (log !== undefined) session.recordError(failure.code, failure.message);
        } catch {
          // The log itself cannot be written; the result still says why.
        }
      }
      try {
        end(either.aborted ? "cancelled" : "error"); // in any case: the next turn waits for that
      } catch (unwritten) {
        if (either.aborted) state.errors.push({ code: 0, message: errorMessage(unwritten) });
      }
    } finally {
      // Reached with a turn still open when the consumer leaves the iteration.
      closing.abort(new DOMException("The turn was left.", "AbortError"));
      try {
        end("cancelled");
      } catch {
        // Whoever opens the next turn closes this one.
      }
    }
    yield* pending.splice(0);
    for (const { message } of state.errors) yield { type: "notice", run, level: "error", message };
    yield {
      type: "turn_finished",
      run,
      result: {
        content: state.content,
        thinking: state.thinking.join("\n\n"),
        tool_calls: state.calls,
        errors: state.errors,
        duration: Math.max(0, clock.now() - started) / 1000,
        usage: state.usage,
        model: provider.model,
        provider: provider.name,
        session: session.name,
        status: state.status,
      },
    };
  }

  /** Runs one tool call that a person typed, as a turn of its own in the log. */
  async *call(
    text: string,
    call: { name: string; arguments: string },
    { signal }: { signal: AbortSignal },
  ): AsyncGenerator<TurnEvent, void> {
    const tools = await this.tools(signal);
    const { directCall } = await import("./turn.ts");
    yield* directCall(text, call, { ...this.#options, tools, policy: this.#policy, signal });
  }

  /** Releases the provider. The session stays open: it belongs to whoever opened it. */
  async close(): Promise<void> {
    await this.#options.provider.close?.();
  }

  /** The tools that a turn begun now has. Sources whose tools could not be called anyway are left alone. */
  tools(signal: AbortSignal): Promise<ToolRegistry> {
    const { tools, settings, headless, grants } = this.#options;
    const open = (category: string) => {
      const action = actionOf(settings, category);
      return action === "allow" || grants.has(category) || (action === "ask" && !headless);
    };
    return tools.forTurn(open, signal);
  }

  /** What the web says to a prompt, where the setting `web_search` wants to know. */
  #searchFirst(
    prompt: string,
    signal: AbortSignal,
    tell: (message: string) => void,
    spend: (usage: Usage) => void,
  ): Promise<string> | "" {
    const { search } = this.#options;
    if (search === undefined || !this.#options.config.get("web_search")) return "";
    const refusal = (probe: ToolDefinition, query: string) => {
      const { action, reason } = this.#policy.resolve(probe, { query });
      return action === "allow" ? "" : reason;
    };
    const scope = { ...this.#options, search: search(), refusal, signal, spend };
    return import("./search.ts").then(({ searchFirst }) => searchFirst(prompt, scope, tell));
  }
}

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
