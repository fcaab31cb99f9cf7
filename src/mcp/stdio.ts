import { Readable, Writable } from "node:stream";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { ROOT_RUN, type TurnResult } from "../engine/events.ts";
import { startAgent } from "../engine/start.ts";
import { AGENT_NEEDS, type Workspace } from "../engine/workspace.ts";
import { errorMessage } from "../platform/error.ts";
import { headlessOperator } from "../policy/operator.ts";
import { mcpServer } from "./server.ts";
import type { AgentCall } from "./run_agent.ts";
import { McpTools } from "./tools.ts";

/** The most bytes of one message. */
const MAX_MESSAGE = 8 * 1024 * 1024;

/**
 * Serves one client over a pair of streams, with one JSON-RPC message per line (specification 4.2), until the
 * input ends or `signal` aborts. Running calls are then cancelled, and their programs have ended when this
 * resolves.
 */
export async function serveMcpStdio({ workspace, input, output, signal }: {
  workspace: Workspace;
  input: ReadableStream<Uint8Array>;
  output: WritableStream<Uint8Array>;
  signal: AbortSignal;
}): Promise<void> {
  const tools = new McpTools(workspace, (call) => runAgent(workspace, call));
  const over = new AbortController();
  const ended = Promise.withResolvers<void>();
  const readable = Readable.fromWeb(input as Parameters<typeof Readable.fromWeb>[0]);
  const writable = Writable.fromWeb(output);
  for (const event of ["end", "close", "error"]) readable.once(event, () => ended.resolve());
  for (const event of ["close", "error"]) writable.once(event, () => ended.resolve());
  signal.addEventListener("abort", () => ended.resolve(), { once: true });
  const transport = new StdioServerTransport(readable, writable, { maxBufferSize: MAX_MESSAGE });
  const handle = serveStdio(() => mcpServer(workspace, tools, over.signal), {
    transport,
    maxSubscriptions: 16,
    onerror: (error) => workspace.warn(errorMessage(error)),
  });
  if (!signal.aborted) await ended.promise;
  over.abort(new DOMException("The client disconnected.", "AbortError"));
  await handle.close().catch(() => {});
  await tools.idle();
}

/** Runs a turn of a client, headless and unattended like those of `svc serve`. */
async function runAgent(
  workspace: Workspace,
  { prompt, session, role, task, signal, emit }: AgentCall,
): Promise<TurnResult> {
  await workspace.load(AGENT_NEEDS);
  const agent = await startAgent(workspace, {
    ...{ session, role, task },
    operator: headlessOperator(false),
    headless: true,
    immutable: true,
  });
  const { name } = agent.session;
  try {
    workspace.commands.use(name);
    let result: TurnResult | undefined;
    for await (const event of agent.turn(prompt, { signal, task })) {
      emit(event);
      if (event.type === "turn_finished" && event.run === ROOT_RUN) result = event.result;
    }
    return result!;
  } finally {
    await agent.close();
    workspace.commands.leave(name);
  }
}
