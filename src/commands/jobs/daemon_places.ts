import { join } from "node:path";

/** Where a scheduler in the background logs. */
export const daemonLog = (state: string): string => join(state, "logs", "jobs.log");

/** Who was started as the scheduler in the background. */
export const daemonRecord = (state: string): string => join(state, "jobs.daemon.pid");
