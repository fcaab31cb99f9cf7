import type { ChatMessage, WireTool } from "../plugins/api.ts";
import type { TurnEvent } from "./events.ts";
import { addUsage, type Reply, streamReply } from "./reply.ts";
import type { RoundScope } from "./rounds.ts";

/** One reply, its events, and its parts in the log, also when it is cancelled half-way. */
export async function* loggedReply(
  messages: ChatMessage[],
  tools: WireTool[],
  scope: RoundScope,
): AsyncGenerator<TurnEvent, Reply> {
  const { provider, clock, config, run, log, state, signal } = scope;
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
      retry_budget: config.get("retry_budget"),
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
        yield { ...value, run, level: "warning" };
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
