import {
  type DemoServer,
  type DemoServerOptions,
  type RecordedRequest,
  startDemoServer,
} from "../../plugins/svc-core-demo/src/server.ts";
import type { Reply, Script } from "../../plugins/svc-core-demo/src/script.ts";

export type { RecordedRequest, Reply, Script };

/** A scripted backend that remembers what it was asked. */
export interface TestBackend extends DemoServer, AsyncDisposable {
  /** The bodies of the completion requests so far. */
  // deno-lint-ignore no-explicit-any
  readonly chats: any[];
  /** The nth request (from 1), as soon as it has arrived. */
  arrived(n: number): Promise<RecordedRequest>;
}

/** Starts a backend that plays a script, or just replies in order. `await using` closes it. */
export function startBackend(
  script: Script | Reply[],
  options: Pick<DemoServerOptions, "onRequest"> = {},
): TestBackend {
  const waiting: (() => void)[] = [];
  const server = startDemoServer({
    script: Array.isArray(script) ? { replies: script } : script,
    record: true,
    onRequest(request) {
      for (const wake of waiting.splice(0)) wake();
      return options.onRequest?.(request);
    },
  });
  return {
    ...server,
    get chats() {
      return server.requests.filter(({ path }) => path.endsWith("/chat/completions"))
        .map(({ body }) => body);
    },
    async arrived(n) {
      while (server.requests.length < n) {
        await new Promise<void>((resolve) => void waiting.push(resolve));
      }
      return server.requests[n - 1]!;
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
}

/** Answers with a text; an array arrives as one event, and one write, for each piece. */
export function say(text: string | string[], more: Reply = {}): Reply {
  return { text, ...more };
}

/** Answers only the agent whose system prompt holds this text. */
export function as(system: string, reply: Reply): Reply {
  return { ...reply, when: { system } };
}

/** Reasons, then answers with what `more` holds. */
export function think(thinking: string | string[], more: Reply = {}): Reply {
  return { thinking, ...more };
}

/** Calls one tool. A string as arguments is sent as it is. */
export function call(
  name: string,
  args: Record<string, unknown> | string = {},
  more: Reply = {},
): Reply {
  return { tool_calls: [{ name, arguments: args }], ...more };
}

/** Calls several tools in one batch. */
export function calls(
  tools: [name: string, args: Record<string, unknown> | string][],
  more: Reply = {},
): Reply {
  return { tool_calls: tools.map(([name, args]) => ({ name, arguments: args })), ...more };
}

/** An HTTP answer; an object as body is sent as JSON. */
export function httpError(
  status: number,
  body: unknown = { error: { message: `scripted ${status}` } },
  headers: Record<string, string> = {},
): Reply {
  return { status, body, headers };
}

/** Token counts as backends report them. */
export function usage(prompt_tokens: number, completion_tokens: number): Reply {
  return {
    usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
  };
}

/** Breaks the connection after the text, or after so many events of a whole reply. */
export function cut(text: string | string[], after?: number): Reply {
  return { text, cut: after === undefined ? true : { after } };
}

/** Sends the text, or not even headers, and then keeps silent until the client goes. */
export function hang(text?: string): Reply {
  return text === undefined ? { hang: true } : { text, hang: true };
}

/** A body of exactly these bytes; an array arrives in as many writes. */
export function raw(body: string | string[] | Uint8Array, more: Reply = {}): Reply {
  if (!(body instanceof Uint8Array)) return { raw: body, ...more };
  return { raw: { base64: btoa(String.fromCharCode(...body)) }, ...more };
}

/** Answers nothing: `finish` reason and `[DONE]` alone. */
export function empty(more: Reply = {}): Reply {
  return { ...more };
}
