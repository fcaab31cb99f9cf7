import { usageError } from "../platform/error.ts";
import { cronFault, nextCron } from "./cron.ts";

/** When a job runs: exactly one of the three (specification 2.6, 4.5). */
export interface Schedule {
  /** Five fields, in UTC. */
  cron?: string;
  /** Seconds from the end of a run to the start of the next. */
  interval?: number;
  /** One run, at an ISO 8601 datetime. */
  at?: string;
}

/** The shortest interval, in seconds (specification 8). */
const MIN_INTERVAL = 60;

/** The longest wait of a job, in seconds: a hundred years. Dates have an end. */
export const MAX_WAIT = 100 * 365 * 86_400;

/** What is wrong with a schedule, as half a sentence; undefined when nothing is. */
export function scheduleFault({ cron, interval, at }: Schedule): string | undefined {
  const given = [cron, interval, at].filter((value) => value !== undefined);
  if (given.length !== 1) {
    return `a schedule is exactly one of cron, interval and at, and ${given.length} are given`;
  }
  if (cron !== undefined) {
    const fault = cronFault(cron);
    return fault && `the cron expression ${JSON.stringify(cron)} is wrong: ${fault}`;
  }
  if (interval !== undefined) {
    if (interval > MAX_WAIT) return `the interval is at most ${MAX_WAIT} seconds, a hundred years`;
    return Number.isSafeInteger(interval) && interval >= MIN_INTERVAL
      ? undefined
      : `the interval is at least ${MIN_INTERVAL} whole seconds, and not ${interval}`;
  }
  return readTime(at!) === undefined
    ? `${JSON.stringify(at)} is no ISO 8601 datetime such as 2026-12-24T18:00`
    : undefined;
}

/**
 * Refuses a schedule that is wrong, or that has nothing to come.
 *
 * @throws SvcError `bad_cron` or `bad_schedule` (exit 2)
 */
export function checkSchedule(schedule: Schedule): void {
  const fault = scheduleFault(schedule);
  const code = schedule.cron === undefined ? "bad_schedule" : "bad_cron";
  if (fault !== undefined) {
    const hint = 'Such as --cron "30 3 * * 1-5", --interval 3600 or --at 2026-12-24T18:00, in UTC.';
    throw usageError(code, `${fault[0]!.toUpperCase()}${fault.slice(1)}.`, hint);
  }
  if (schedule.cron !== undefined && nextCron(schedule.cron, 0) === undefined) {
    throw usageError(
      "bad_cron",
      `The cron expression ${JSON.stringify(schedule.cron)} never comes: no such day exists.`,
    );
  }
}

/**
 * When a schedule is due next, in milliseconds, strictly after `now`: missed times are not made up for.
 * Undefined when there is no next time; `at` has one until it has run, also one that is past.
 */
export function nextRun(
  { cron, interval, at }: Schedule,
  { now, ran }: { now: number; ran: boolean },
): number | undefined {
  if (cron !== undefined) return nextCron(cron, now);
  if (interval !== undefined) return now + interval * 1000;
  return ran || at === undefined ? undefined : readTime(at);
}

/** The schedule in words. */
export function describeSchedule({ cron, interval, at }: Schedule): string {
  if (cron !== undefined) return `cron ${cron}`;
  if (interval !== undefined) return `every ${interval} s`;
  return `at ${at}`;
}

const DATETIME =
  /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(Z|[+-]\d{2}(?::?\d{2})?)?)?$/i;

/** What dates of four digits can say, in UTC. */
const FIRST = Date.parse("0000-01-01T00:00:00Z");
const LAST = Date.parse("9999-12-31T23:59:59.999Z");

/** The milliseconds of an ISO 8601 datetime, which is in UTC unless it says otherwise. */
export function readTime(text: string): number | undefined {
  const match = DATETIME.exec(text.trim());
  if (match === null) return undefined;
  let iso = text.trim().toUpperCase().replace(" ", "T").replace(",", ".");
  if (!iso.includes("T")) iso += "T00:00";
  iso = match[1] === undefined
    ? `${iso}Z`
    : iso.replace(/([+-]\d{2}):?(\d{2})?$/, (_, h, m) => `${h}:${m ?? "00"}`);
  const [year, month, day] = iso.slice(0, 10).split("-").map(Number) as [number, number, number];
  // `Date` would take 31 February for 3 March.
  if (day > new Date(Date.UTC(year, month, 0)).getUTCDate()) return undefined;
  const time = Date.parse(iso);
  return time >= FIRST && time <= LAST ? time : undefined;
}
