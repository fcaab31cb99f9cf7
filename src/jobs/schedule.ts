import { Cron } from "croner";
import { nearest, usageError } from "../platform/error.ts";

/** When a job runs: exactly one of the three (specification 2.6, 4.5). */
export interface Schedule {
  /** Five fields, in UTC or in `tz`. */
  cron?: string;
  /** The IANA time zone of `cron`. */
  tz?: string;
  /** Seconds from the end of a run to the start of the next. */
  interval?: number;
  /** One run, at an ISO 8601 datetime. */
  at?: string;
}

/** The shortest interval, in seconds (specification 8). */
export const MIN_INTERVAL = 60;

/** The longest wait of a job, in seconds: a hundred years, within the range of dates. */
export const MAX_WAIT = 100 * 365 * 86_400;

/** The fault of a schedule, as half a sentence; undefined for a valid one. */
export function scheduleFault({ cron, tz, interval, at }: Schedule): string | undefined {
  const given = [cron, interval, at].filter((value) => value !== undefined);
  if (given.length !== 1) {
    return `a schedule is exactly one of cron, interval and at, and ${given.length} are given`;
  }
  if (tz !== undefined) {
    if (cron === undefined) return "a time zone is for cron; the time of at may name its offset";
    if (!isTimeZone(tz)) return `${JSON.stringify(tz)} is no IANA time zone`;
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
 * Rejects a schedule that is invalid or never due.
 *
 * @throws SvcError `bad_cron` or `bad_schedule` (exit 2)
 */
export function checkSchedule(schedule: Schedule): void {
  const fault = scheduleFault(schedule);
  const code = schedule.cron === undefined ? "bad_schedule" : "bad_cron";
  if (fault !== undefined) {
    const zone = schedule.tz !== undefined && !isTimeZone(schedule.tz);
    const hint = zone
      ? `Did you mean "${
        nearest(schedule.tz!, Intl.supportedValuesOf("timeZone")) ?? "Europe/Berlin"
      }"?`
      : 'Such as --cron "30 3 * * 1-5", --interval 3600 or --at 2026-12-24T18:00, in UTC.';
    throw usageError(code, `${fault[0]!.toUpperCase()}${fault.slice(1)}.`, hint);
  }
  if (schedule.cron !== undefined && nextCron(schedule.cron, 0, schedule.tz) === undefined) {
    throw usageError(
      "bad_cron",
      `The cron expression ${JSON.stringify(schedule.cron)} never comes: no such day exists.`,
    );
  }
}

/**
 * When a schedule is due next, in milliseconds, strictly after `now`: missed times are not made up for.
 * Undefined when there is no next time. `at` is due until it has run, even when it is past.
 */
export function nextRun(
  { cron, tz, interval, at }: Schedule,
  { now, ran }: { now: number; ran: boolean },
): number | undefined {
  if (cron !== undefined) return nextCron(cron, now, tz);
  if (interval !== undefined) return now + interval * 1000;
  return ran || at === undefined ? undefined : readTime(at);
}

/** Milliseconds from one run to the next by a schedule, the first of them after `now`; infinite for a single run. */
export function period({ cron, tz, interval }: Schedule, now: number): number {
  if (interval !== undefined) return interval * 1000;
  const first = cron === undefined ? undefined : nextCron(cron, now, tz);
  return first === undefined ? Infinity : (nextCron(cron!, first, tz) ?? Infinity) - first;
}

/** A schedule in words. */
export function describeSchedule({ cron, tz, interval, at }: Schedule): string {
  if (cron !== undefined) return `cron ${cron}${tz === undefined ? "" : ` (${tz})`}`;
  if (interval !== undefined) {
    const [unit, seconds] = interval % 3600 === 0
      ? ["h", 3600] as const
      : interval % 60 === 0
      ? ["min", 60] as const
      : ["s", 1] as const;
    return `every ${interval / seconds} ${unit}`;
  }
  return `at ${at}`;
}

const DATETIME =
  /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(Z|[+-]\d{2}(?::?\d{2})?)?)?$/i;

/** The range of dates with four-digit years, in UTC. */
const FIRST = Date.parse("0000-01-01T00:00:00Z");
const LAST = Date.parse("9999-12-31T23:59:59.999Z");

/** Whether a datetime is `since`, as svc writes it, or later. One in the same form needs no parsing. */
export function isSince(text: string, since: string): boolean {
  if (text.length === since.length && text.endsWith("Z")) return text >= since;
  return (readTime(text) ?? 0) >= Date.parse(since);
}

/** A datetime as svc writes it; a tick reads two of each job. */
const WRITTEN = /^\d{4}-\d\d-(\d\d)T\d\d:\d\d:\d\d\.\d{3}Z$/;

/** The milliseconds of an ISO 8601 datetime, which is in UTC unless it says otherwise. */
export function readTime(text: string): number | undefined {
  const written = WRITTEN.exec(text);
  if (written !== null) {
    const date = new Date(text);
    if (date.getUTCDate() === Number(written[1])) return date.getTime();
  }
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

const FIELDS = [
  { name: "minute", least: 0, most: 59 },
  { name: "hour", least: 0, most: 23 },
  { name: "day of month", least: 1, most: 31 },
  { name: "month", least: 1, most: 12 },
  { name: "day of week", least: 0, most: 7 }, // both ends are Sunday
] as const;

type Field = (typeof FIELDS)[number];

/**
 * Checks a cron expression: five fields of `*`, numbers, `a-b`, either of them with `/step`, and comma
 * lists (specification 4.5). Names, seconds and nicknames such as `@daily` are not part of it.
 *
 * @returns the fault, with the name of the field; undefined for a valid expression
 */
export function cronFault(expression: string): string | undefined {
  const parts = expression.trim().split(/\s+/);
  if (parts.length !== FIELDS.length || expression.trim() === "") {
    const count = expression.trim() === "" ? 0 : parts.length;
    return `it has ${count} of the 5 fields minute, hour, day of month, month, day of week`;
  }
  for (const [index, field] of FIELDS.entries()) {
    for (const item of parts[index]!.split(",")) {
      const numbers = numbersOf(item, field);
      if (typeof numbers === "string") {
        return `the field ${field.name} (${parts[index]}) ${numbers}`;
      }
    }
  }
  return undefined;
}

/** Whether a text is the name of an IANA time zone. Offsets such as `+02:00` are not: they have no summer time. */
export function isTimeZone(text: string): boolean {
  try {
    return /^[a-z]/i.test(text) && Temporal.Instant.fromEpochMilliseconds(0)
          .toZonedDateTimeISO(text).timeZoneId !== "";
  } catch {
    return false;
  }
}

/**
 * The first minute strictly after `after` (milliseconds) that an expression names, in a time zone; both day
 * fields must match. Undefined when there is none, as on 31 February. When the clocks change, an expression
 * without `*` and steps in minute and hour keeps to one run for each of its times: a time that does not exist is
 * due at the end of the gap, and one that comes twice at its first occurrence. Any other expression runs by the
 * clock on the wall, through both passes of a repeated hour.
 *
 * @throws SvcError `bad_cron` (exit 2)
 */
export function nextCron(expression: string, after: number, tz = "UTC"): number | undefined {
  const fault = cronFault(expression);
  if (fault !== undefined) {
    throw usageError(
      "bad_cron",
      `The cron expression ${JSON.stringify(expression)} is wrong: ${fault}.`,
      'Five fields in UTC, such as "30 3 * * 1-5" or "*/15 * * * *".',
    );
  }
  // As plain lists of numbers, so that the library's extensions to the grammar are never used. The steps of minute
  // and hour stay, as they decide how a change of the clocks counts.
  const lists = expression.trim().split(/\s+/).map((part, index) =>
    index < 2 && /[*/]/.test(part)
      ? part
      : part.split(",").map((item) => String(numbersOf(item, FIELDS[index]!))).join(",")
  );
  const cron = new Cron(lists.join(" "), {
    domAndDow: true,
    timezone: tz,
    mode: "5-part",
    fixedTimeRule: "no-wildcard",
  });
  return cron.nextRun(new Date(after))?.getTime();
}

/** The numbers that an item of a field stands for, or its fault. */
function numbersOf(item: string, { least, most }: Field): number[] | string {
  const pattern = /^(?:\*|(\d{1,4})(?:-(\d{1,4}))?)(?:\/(\d{1,4}))?$/;
  const match = pattern.exec(item);
  if (match === null) return `does not understand ${JSON.stringify(item)}`;
  const [from, to, step] = match.slice(1).map((text) =>
    text === undefined ? undefined : Number(text)
  );
  const wrong = [from, to].find((number) =>
    number !== undefined && (number < least || number > most)
  );
  if (wrong !== undefined) return `goes from ${least} to ${most}, and not to ${wrong}`;
  if (step !== undefined && from !== undefined && to === undefined) {
    return `has a step without a range: ${item}`;
  }
  const [first, last] = [from ?? least, to ?? from ?? most];
  if (first > last) return "has a range that runs backwards";
  if (step === 0) return "has a step of 0";
  if (step !== undefined && step > last - first + 1) {
    return `has a step wider than its range: ${item}`;
  }
  const length = Math.floor((last - first) / (step ?? 1)) + 1;
  return Array.from({ length }, (_, index) => first + index * (step ?? 1));
}
