import { isTrouble, stepFields, stepLine } from "../commands/jobs/view.ts";
import type { Io } from "../commands/io.ts";
import { type LogFields, type LogFormat, logLine } from "../commands/log.ts";
import { JOB_NEEDS, type Workspace } from "../engine/workspace.ts";
import { jobContext } from "../jobs/context.ts";
import { drain, type Stopping } from "../jobs/scheduler.ts";
import { JobWorker, type Step } from "../jobs/worker.ts";
import { serveHost, servePort } from "../platform/environment.ts";
import { errorMessage, SvcError } from "../platform/error.ts";
import { noStore } from "../store/link.ts";
import { admissionOf } from "./admission.ts";
import { serveApp } from "./app.ts";
import type { ServerLog } from "./log.ts";
import { Metrics } from "./metrics.ts";
import { statusRoutes } from "./routes/status.ts";
import { Runs } from "./runs.ts";
import { listen } from "./server.ts";
import { Turns } from "./turns.ts";

/** Milliseconds between two looks at the settings, and at attempts that are held up. */
const LOOK = 5000;

interface WorkerValues {
  label?: readonly string[];
  concurrency?: number;
  host?: string;
  port?: number;
  quiet?: boolean;
  log?: LogFormat;
}

/**
 * Runs jobs and accepted runs from the queue of the store until it is interrupted. Those that run then have the grace
 * period to finish.
 *
 * @returns the exit code, 0
 * @throws SvcError `no_store`, `store_unreachable` (exit 2)
 */
export async function work(
  workspace: Workspace,
  values: WorkerValues,
  io: Io,
  log: ServerLog,
): Promise<number> {
  const { store, clock, config, warn } = workspace;
  if (store === undefined) throw noStore("A worker takes its work from a store");
  const { queue, leases } = await store.open();
  const { label: labels = [], log: format = "text", quiet = false } = values;
  const tell = (message: string, fields?: LogFields) => {
    io.out(`${logLine(format, clock, message, fields)}\n`);
    log.note(message, fields);
  };
  const context = jobContext(workspace);
  await workspace.load(JOB_NEEDS);
  const metrics = new Metrics();
  const turns = new Turns(workspace, metrics, log);
  const runs = new Runs(workspace, turns, context);
  const step = (step: Step | Stopping) => {
    if (!quiet || isTrouble(step)) tell(stepLine(step, context), stepFields(step));
  };
  const worker = new JobWorker(context, queue, {
    tell: step,
    labels,
    others: async (id) => {
      if (!quiet) tell(`${id}: begins`, { event: "run", run: id });
      await runs.work(id);
    },
  });
  const interrupt = io.onInterrupt();
  const closing = new AbortController();
  const server = listenSomewhere(workspace, {
    values,
    io,
    closing: closing.signal,
    metrics,
    turns,
  });
  const cancel = new AbortController();
  const { signal } = interrupt;
  signal.addEventListener("abort", () => runs.stop());
  cancel.signal.addEventListener("abort", () => runs.cancelAll());
  try {
    await runs.recover();
    const { hostname, port } = server.addr;
    const also = labels.length === 0 ? "" : ` and those with the label ${labels.join(", ")}`;
    if (!quiet) {
      tell(
        `worker ${leases.holder}: takes the jobs and runs of the project ${store.project}${also}; ` +
          `http://${hostname}:${port}/metrics`,
      );
    }
    while (!signal.aborted) {
      try {
        config.reload();
      } catch (error) {
        warn(`The settings stay as they were: ${errorMessage(error)}`);
      }
      const concurrency = values.concurrency ?? config.get("jobs.concurrency");
      const hold = config.get("jobs.timeout") * 1000;
      worker.work({ signal, cancel: cancel.signal, concurrency, hold });
      await clock.sleep(LOOK, signal).catch(() => {}); // stopped
    }
    const running = {
      get busy() {
        return [...worker.busy, ...runs.busy];
      },
      close: async () => {
        await worker.close();
        await runs.idle();
      },
    };
    await drain(running, { clock, tell: step, grace: config.get("jobs.grace"), cancel });
    await runs.close();
    if (!quiet) tell(`worker ${leases.holder}: stopped`);
    return 0;
  } finally {
    closing.abort();
    await server.finished;
    await workspace.close();
    interrupt.release();
  }
}

/** Serves `/health`, `/ready` and `/metrics`; on a free port where the usual one is taken. */
function listenSomewhere(
  workspace: Workspace,
  { values, io, closing, metrics, turns }: {
    values: WorkerValues;
    io: Io;
    closing: AbortSignal;
    metrics: Metrics;
    turns: Turns;
  },
): Deno.HttpServer<Deno.NetAddr> {
  const host = values.host ?? serveHost(io.environment);
  const routes = statusRoutes(workspace, turns, metrics);
  // They change nothing.
  const admission = admissionOf(workspace, host, true);
  const { clock, warn: failed } = workspace;
  const answer = serveApp(routes, admission, { metrics, failed, clock });
  if (values.port !== undefined) return listen(host, values.port, closing, answer);
  try {
    return listen(host, servePort(io.environment), closing, answer);
  } catch (error) {
    if (!(error instanceof SvcError) || error.code !== "address") throw error;
    return listen(host, 0, closing, answer);
  }
}
