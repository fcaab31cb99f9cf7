import { startSpan } from "../platform/trace.ts";
import {
  createMcpHandler,
  type ListResourcesResult,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  ResourceNotFoundError,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { Workspace } from "../engine/workspace.ts";
import { type Clock, joinSignals } from "../platform/clock.ts";
import { VERSION } from "../platform/environment.ts";
import { errorMessage } from "../platform/error.ts";
import type { SessionStore } from "../sessions/store.ts";
import type { RunAgent } from "./run_agent.ts";
import { McpTools } from "./tools.ts";

const SCHEME = "polyglav://session/";
const TYPE = "application/json";
/** Sessions on one page of a listing. */
const PAGE = 500;
/** The most characters of a session's JSON that are sent. */
const MOST = 32 * 1024 * 1024;

/** The answer to `resources/templates/list`. */
const SESSION_TEMPLATE = {
  uriTemplate: `${SCHEME}{name}`,
  name: "session",
  description: "The log of a session, as it is on disk.",
  mimeType: TYPE,
};

const ASK_SCHEME = "polyglav://ask/";
const ASK_TEMPLATE = {
  uriTemplate: `${ASK_SCHEME}{id}`,
  name: "ask",
  description: "A question of an agent to a person, and its answer.",
  mimeType: TYPE,
};
/** Characters of a question that a listing has. */
const LONGEST_TITLE = 200;

/** Milliseconds between two progress notifications. */
const BEAT = 2000;

/**
 * An MCP server for a workspace (specification 4.2), for one connection or one request, of any protocol revision.
 *
 * @param over aborts when the service ends, which cancels the running calls
 */
export function mcpServer(workspace: Workspace, tools: McpTools, over: AbortSignal): Server {
  const server = new Server({ name: "svc", version: VERSION }, {
    capabilities: { tools: {}, resources: {} },
    instructions:
      "Paths are relative to the worktree that svc works in. Its sessions are resources, and so are the " +
      "questions that wait for a person.",
  });
  server.setRequestHandler("tools/list", () => ({ tools: tools.list() }));
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    const ended = new AbortController();
    using either = joinSignals(context.mcpReq.signal, over);
    const started = progress(context, workspace.clock, ended.signal);
    const span = startSpan(`tools/call ${params.name}`, {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": params.name,
      "mcp.method.name": "tools/call",
    }, { caller: context.mcpReq._meta });
    let failure: string | undefined = "error";
    const call = () =>
      tools.call(params.name, params.arguments ?? {}, {
        signal: either.signal,
        started,
        confirmed: context.http === undefined || context.http.authInfo !== undefined,
      });
    try {
      const result = await (span === undefined ? call() : span.run(call));
      if (result.isError !== true) failure = undefined;
      return result;
    } finally {
      span?.end(failure);
      ended.abort();
    }
  });
  server.setRequestHandler(
    "resources/list",
    async ({ params }) => {
      const page = await listSessions(workspace.sessions, params?.cursor);
      if (params?.cursor !== undefined) return page;
      return { ...page, resources: [...askResources(workspace), ...page.resources] };
    },
  );
  server.setRequestHandler(
    "resources/templates/list",
    () => ({ resourceTemplates: [SESSION_TEMPLATE, ASK_TEMPLATE] }),
  );
  server.setRequestHandler(
    "resources/read",
    ({ params: { uri } }) =>
      uri.startsWith(ASK_SCHEME) ? readAsk(workspace, uri) : readSession(workspace.sessions, uri),
  );
  return server;
}

/** Sends progress notifications, in seconds, to a caller that requested them. They are not awaited. */
function progress({ mcpReq }: ServerContext, clock: Clock, ended: AbortSignal) {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  let message = "";
  let begun: number | undefined;
  return async (line: string) => {
    message = line;
    if (begun !== undefined) return;
    begun = clock.now();
    try {
      for (let last = -1; !ended.aborted;) {
        // Progress must increase, also when the clock is set back.
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

/** One page of the sessions, sorted by name (specification 4.2). */
async function listSessions(store: SessionStore, cursor = ""): Promise<ListResourcesResult> {
  const after = fromUri(SCHEME + cursor) ?? invalidCursor();
  const names = (await store.names()).filter((name) => name > after);
  const page = names.slice(0, PAGE);
  const resources = page.map((name) => ({ uri: toUri(name), name, mimeType: TYPE }));
  const last = page.at(-1);
  return names.length > PAGE && last !== undefined
    ? { resources, nextCursor: encodeURIComponent(last) }
    : { resources };
}

/**
 * The JSON of a session, which is only read.
 *
 * @throws ResourceNotFoundError for a URI that names no session
 */
async function readSession(store: SessionStore, uri: string): Promise<ReadResourceResult> {
  const name = fromUri(uri);
  await store.current(name);
  const document = name === undefined ? undefined : store.read(name);
  if (document === undefined) throw new ResourceNotFoundError(uri);
  const text = JSON.stringify(document);
  if (text.length > MOST) {
    const message = `The session is larger than ${MOST} characters.`;
    throw new ProtocolError(ProtocolErrorCode.InternalError, message);
  }
  return { contents: [{ uri, mimeType: TYPE, text }] };
}

/** The questions that wait for a person. */
function askResources({ asks }: Workspace) {
  return asks.list("pending").map(({ id, question }) => ({
    uri: `${ASK_SCHEME}${id}`,
    name: `ask #${id}`,
    description: question.slice(0, LONGEST_TITLE).toWellFormed(),
    mimeType: TYPE,
  }));
}

/** @throws ResourceNotFoundError */
function readAsk({ asks }: Workspace, uri: string): ReadResourceResult {
  const id = uri.slice(ASK_SCHEME.length);
  const ask = /^[1-9]\d{0,15}$/.test(id) ? asks.get(Number(id)) : undefined;
  if (ask === undefined) throw new ResourceNotFoundError(uri);
  return { contents: [{ uri, mimeType: TYPE, text: JSON.stringify(ask) }] };
}

function toUri(name: string): string {
  return SCHEME + encodeURIComponent(name);
}

function fromUri(uri: string): string | undefined {
  if (!uri.startsWith(SCHEME)) return undefined;
  try {
    return decodeURIComponent(uri.slice(SCHEME.length));
  } catch {
    return undefined;
  }
}

function invalidCursor(): never {
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, "Invalid cursor.");
}

/** MCP over HTTP (specification 4.2), stateless: one JSON-RPC message in each request, of any protocol revision. */
export interface McpEndpoint {
  /**
   * Answers one `POST`.
   *
   * @param body its parsed content
   * @param authenticated whether it carries a valid token; see {@linkcode CallHooks.confirmed}
   */
  handle(request: Request, body: unknown, authenticated: boolean): Promise<Response>;
  /** Resolves when no call runs or waits. */
  idle(): Promise<void>;
  /** Cancels the running calls. */
  cancel(): void;
  /** Closes the open streams. */
  close(): Promise<void>;
}

/** Marks a request that carries a valid token. The token itself goes no further than the admission. */
const AUTHENTICATED = { token: "", clientId: "", scopes: [] };

/** Milliseconds in which one failed request is warned of: clients must not fill the log. */
const QUIET = 60_000;

export function mcpEndpoint(workspace: Workspace, run: RunAgent): McpEndpoint {
  const { clock } = workspace;
  const tools = new McpTools(workspace, run);
  const over = new AbortController();
  let warned = -Infinity;
  let silent = 0;
  const onerror = (error: Error) => {
    if (Math.abs(clock.now() - warned) < QUIET) return void silent++;
    const more = silent === 0 ? "" : ` (and ${silent} others since the last warning)`;
    [warned, silent] = [clock.now(), 0];
    workspace.warn(`A request to /mcp failed: ${errorMessage(error).slice(0, 300)}${more}`);
  };
  const handler = createMcpHandler(() => mcpServer(workspace, tools, over.signal), {
    maxSubscriptions: 16,
    onerror,
  });
  return {
    handle: (request, parsedBody, authenticated) =>
      handler.fetch(request, { parsedBody, ...authenticated && { authInfo: AUTHENTICATED } }),
    idle: () => tools.idle(),
    cancel: () => over.abort(new DOMException("The server is stopping.", "AbortError")),
    close: () => handler.close(),
  };
}
