import type { Io } from "../commands/io.ts";
import { type LogFormat, noteParts, withJsonNotes } from "../commands/log.ts";
import { openShared } from "../commands/workspace.ts";
import { authorityOf } from "../engine/agents.ts";
import { withdrawFirst, withdrawFor } from "../engine/start.ts";
import { JOB_NEEDS, type Workspace } from "../engine/workspace.ts";
import { serveHost, servePort, serverAddress } from "../platform/environment.ts";
import { systemClock } from "../platform/clock.ts";
import { errorMessage } from "../platform/error.ts";
import { makeFirstToken, makeToken, type TokenRole } from "./admission.ts";
import { consoleFolder, noteAddress, notedAddress, servesConsole } from "./console.ts";
import { ServerLog } from "./log.ts";
import { jobContext } from "../jobs/context.ts";
import { HookSecrets } from "./hooks.ts";
import { startServer } from "./server.ts";

/** The arguments of `svc serve`; the command itself is in `src/cli/serve.ts`. */
interface ServeValues {
  /** `fleet`: listens, and prints a link to the console of the agents. */
  action: "listen" | "token" | "console" | "fleet" | "hook" | "worker";
  /** The address to listen on; left out: the variable `SVC_HOST`, or 127.0.0.1. */
  host?: string;
  /** The port; left out: the variable `SVC_PORT`, or 8787. */
  port?: number;
  insecure?: boolean;
  /** Whether the server only puts accepted runs into the queue of the store. */
  no_work?: boolean;
  /** The labels of a worker, and how many jobs and runs it runs at once. */
  label?: readonly string[];
  concurrency?: number;
  quiet?: boolean;
  /** Whether to serve the console; left out: setting `serve.console`. */
  console?: boolean;
  /** The job of a hook. */
  job?: string;
  /** The role of a token, or of the one who opens the console. Default: `operate`. */
  role?: TokenRole;
  /** The address of the server, for a link to its console. Left out: that of the server on the worktree. */
  url?: string;
  log?: LogFormat;
  trust?: boolean;
  /** The worktree; empty: the variable `SVC_PATH`, or the current directory. */
  path: string;
}

/**
 * Serves the HTTP API (specification 4.1) until interrupted, or makes a token or a link to the console.
 *
 * @returns the exit code
 */
export async function serve(values: ServeValues, given: Io): Promise<number> {
  const { log: format = "text" } = values;
  const shown = format === "json" ? withJsonNotes(given, systemClock) : given;
  const kept: { log?: ServerLog } = {};
  const io: Io = {
    ...shown,
    note(line) {
      shown.note(line);
      kept.log?.note(...noteParts(line));
    },
  };
  const path = values.path || io.environment.get("SVC_PATH") || "";
  const { role = "operate", console } = values;
  const settings = console === undefined ? {} : { "serve.console": console ? "on" : "off" };
  const workspace = await openShared(path, io, { unattended: true, ...settings }, values.trust);
  if (values.action === "token") {
    const { token, note } = await makeToken(workspace, role);
    io.out(`${token}\n`);
    io.note(note);
    return 0;
  }
  if (values.action === "hook") {
    const { job = "" } = values;
    jobContext(workspace).register.need(job);
    const secrets = new HookSecrets(workspace);
    io.out(`${await secrets.make(job)}\n`);
    io.note(`It is kept in ${secrets.path}, and signs the requests of POST /hooks/${job}.`);
    return 0;
  }
  if (values.action === "console") {
    await workspace.trust.begin();
    const address = values.url?.replace(/\/$/, "") ?? notedAddress(workspace) ??
      serverAddress(serveHost(io.environment), servePort(io.environment));
    await printLink(workspace, { address, role }, io);
    const fault = values.url === undefined ? await consoleFault(address) : undefined;
    if (fault !== undefined) io.note(fault);
    return 0;
  }
  await workspace.store?.follow();
  const show = format === "json" ? (line: string) => given.note(line) : () => {};
  const log = kept.log = new ServerLog(workspace, { format, show });
  if (values.action === "worker") {
    const { work } = await import("./worker.ts");
    const code = await work(workspace, values, io, log);
    log.close();
    return code;
  }
  const asks = workspace.config.get("mcp_server.allow_ask"); // MCP clients confirm themselves
  const { plugins } = await workspace.load(
    JOB_NEEDS,
    withdrawFirst(workspace, asks),
  );
  const mcp = plugins.some(({ name, status }) => name === "svc-core-mcp" && status === "loaded");
  const yes = mcp && asks;
  await withdrawFor(workspace, authorityOf(workspace.config), { yes });
  try {
    workspace.backend();
  } catch (error) {
    io.note(`warning: POST /chat will fail: ${errorMessage(error)}`);
  }
  try {
    const made = await makeFirstToken(workspace);
    if (made !== undefined) {
      io.note(
        `made a token in ${made}; clients need it for calls of /mcp that need an approval, and to change jobs`,
      );
    }
  } catch (error) {
    io.note(
      `warning: no token could be made, so /mcp refuses calls that need an approval, and any user of this machine can change jobs: ${
        errorMessage(error)
      }`,
    );
  }
  const host = values.host ?? serveHost(io.environment);
  const server = startServer({
    workspace,
    host,
    port: values.port ?? servePort(io.environment),
    insecure: values.insecure ?? false,
    mcp,
    work: !values.no_work,
    log,
  });
  const interrupt = io.onInterrupt();
  io.note(`listening on ${server.url}`);
  if (servesConsole(workspace.config, host)) {
    await workspace.trust.begin();
    const address = serverAddress(host, server.port);
    noteAddress(workspace, address);
    if (values.action === "fleet") {
      await printLink(workspace, { address, role, page: "/console/fleet" }, io);
    } else io.note("open the console with: svc console");
  }
  if (!interrupt.signal.aborted) {
    await new Promise((stopped) => interrupt.signal.addEventListener("abort", stopped));
  }
  io.note("stopping: turns that run may finish; another interrupt ends them at once");
  await server.stop();
  await workspace.close();
  log.close();
  interrupt.release();
  return 0;
}

/** Prints a link that signs in to the console, once. */
async function printLink(
  workspace: Workspace,
  { address, role, page = "" }: { address: string; role: TokenRole; page?: string },
  io: Io,
): Promise<void> {
  const { SignIns, VALID } = await import("./console/sign_in.ts");
  const key = new SignIns(consoleFolder(workspace), workspace.clock).makeLink(role);
  io.out(`${address}/console/sign-in?key=${key}${page && `&page=${page}`}\n`);
  io.note(`Open it within ${VALID.link / 60_000} minutes, while the server runs. It works once.`);
}

/** Why the server at an address of this machine shows no console; undefined when it does. */
async function consoleFault(address: string): Promise<string | undefined> {
  const response = await fetch(`${address}/console`, { redirect: "manual" }).catch(() => undefined);
  await response?.body?.cancel();
  if (response === undefined) return `No server answers at ${address}; start it with: svc serve`;
  if (response.status !== 404) return undefined;
  return `The server at ${address} has no console; start it with: svc serve --console`;
}
