import type { Workspace } from "../engine/workspace.ts";
import { jobContext } from "../jobs/context.ts";
import { errorMessage, usageError } from "../platform/error.ts";
import { admissionOf } from "./admission.ts";
import { type Answer, serveApp } from "./app.ts";
import { ConsoleMount, servesConsole } from "./console.ts";
import type { ServerLog } from "./log.ts";
import { Metrics } from "./metrics.ts";
import { askRoutes } from "./routes/asks.ts";
import { chatRoutes } from "./routes/chat.ts";
import { hookRoutes } from "./routes/hooks.ts";
import { jobRoutes, JobRuns } from "./routes/jobs.ts";
import { McpMount, mcpRoutes } from "./routes/mcp.ts";
import { runRoutes } from "./routes/runs.ts";
import { sessionRoutes } from "./routes/sessions.ts";
import { statusRoutes } from "./routes/status.ts";
import { usageRoutes } from "./routes/usage.ts";
import { Runs } from "./runs.ts";
import { Turns } from "./turns.ts";

/** Milliseconds for which open answers may still be sent after the last turn has ended. */
const SEND_LIMIT = 1000;

/** Sessions whose files stay open between turns. */
const KEPT_SESSIONS = 32;

export interface ServerOptions {
  /** With its plugins loaded. */
  workspace: Workspace;
  host: string;
  /** 0: a free one. */
  port: number;
  /** Listens beyond loopback without requiring tokens. */
  insecure: boolean;
  /** Serves `POST /mcp`. Default: no. */
  mcp?: boolean;
  /** Runs accepted runs of the store itself, in addition to the workers. Default: yes. */
  work?: boolean;
  /** Default: none. */
  log?: ServerLog;
}

/** The HTTP API of one worktree (specification 4.1). */
export interface HttpServer {
  /** `http://<host>:<port>` as it is bound. */
  readonly url: string;
  readonly port: number;
  /**
   * Stops accepting requests, lets turns finish for `serve.grace` seconds and cancels the rest. Every session
   * log is complete when it resolves.
   */
  stop(): Promise<void>;
}

/**
 * Starts to listen.
 *
 * @throws SvcError (exit 2) `no_token_file` for an address beyond loopback without tokens, `token_file` for an
 * unusable token file, `address` for an address that cannot be bound
 */
export function startServer(
  { workspace, host, port, insecure, mcp: serveMcp = false, work = true, log }: ServerOptions,
): HttpServer {
  const { config, clock } = workspace;
  const admission = admissionOf(workspace, host, insecure);
  const metrics = new Metrics();
  const turns = new Turns(workspace, metrics, log);
  const mcp = serveMcp ? new McpMount(workspace, turns) : undefined;
  const jobs = jobContext(workspace);
  const runs = new Runs(workspace, turns, jobs);
  const kept = workspace.sessions.keepOpen(KEPT_SESSIONS);
  const jobRuns = new JobRuns(jobs);
  const routes = [
    ...chatRoutes(workspace, turns),
    ...runRoutes(workspace, turns, runs),
    ...hookRoutes(workspace, runs),
    ...sessionRoutes(workspace),
    ...askRoutes(workspace, () => runs.look()),
    ...jobRoutes(jobs, jobRuns),
    ...usageRoutes(workspace),
    ...statusRoutes(workspace, turns, metrics),
    ...mcp === undefined ? [] : mcpRoutes(workspace, mcp),
  ];
  const console = servesConsole(config, host)
    ? new ConsoleMount({ workspace, turns, runs, jobs, jobRuns, tokens: admission.tokens })
    : undefined;
  const failed = workspace.warn;
  const answer = serveApp(routes, admission, { metrics, failed, clock, log, console });
  const closing = new AbortController();
  const server = listen(host, port, closing.signal, answer);
  const { hostname, port: bound } = server.addr;
  const recovered = runs.recover().then(async () => {
    if (workspace.store === undefined || !work) return;
    await runs.takeFromQueue(config.get("serve.max_concurrent"));
  }).catch((error) => workspace.warn(errorMessage(error)));
  return {
    url: `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${bound}`,
    port: bound,
    async stop() {
      console?.close();
      const closed = server.shutdown().then(() => true);
      runs.stop();
      const finished = new AbortController();
      const grace = clock.sleep(config.get("serve.grace") * 1000, finished.signal);
      const ended = grace.then(() => {
        turns.cancelAll();
        jobRuns.cancelAll();
        runs.cancelAll();
        return mcp?.cancelAll();
      }, () => {});
      await recovered;
      await Promise.all([turns.idle(), jobRuns.idle(), runs.idle(), mcp?.idle()]);
      finished.abort();
      await ended;
      await runs.close();
      // A client that does not read its answer, or has sent half a request, must not delay the end.
      const patience = new AbortController();
      const waited = clock.sleep(SEND_LIMIT, patience.signal).then(() => false, () => false);
      const done = await Promise.race([closed, waited]);
      patience.abort();
      await mcp?.close();
      await kept[Symbol.asyncDispose]();
      if (!done) closing.abort();
      await server.finished;
    },
  };
}

export function listen(
  hostname: string,
  port: number,
  signal: AbortSignal,
  answer: Answer,
): Deno.HttpServer<Deno.NetAddr> {
  // Details of an internal error stay in the process.
  const onError = () => Response.json({ error: "internal error" }, { status: 500 });
  const options = { hostname, port, signal, onListen: () => {}, onError };
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
