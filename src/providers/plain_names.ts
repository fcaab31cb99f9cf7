import type { ChatMessage, StreamEvent, WireTool } from "../plugins/api.ts";
import type { BackendError } from "./failure.ts";

/** Tool names that every backend accepts. */
const PLAIN = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * Tool names for backends that accept only letters, digits, `_` and `-`. Tools of MCP servers have a dot in
 * their names (specification 4.3). Each request has its own instance, which also restores the original names
 * in the backend's tool calls.
 */
export class PlainNames {
  readonly #plain = new Map<string, string>();
  readonly #original = new Map<string, string>();

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
      this.#original.set(plain, name);
    }
  }

  tools(tools: WireTool[] | undefined): WireTool[] | undefined {
    return tools?.map((tool) => ({
      ...tool,
      function: { ...tool.function, name: this.#plainName(tool.function.name) },
    }));
  }

  messages(messages: ChatMessage[]): ChatMessage[] {
    return messages.map((message) =>
      message.tool_calls === undefined ? message : {
        ...message,
        tool_calls: message.tool_calls.map((call) => ({
          ...call,
          function: { ...call.function, name: this.#plainName(call.function.name) },
        })),
      }
    );
  }

  event(event: StreamEvent): StreamEvent {
    if (event.type !== "tool_calls") return event;
    const tool_calls = event.tool_calls.map((call) => {
      const name = this.#original.get(call.function.name) ?? call.function.name;
      return { ...call, function: { ...call.function, name } };
    });
    return { ...event, tool_calls };
  }

  /** Also for tools that were called before and are not offered any more. */
  #plainName(name: string): string {
    return this.#plain.get(name) ?? (PLAIN.test(name) ? name : shortened(name));
  }
}

/**
 * Whether a request was rejected because of a tool's name. Gateways and local servers can be as strict as
 * the vendors behind them, and only their answer shows it.
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
