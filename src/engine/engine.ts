import type {
  ChatMessage,
  ConfigView,
  Provider,
  ToolDefinition,
  Usage,
  WireTool,
} from "../plugins/api.ts";
import type { Clock } from "../platform/clock.ts";
import { errorMessage } from "../platform/error.ts";
import type { Grants } from "../policy/gate.ts";
import type { Operator } from "../policy/operator.ts";
import { Policy } from "../policy/policy.ts";
import type { PolicySettings } from "../policy/settings.ts";
import type { WorktreeGuard } from "../policy/worktree.ts";
import type { Session, TurnLog } from "../sessions/session.ts";
import type { ToolRegistry } from "../tools/registry.ts";
import { runCalls } from "./calls.ts";
import { directCall } from "./direct_call.ts";
import type { ResultToolCall, TurnEvent, TurnResult } from "./events.ts";
import type { Agents } from "./agents/agents.ts";
import { coreTool } from "./tools/core.ts";
import { historyMessages } from "./messages.ts";
import { type AgentPrompt, systemPrompt } from "./prompt.ts";
import type { Questions } from "./questions/questions.ts";
import type { RunRegistry } from "./agents/runs.ts";
import { addUsage, type Reply, streamReply } from "./reply.ts";

/** Rounds in which every call was refused, after which the loop stops (specification 5.3.7). */
const REFUSAL_CAP = 3;

const NO_ROLE: AgentPrompt = { identity: "", skills: "", memory: "" };

/** Everything one agent needs; front ends and drive engines assemble it from a workspace. */
export interface EngineOptions {
  /** Real absolute path. */
  worktree: string;
  config: ConfigView;
  clock: Clock;
  tools: ToolRegistry;
  guard: WorktreeGuard;
  settings: PolicySettings;
  /** What the agent can be granted at most. */
  limit: PolicySettings;
  /** What was approved for the rest of the session; an engine that takes another's place goes on with it. */
  grants: Grants;
  operator: Operator;
  /** Where what the agent asks goes. */
  questions: Questions;
  /** True when no human can approve calls: the prompt then names what will be refused. */
  headless: boolean;
  provider: Provider;
  session: Session;
  /** What the agent's role brings to the system prompt. Default: nothing. */
  role?: AgentPrompt;
  /** A job's sections of the system prompt; they stand in for the configured and the built-in one. */
  job?: string[];
  /** Where this agent's run is registered (specification 2.5), and the run's number there. */
  runs: RunRegistry;
  run: number;
  /** Starts agents under this one. */
  agents: Agents;
}

/** One agent on one session. Turns run one after another. */
export class Engine {
  readonly #options: Required<Omit<EngineOptions, "job">> & Pick<EngineOptions, "job">;
  readonly #policy: Policy;
  /** The conversation up to and including turn `#known`, so that it is not read again every turn. */
  #messages: ChatMessage[] = [];
  #known = 0;

  constructor(options: EngineOptions) {
    this.#options = { ...options, role: options.role ?? NO_ROLE };
    this.#policy = new Policy(options.settings, options.guard, options.config, options.limit);
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
      const messages = await this.#conversation(prompt, log.index, tell);
      yield* pending.splice(0);
      yield* this.#loop(messages, log, state, either);
      this.#messages = messages.slice(1);
      this.#known = log.index;
      end(state.status);
    } catch (error) {
      if (either.aborted) {
        end("cancelled");
      } else {
        const failure = { code: 0, message: errorMessage(error) };
        state.errors.push(failure);
        state.status = "error";
        try {
          if (log !== undefined) session.recordError(failure.code, failure.message);
          end("error");
        } catch {
          ended = true; // the log itself cannot be written; the result still says why
        }
      }
    } finally {
      // Reached with a turn still open when the consumer leaves the iteration.
      closing.abort(new DOMException("The turn was left.", "AbortError"));
      try {
        end("cancelled");
      } catch {
        ended = true;
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
  call(
    text: string,
    call: { name: string; arguments: string },
    { signal }: { signal: AbortSignal },
  ): AsyncGenerator<TurnEvent, void> {
    return directCall(text, call, { ...this.#options, policy: this.#policy, signal });
  }

  /** Releases the provider. The session stays open: it belongs to whoever opened it. */
  async close(): Promise<void> {
    await this.#options.provider.close?.();
  }

  /** The messages of this turn's first request; the system prompt is always the first. */
  async #conversation(
    prompt: string,
    index: number,
    warn: (message: string) => void,
  ): Promise<ChatMessage[]> {
    if (index !== this.#known + 1) {
      const turns = this.#options.session.document().turns;
      this.#messages = historyMessages(turns.filter((turn) => turn.index < index));
    }
    const { worktree, guard, config, settings, tools, headless, role, job } = this.#options;
    const offered = tools.list().filter((tool) => this.#policy.offers(tool));
    const refused = headless ? this.#policy.refusedWithoutApproval(offered) : [];
    const obtainable = offered.some(({ name }) => name === "ask")
      ? this.#options.questions.obtainable(tools.list().map(({ permission }) => permission))
      : [];
    const has = (name: string) =>
      offered.some((tool) => coreTool(tool)?.name === name && !refused.includes(tool.permission));
    const others = await this.#options.agents.directory({
      delegate: has("delegate"),
      team: has("team"),
    });
    const system = systemPrompt({
      worktree,
      guard,
      config,
      mode: settings.mode,
      role,
      job,
      others,
      refused,
      obtainable,
      warn,
    });
    return [
      { role: "system", content: system },
      ...this.#messages,
      { role: "user", content: prompt },
    ];
  }

  /** Rounds of one stream each, until the model answers without calling a tool. */
  async *#loop(
    messages: ChatMessage[],
    log: TurnLog,
    state: TurnState,
    signal: AbortSignal,
  ): AsyncGenerator<TurnEvent> {
    const { tools, session, run } = this.#options;
    const most: number = this.#options.config.get("max_rounds");
    let refusals = 0;
    for (let round = 1;; round++) {
      const schema = tools.schema((tool) => this.#offers(tool));
      const reply = yield* this.#reply(messages, schema, log, state, signal);
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
      const batch = yield* runCalls(reply.tool_calls, {
        ...this.#options,
        policy: this.#policy,
        log,
        signal,
      });
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

  #offers(tool: ToolDefinition): boolean {
    return this.#policy.offers(tool) ||
      (this.#options.grants.has(tool.permission) && this.#policy.offers(tool, true));
  }

  /** One reply, its events, and its parts in the log, also when it is cancelled half-way. */
  async *#reply(
    messages: ChatMessage[],
    tools: WireTool[],
    log: TurnLog,
    state: TurnState,
    signal: AbortSignal,
  ): AsyncGenerator<TurnEvent, Reply> {
    const { provider, clock, config, run } = this.#options;
    let thinking = "";
    let content = "";
    const keep = () => {
      if (thinking !== "") {
        log.append({ type: "thinking", text: thinking });
        state.thinking.push(thinking);
      }
      if (content !== "") log.append({ type: "text", text: content });
      state.content = content;
    };
    const stream = streamReply({
      provider,
      messages,
      tools,
      signal,
      clock,
      settings: {
        stream_retries: config.get("stream_retries"),
        stream_retry_delay: config.get("stream_retry_delay"),
        auto_continue: config.get("auto_continue"),
        auto_continue_max: config.get("auto_continue_max"),
        max_tokens: config.get("max_tokens"),
      },
    });
    let kept = false;
    try {
      while (true) {
        const { done, value } = await stream.next();
        if (done) {
          addUsage(state.usage, value.usage);
          ({ thinking, content } = value);
          kept = true;
          keep();
          if (Object.keys(value.usage).length > 0) yield { type: "usage", run, usage: value.usage };
          return value;
        }
        if (value.type === "notice") {
          yield { type: "notice", run, level: "warning", message: value.message };
        } else {
          if (value.type === "thinking") thinking += value.content;
          else content += value.content;
          yield { type: value.type, run, content: value.content };
        }
      }
    } finally {
      if (!kept) keep();
      await stream.return(undefined as never);
    }
  }
}

interface TurnState {
  status: TurnResult["status"];
  content: string;
  thinking: string[];
  calls: ResultToolCall[];
  errors: { code: number; message: string }[];
  usage: Usage;
}

function assistantMessage(reply: Reply): ChatMessage {
  return {
    role: "assistant",
    content: reply.content === "" ? null : reply.content,
    ...(reply.thinking === "" ? {} : { reasoning_content: reply.thinking }),
    ...(reply.tool_calls.length === 0 ? {} : { tool_calls: reply.tool_calls }),
  };
}
