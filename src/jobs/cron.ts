import { Cron } from "croner";
import { usageError } from "../platform/error.ts";

const FIELDS = [
  { name: "minute", least: 0, most: 59 },
  { name: "hour", least: 0, most: 23 },
  { name: "day of month", least: 1, most: 31 },
  { name: "month", least: 1, most: 12 },
  { name: "day of week", least: 0, most: 7 },
] as const;

type Field = (typeof FIELDS)[number];

/**
 * Checks a cron expression: five fields of `*`, numbers, `a-b`, either of them with `/step`, and comma
 * lists (specification 4.5). Names, seconds and nicknames such as `@daily` are not part of it.
 *
 * @returns what is wrong, naming the field at fault; undefined when nothing is
 */
export function cronFault(expression: string): string | undefined {
  const parts = expression.trim().split(/\s+/);
  if (parts.length !== FIELDS.length || expression.trim() === "") {
    const count = expression.trim() === "" ? 0 : parts.length;
    return `it has ${count} of the 5 fields minute, hour, day of month, month, day of week`;
  }
  for (const [place, field] of FIELDS.entries()) {
    for (const item of parts[place]!.split(",")) {
      const fault = itemFault(item, field);
      if (fault !== undefined) return `the field ${field.name} (${parts[place]}) ${fault}`;
    }
  }
  return undefined;
}

/**
 * The first minute strictly after `after` (milliseconds) that an expression names, in UTC; both day
 * fields must match. Undefined when there is none, as on 31 February.
 *
 * @throws SvcError `bad_cron` (exit 2)
 */
export function nextCron(expression: string, after: number): number | undefined {
  const fault = cronFault(expression);
  if (fault !== undefined) {
    throw usageError(
      "bad_cron",
      `The cron expression ${JSON.stringify(expression)} is wrong: ${fault}.`,
      'Five fields in UTC, such as "30 3 * * 1-5" or "*/15 * * * *".',
    );
  }
  const cron = new Cron(expression.trim(), { domAndDow: true, timezone: "UTC", mode: "5-part" });
  return cron.nextRun(new Date(after))?.getTime();
}

function itemFault(item: string, { least, most }: Field): string | undefined {
  const [, range, from, to, step] = /^(\*|(\d{1,4})(?:-(\d{1,4}))?)(?:\/(\d{1,4}))?$/.exec(item) ??
    [];
  if (range === undefined) return `does not understand ${JSON.stringify(item)}`;
  for (const number of [from, to]) {
    if (number === undefined) continue;
    if (Number(number) < least || Number(number) > most) {
      return `goes from ${least} to ${most}, and not to ${number}`;
    }
  }
  if (to !== undefined && Number(from) > Number(to)) return `has a range that runs backwards`;
  if (step === undefined) return undefined;
  if (range !== "*" && to === undefined) return `has a step without a range: ${item}`;
  const size = to === undefined ? most - least + 1 : Number(to) - Number(from) + 1;
  if (Number(step) < 1) return "has a step of 0";
  if (Number(step) > size) return `has a step that is wider than its range: ${item}`;
  return undefined;
}
