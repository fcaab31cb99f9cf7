import { type Span, startSpan, within } from "../platform/trace.ts";
import type {
  ChatMessage,
  ChatOptions,
  Provider,
  StreamEvent,
  ToolArguments,
  ToolDefinition,
  Usage,
  WireToolCall,
} from "../plugins/api.ts";
import type { ToolOutcome } from "../tools/execute.ts";
import type { TurnEvent } from "./events.ts";
import type { AgentScope } from "./scope.ts";

/** The events of a turn, which is a span where telemetry is exported. */
export function tracedTurn(
  { session, provider, runs, run }: AgentScope,
  prompt: string,
  events: AsyncGenerator<TurnEvent, void>,
): AsyncGenerator<TurnEvent, void> {
  const role = runs.resolve(`#${run}`)?.role || "svc";
  const span = startSpan(`invoke_agent ${role}`, {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": role,
    "gen_ai.conversation.id": session.name,
    ...modelAttributes(provider),
  });
  if (span === undefined) return events;
  return (async function* () {
    let failure: string | undefined = "cancelled";
    span.setContent("gen_ai.input.messages", () => [{ role: "user", content: prompt }]);
    try {
      for await (const event of within(span, events)) {
        if (event.type === "turn_started" && event.run === run) {
          span.set({ "svc.turn": event.index });
        }
        if (event.type === "turn_finished" && event.run === run) {
          const { status, reason, content, total_usage } = event.result;
          span.set({ "svc.status": status, ...usageAttributes(total_usage) });
          span.setContent("gen_ai.output.messages", () => [{ role: "assistant", content }]);
          failure = status === "ok" || status === "truncated" ? undefined : reason || status;
        }
        yield event;
      }
    } finally {
      span.end(failure);
    }
  })();
}

/** `provider.chat`, as a span where telemetry is exported. */
export function tracedChat(
  provider: Provider,
  messages: ChatMessage[],
  options: ChatOptions,
): AsyncGenerator<StreamEvent> {
  const span = chatSpan(provider, messages);
  const events = provider.chat(messages, options);
  if (span === undefined) return events;
  return (async function* () {
    let failure: string | undefined = "cancelled";
    let content = "";
    const tool_calls: WireToolCall[] = [];
    try {
      for await (const event of within(span, events)) {
        if (event.type === "token") content += event.content;
        else if (event.type === "tool_calls") tool_calls.push(...event.tool_calls);
        else if (event.type === "error") failure = event.kind ?? String(event.code);
        else if (event.type === "done") {
          if (failure === "cancelled") failure = undefined;
          span.set({
            "gen_ai.response.finish_reasons": [event.reason],
            ...usageAttributes(event.usage),
          });
        }
        yield event;
      }
      span.setContent("gen_ai.output.messages", () => [{ role: "assistant", content, tool_calls }]);
    } finally {
      span.end(failure);
    }
  })();
}

/** `provider.chat_nonstreaming`, as a span where telemetry is exported. */
export async function tracedAsk(
  provider: Provider,
  messages: ChatMessage[],
  options: ChatOptions,
): Promise<string> {
  const span = chatSpan(provider, messages);
  if (span === undefined) return await provider.chat_nonstreaming(messages, options);
  const spend = (usage: Usage) => {
    span.set(usageAttributes(usage));
    options.spend?.(usage);
  };
  let failure: string | undefined = "error";
  try {
    const content = await span.run(() =>
      provider.chat_nonstreaming(messages, { ...options, spend })
    );
    span.setContent("gen_ai.output.messages", () => [{ role: "assistant", content }]);
    failure = undefined;
    return content;
  } finally {
    span.end(failure);
  }
}

/** A call of a tool, as a span where telemetry is exported. The agents that it starts are a part of it. */
export async function tracedTool(
  { name }: ToolDefinition,
  args: ToolArguments,
  id: string,
  call: () => Promise<ToolOutcome>,
): Promise<ToolOutcome> {
  const span = startSpan(`execute_tool ${name}`, {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": name,
    "gen_ai.tool.call.id": id,
    "gen_ai.tool.type": "function",
  });
  if (span === undefined) return await call();
  let failure: string | undefined = "error";
  try {
    const outcome = await span.run(call);
    span.setContent("gen_ai.tool.call.arguments", () => args);
    span.setContent("gen_ai.tool.call.result", () => outcome.output);
    if (!outcome.is_error) failure = undefined;
    return outcome;
  } finally {
    span.end(failure);
  }
}

function chatSpan(provider: Provider, messages: ChatMessage[]): Span | undefined {
  const span = startSpan(`chat ${provider.model}`, {
    "gen_ai.operation.name": "chat",
    ...modelAttributes(provider),
  }, { client: true });
  span?.setContent("gen_ai.input.messages", () => messages);
  return span;
}

function modelAttributes({ name, model }: Provider) {
  return { "gen_ai.provider.name": name, "gen_ai.request.model": model };
}

function usageAttributes({ prompt_tokens, completion_tokens, cached_tokens }: Usage) {
  return {
    "gen_ai.usage.input_tokens": prompt_tokens,
    "gen_ai.usage.output_tokens": completion_tokens,
    "gen_ai.usage.cache_read.input_tokens": cached_tokens,
  };
}
