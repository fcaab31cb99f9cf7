import type { ChatMessage, StreamEvent, WireTool } from "../plugins/api.ts";
import type { BackendError } from "./failure.ts";

/** What the strictest backends take for a tool's name. */
const PLAIN = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * Names of tools for backends that take letters, digits, `_` and `-` alone: the tools of MCP servers have a
 * dot in theirs (specification 4.3). One for each request; what the backend calls gets its own name back.
 */
export class PlainNames {
  readonly #plain = new Map<string, string>();
  readonly #own = new Map<string, string>();

  constructor(tools: WireTool[] = []) {
    const names = tools.map((tool) => tool.function.name);
    const taken = new Set(names.filter((name) => PLAIN.test(name)));
    for (const name of names) {
      if (taken.has(name)) continue;
      const base = shortened(name);
      let plain = base;
      for (let n = 2; taken.has(plain); n++) plain = `${base.slice(0, 60)}_${n}`;
      taken.add(plain);
      this.#plain.set(name, plain);
      this.#own.set(plain, name);
    }
  }

  tools(tools: WireTool[] | undefined): WireTool[] | undefined {
    return tools?.map((tool) => ({
      ...tool,
      function: { ...tool.function, name: this.#of(tool.function.name) },
    }));
  }

  messages(messages: ChatMessage[]): ChatMessage[] {
    return messages.map((message) =>
      message.tool_calls === undefined ? message : {
        ...message,
        tool_calls: message.tool_calls.map((call) => ({
          ...call,
          function: { ...call.function, name: this.#of(call.function.name) },
        })),
      }
    );
  }

  event(event: StreamEvent): StreamEvent {
    if (event.type !== "tool_calls") return event;
    const tool_calls = event.tool_calls.map((call) => {
      const name = this.#own.get(call.function.name) ?? call.function.name;
      return { ...call, function: { ...call.function, name } };
    });
    return { ...event, tool_calls };
  }

  /** Also of a tool that was called before and is offered no more. */
  #of(name: string): string {
    return this.#plain.get(name) ?? (PLAIN.test(name) ? name : shortened(name));
  }
}

/**
 * Whether a request was rejected for a tool's name: gateways and servers behind an address of one's own
 * are as strict as the vendors behind them, and only their answer tells.
 */
export function wantsPlainNames(
  { status, message }: BackendError,
  messages: ChatMessage[],
  tools: WireTool[] = [],
): boolean {
  if (status !== 400 && status !== 422) return false;
  if (!/name/i.test(message) || !/pattern|expression|a-z/i.test(message)) return false;
  const called = messages.flatMap(({ tool_calls = [] }) => tool_calls);
  return [...tools, ...called].some((each) => !PLAIN.test(each.function.name));
}

function shortened(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "_";
}
