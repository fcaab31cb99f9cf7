import type { Workspace } from "../engine/workspace.ts";
import { jobContext } from "../jobs/context.ts";
import { errorMessage, usageError } from "../platform/error.ts";
import { serveApp } from "./app.ts";
import { JobRuns } from "./job_runs.ts";
import { Callers, isLoopback } from "./callers.ts";
import { McpMount } from "./mcp_mount.ts";
import { Metrics } from "./metrics.ts";
import { RateLimit } from "./rate_limit.ts";
import { readTokens, type Tokens } from "./tokens.ts";
import { Turns } from "./turns.ts";

/** Milliseconds that answers have to leave once the last turn has ended. */
const LAST_WORDS = 1000;

export interface ServerOptions {
  /** With its plugins loaded. */
  workspace: Workspace;
  host: string;
  /** 0: a free one. */
  port: number;
  /** Listens beyond loopback without asking for tokens. */
  insecure: boolean;
  /** Serves `POST /mcp`. Default: no. */
  mcp?: boolean;
}

/** The HTTP API of one worktree (specification 4.1). */
export interface HttpServer {
  /** `http://<host>:<port>` as it is bound. */
  readonly url: string;
  readonly port: number;
  /**
   * Stops accepting, lets turns finish for `serve.grace` seconds and cancels what is left then. Every log
   * is whole when it resolves.
   */
  stop(): Promise<void>;
}

/**
 * Starts to listen.
 *
 * @throws SvcError (exit 2) for an address beyond loopback without tokens, a token file that will not do and
 * an address that cannot be had
 */
export function startServer(
  { workspace, host, port, insecure, mcp: serveMcp = false }: ServerOptions,
): HttpServer {
  const { config, clock } = workspace;
  const tokens = tokensOf(workspace, host, insecure);
  const metrics = new Metrics();
  const turns = new Turns(workspace, metrics);
  const mcp = serveMcp ? new McpMount(workspace) : undefined;
  const callers = new Callers({
    host,
    hosts: config.get("serve.hosts"),
    origins: config.get("serve.cors_origins"),
  });
  const limit = new RateLimit(config.get("serve.rate_limit"), clock);
  const jobs = jobContext(workspace);
  const jobRuns = new JobRuns(jobs);
  const context = { workspace, turns, metrics, jobs, jobRuns, mcp };
  const answer = serveApp(context, { callers, limit, tokens });
  const closing = new AbortController();
  const server = listen(host, port, closing.signal, answer);
  const { hostname, port: bound } = server.addr;
  return {
    url: `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${bound}`,
    port: bound,
    async stop() {
      const closed = server.shutdown().then(() => true);
      const finished = new AbortController();
      const grace = clock.sleep(config.get("serve.grace") * 1000, finished.signal);
      const ended = grace.then(() => {
        turns.cancelAll();
        jobRuns.cancelAll();
        return mcp?.cancelAll();
      }, () => {});
      await Promise.all([turns.idle(), jobRuns.idle(), mcp?.idle()]);
      finished.abort();
      await ended;
      // A client that does not take its answer, or has sent half a request, is not waited for.
      const patience = new AbortController();
      const waited = clock.sleep(LAST_WORDS, patience.signal).then(() => false, () => false);
      const done = await Promise.race([closed, waited]);
      patience.abort();
      await mcp?.close();
      if (!done) closing.abort();
      await server.finished;
    },
  };
}

function listen(
  hostname: string,
  port: number,
  signal: AbortSignal,
  answer: ReturnType<typeof serveApp>,
): Deno.HttpServer<Deno.NetAddr> {
  const options = { hostname, port, signal, onListen: () => {}, onError: broken };
  try {
    return Deno.serve(options, (request, { remoteAddr }) => answer(request, remoteAddr.hostname));
  } catch (error) {
    throw usageError(
      "address",
      `Cannot listen on ${hostname}:${port}: ${errorMessage(error)}.`,
      "Choose another with --host and --port; port 0 takes a free one.",
    );
  }
}

/** Nothing of what went wrong inside leaves the process. */
function broken(): Response {
  return Response.json({ error: "internal error" }, { status: 500 });
}

function tokensOf(workspace: Workspace, host: string, insecure: boolean): Tokens | undefined {
  const { config, guard, warn } = workspace;
  const path = config.get("serve.token_file");
  if (path === "") {
    if (isLoopback(host) || insecure) return undefined;
    throw usageError(
      "no_token_file",
      `Without tokens, svc serve listens on this machine alone, and ${host} is not that.`,
      "Make a token with: svc serve token; or pass --insecure if something else keeps others out.",
    );
  }
  const tokens = readTokens(path, warn);
  const { inside, protected: guarded } = guard.locate(path);
  if (inside && guarded !== "read") {
    throw usageError(
      "token_file",
      `The token file ${path} is inside the worktree, where the agent can read it.`,
      "Keep it elsewhere; svc serve token makes one in the right place.",
    );
  }
  return tokens;
}
