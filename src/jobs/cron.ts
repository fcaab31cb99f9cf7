import { Cron } from "croner";
import { usageError } from "../platform/error.ts";

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
      const numbers = numbersOf(item, field);
      if (typeof numbers === "string") {
        return `the field ${field.name} (${parts[place]}) ${numbers}`;
      }
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
  // As plain lists of numbers, so that nothing but this grammar is ever understood.
  const lists = expression.trim().split(/\s+/).map((part, place) =>
    part.split(",").map((item) => String(numbersOf(item, FIELDS[place]!))).join(",")
  );
  const cron = new Cron(lists.join(" "), { domAndDow: true, timezone: "UTC", mode: "5-part" });
  return cron.nextRun(new Date(after))?.getTime();
}

/** The numbers that an item of a field stands for, or what is wrong with it. */
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
  return Array.from({ length }, (_, place) => first + place * (step ?? 1));
}
