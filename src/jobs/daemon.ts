import type { JobContext } from "./attempt.ts";
import { Scheduler, type Step } from "./tick.ts";

/** A scheduler that runs until it is stopped. */
export interface DaemonRequest {
  context: JobContext;
  /** Seconds between two looks at what is due. */
  tick: number;
  /** What the configuration says at this moment. */
  settings: () => { concurrency: number; grace: number };
  /** Stops it: nothing begins any more, and what is at work has its grace. */
  signal: AbortSignal;
  /** Told of what is done with the jobs, and of what is at work when it is stopped. */
  tell: (step: Step | Stopping) => void;
  /** Called with each tick, and once more when everything has ended. */
  beat: (pulse: Pulse) => void;
}

/** The jobs that have their grace to finish, in seconds. */
export interface Stopping {
  step: "stopping";
  jobs: string[];
  grace: number;
}

/** What a scheduler is doing. */
export interface Pulse {
  /** Names of the jobs of which an attempt is being made. */
  busy: string[];
  /** When something is due next, ISO 8601; empty: nothing is planned. */
  next: string;
}

/**
 * Runs jobs as they come due (specification 4.5, 8): wakes every tick, and looks at the register and the
 * settings as they are then. Attempts that do not end within the grace are cancelled and recorded as
 * interrupted; the next start goes on with their runs.
 */
export async function runDaemon(request: DaemonRequest): Promise<void> {
  const { context: { clock }, context, tick, settings, signal, tell, beat } = request;
  const scheduler = new Scheduler(context, tell);
  const cancel = new AbortController();
  const pulse = () => beat({ busy: scheduler.busy, next: dated(scheduler.next()) });
  while (!signal.aborted) {
    await scheduler.sweep(signal, { ...settings(), cancel: cancel.signal });
    pulse();
    await clock.sleep(tick * 1000, signal).catch(() => {}); // stopped
  }
  const ended = new AbortController();
  if (scheduler.busy.length > 0) {
    const { grace } = settings();
    tell({ step: "stopping", jobs: scheduler.busy, grace });
    clock.sleep(grace * 1000, ended.signal).then(
      () => cancel.abort(new DOMException("The scheduler is stopping.", "AbortError")),
      () => {}, // everything ended in time
    );
  }
  await scheduler.close();
  ended.abort();
  pulse();
}

function dated(time: number | undefined): string {
  return time === undefined ? "" : new Date(time).toISOString();
}
