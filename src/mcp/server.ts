import { Server, type ServerContext } from "@modelcontextprotocol/server";
import type { Workspace } from "../engine/workspace.ts";
import type { Clock } from "../platform/clock.ts";
import { joinSignals } from "../platform/joined_signal.ts";
import { VERSION } from "../platform/version.ts";
import { listSessions, readSession, SESSION_TEMPLATE } from "./sessions.ts";
import type { McpTools } from "./tools.ts";

/** Milliseconds between two notes of progress. */
const BEAT = 2000;

/**
 * An MCP server over a workspace (specification 4.2), for one connection or one request, of either era.
 *
 * @param over aborts when the whole service ends, and what runs with it
 */
export function mcpServer(workspace: Workspace, tools: McpTools, over: AbortSignal): Server {
  const server = new Server({ name: "svc", version: VERSION }, {
    capabilities: { tools: {}, resources: {} },
    instructions:
      "Paths are relative to the worktree that svc works in. Its sessions are resources.",
  });
  server.setRequestHandler("tools/list", () => ({ tools: tools.list() }));
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    const ended = new AbortController();
    using either = joinSignals(context.mcpReq.signal, over);
    const started = progress(context, workspace.clock, ended.signal);
    try {
      return await tools.call(params.name, params.arguments ?? {}, {
        signal: either.signal,
        started,
      });
    } finally {
      ended.abort();
    }
  });
  server.setRequestHandler(
    "resources/list",
    ({ params }) => listSessions(workspace.sessions, params?.cursor),
  );
  server.setRequestHandler(
    "resources/templates/list",
    () => ({ resourceTemplates: [SESSION_TEMPLATE] }),
  );
  server.setRequestHandler(
    "resources/read",
    ({ params }) => readSession(workspace.sessions, params.uri),
  );
  return server;
}

/** Notes of progress, in seconds, for a caller that asked for them; nobody waits for one to arrive. */
function progress({ mcpReq }: ServerContext, clock: Clock, ended: AbortSignal) {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  return async (message: string) => {
    const begun = clock.now();
    try {
      for (let last = -1; !ended.aborted;) {
        // Progress only ever grows, and a clock may be set back.
        const progress = Math.max(last + 0.001, (clock.now() - begun) / 1000);
        last = progress;
        const params = { progressToken, progress: Math.max(0, progress), message };
        mcpReq.notify({ method: "notifications/progress", params }).catch(() => {});
        await clock.sleep(BEAT, ended);
      }
    } catch {
      // the call has ended
    }
  };
}
