import fc from "fast-check";
import assert from "node:assert/strict";
import {
  checkSchedule,
  cronFault,
  nextCron,
  nextRun,
  readTime,
  scheduleFault,
} from "../../src/jobs/schedule.ts";
import { runs } from "../support/random.ts";

const MINUTE = 60_000;
const RANGES = [[0, 59], [0, 23], [1, 31], [1, 12], [0, 7]] as const;

/** An item of a field with the numbers that it matches. */
function item([least, most]: readonly [number, number]) {
  const number = fc.integer({ min: least, max: most });
  const range = fc.tuple(number, number).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
  const step = (size: number) => fc.integer({ min: 1, max: size });
  return fc.oneof(
    fc.constant({ text: "*", numbers: between(least, most, 1) }),
    number.map((n) => ({ text: `${n}`, numbers: [n] })),
    step(most - least + 1).map((n) => ({ text: `*/${n}`, numbers: between(least, most, n) })),
    range.map(([a, b]) => ({ text: `${a}-${b}`, numbers: between(a, b, 1) })),
    range.chain(([a, b]) =>
      step(b - a + 1).map((n) => ({ text: `${a}-${b}/${n}`, numbers: between(a, b, n) }))
    ),
  );
}

function field(range: readonly [number, number]) {
  return fc.array(item(range), { minLength: 1, maxLength: 3 }).map((items) => ({
    text: items.map(({ text }) => text).join(","),
    numbers: new Set(items.flatMap(({ numbers }) => numbers)),
  }));
}

const expression = fc.tuple(...RANGES.map(field));

Deno.test("property: the next time of a cron schedule is the first minute that all five fields match [4.5]", () => {
  const days = 200;
  fc.assert(
    fc.property(
      expression,
      fc.integer({
        min: Date.UTC(2023, 10, 1) / 1000,
        max: Date.UTC(2028, 2, 2) / 1000,
      }),
      (fields, seconds) => {
        const after = seconds * 1000;
        const expected = walk(fields.map(({ numbers }) => numbers), after, days);
        const found = nextCron(fields.map(({ text }) => text).join(" "), after);
        if (expected !== undefined) assert.equal(found, expected);
        else assert.ok(found === undefined || found > after + (days - 1) * 24 * 60 * MINUTE);
      },
    ),
    runs(300),
  );
});

Deno.test("a cron schedule finds 29 February across years, also combined with Monday [4.5]", () => {
  const next = (cron: string, after: number) => new Date(nextCron(cron, after)!).toISOString();
  assert.equal(next("0 0 29 2 *", Date.UTC(2024, 1, 29)), "2028-02-29T00:00:00.000Z");
  assert.equal(next("0 0 29 2 1", Date.UTC(2024, 1, 29)), "2044-02-29T00:00:00.000Z");
  assert.equal(next("0 0 29 2 *", Date.UTC(2096, 1, 29)), "2104-02-29T00:00:00.000Z");
});

Deno.test("Sunday is 0 and 7 in a cron schedule, and a range of days may end with it [4.5]", () => {
  const friday = Date.UTC(2026, 0, 2, 12);
  for (const days of ["0", "7", "0,7", "7-7"]) {
    assert.equal(nextCron(`0 0 * * ${days}`, friday), Date.UTC(2026, 0, 4));
  }
  assert.equal(nextCron("0 0 * * 6-7", friday), Date.UTC(2026, 0, 3));
});

Deno.test("the time zone of the machine has no effect on a schedule [2.6]", async () => {
  const cron = new URL("../../src/jobs/schedule.ts", import.meta.url).href;
  // Both clock changes in New York, where 02:30 does not exist, or 01:30 exists twice.
  const code = `import { nextCron } from ${JSON.stringify(cron)};
    const from = ["2026-03-08T05:00Z", "2026-11-01T04:00Z"].map(Date.parse);
    const all = [];
    for (const expression of ["30 1 * * *", "30 2 * * *", "30 6 * * *", "*/30 * 8 3 *"]) {
      for (let at of from) for (let n = 0; n < 6; n++) all.push(at = nextCron(expression, at));
    }
    console.log(new Date(from[0]).getTimezoneOffset(), JSON.stringify(all));`;
  const outputs = await Promise.all(["UTC", "America/New_York", "Asia/Kolkata"].map(async (TZ) => {
    const args = ["eval", "--quiet", code];
    const { stdout } = await new Deno.Command(Deno.execPath(), { args, env: { TZ } }).output();
    return new TextDecoder().decode(stdout).trim().split(" ");
  }));
  assert.deepEqual(outputs.map(([offset]) => offset), ["0", "300", "-330"]);
  const [times] = new Set(outputs.map(([, times]) => times!)).values().map((all) =>
    JSON.parse(all)
  );
  assert.deepEqual(new Set(outputs.map(([, times]) => times)).size, 1);
  assert.equal(times[0], Date.UTC(2026, 2, 9, 1, 30));
});

/** The next times of an expression, in UTC without seconds. */
function times(expression: string, tz: string, from: string, count: number): string[] {
  let at = Date.parse(from);
  return Array.from({ length: count }, () => {
    at = nextCron(expression, at, tz)!;
    return new Date(at).toISOString().slice(5, 16);
  });
}

Deno.test("a time that does not exist on a day is due at the end of the gap, once", () => {
  const cases: [tz: string, cron: string, from: string, expected: string[]][] = [
    ["Europe/Berlin", "30 2 * * *", "2026-03-28T00:00Z", [
      "03-28T01:30",
      "03-29T01:00", // 03:00 in summer time
      "03-30T00:30",
    ]],
    ["Europe/Berlin", "0,30 2,14 * * *", "2026-03-28T20:00Z", [
      "03-29T01:00",
      "03-29T12:00",
      "03-29T12:30",
    ]],
    ["Australia/Sydney", "30 2 * * *", "2026-10-02T17:00Z", ["10-03T16:00", "10-04T15:30"]],
    // Lord Howe moves by half an hour: 02:15 does not exist, and 02:30 does.
    ["Australia/Lord_Howe", "15 2 * * *", "2026-10-02T16:00Z", ["10-03T15:30", "10-04T15:15"]],
    ["Australia/Lord_Howe", "45 2 * * *", "2026-10-02T17:00Z", ["10-03T15:45", "10-04T15:45"]],
    ["America/Sao_Paulo", "0 0 * * *", "2018-11-03T04:00Z", ["11-04T03:00", "11-05T02:00"]],
  ];
  for (const [tz, cron, from, expected] of cases) {
    assert.deepEqual(times(cron, tz, from, expected.length), expected, `${cron} ${tz}`);
  }
});

Deno.test("a time that comes twice on a day is due at its first occurrence only", () => {
  const cases: [tz: string, cron: string, from: string, expected: string[]][] = [
    ["Europe/Berlin", "30 2 * * *", "2026-10-24T01:00Z", ["10-25T00:30", "10-26T01:30"]],
    ["Europe/Berlin", "0,30 2 * * *", "2026-10-24T01:00Z", [
      "10-25T00:00",
      "10-25T00:30",
      "10-26T01:00",
    ]],
    ["Australia/Sydney", "30 2 * * *", "2026-04-03T16:00Z", ["04-04T15:30", "04-05T16:30"]],
    ["Australia/Lord_Howe", "45 1 * * *", "2026-04-03T15:00Z", ["04-04T14:45", "04-05T15:15"]],
  ];
  for (const [tz, cron, from, expected] of cases) {
    assert.deepEqual(times(cron, tz, from, expected.length), expected, `${cron} ${tz}`);
  }
});

Deno.test("an expression with steps or any hour runs through both passes of a repeated hour", () => {
  const quarters = times("*/15 * * * *", "Europe/Berlin", "2026-10-24T23:59Z", 12);
  assert.deepEqual([quarters[0], quarters[4], quarters[11]], [
    "10-25T00:00",
    "10-25T01:00",
    "10-25T02:45",
  ]);
  assert.deepEqual(times("0 */2 * * *", "Europe/Berlin", "2026-10-24T21:00Z", 4), [
    "10-24T22:00",
    "10-25T00:00", // 02:00 in summer time
    "10-25T01:00", // and in winter time
    "10-25T03:00",
  ]);
  assert.deepEqual(times("*/10 * * * *", "Australia/Lord_Howe", "2026-04-04T14:55Z", 4), [
    "04-04T15:00",
    "04-04T15:10",
    "04-04T15:20",
    "04-04T15:30",
  ]);
});

Deno.test("the time zone of a schedule is an IANA name, and goes with cron [4.5]", () => {
  assert.equal(scheduleFault({ cron: "0 3 * * *", tz: "Europe/Berlin" }), undefined);
  assert.equal(scheduleFault({ cron: "0 3 * * *", tz: "UTC" }), undefined);
  for (const tz of ["Europe/Berln", "", "+02:00", "CEST", "Berlin"]) {
    const hint = tz === "Europe/Berln" ? 'Did you mean "Europe/Berlin"?' : undefined;
    assert.throws(
      () => checkSchedule({ cron: "0 3 * * *", tz }),
      { exit: 2, ...(hint && { hint }), message: `${JSON.stringify(tz)} is no IANA time zone.` },
    );
  }
  assert.match(scheduleFault({ interval: 60, tz: "UTC" })!, /for cron/);
  assert.match(scheduleFault({ at: "2031-01-01", tz: "UTC" })!, /may name its offset/);
});

Deno.test("both day fields of a cron schedule have to match [4.5]", () => {
  assert.equal(nextCron("0 0 13 * 5", Date.UTC(2026, 0, 1)), Date.UTC(2026, 1, 13));
});

Deno.test("the next run is strictly after now, and missed times are not made up for [4.5]", () => {
  const now = Date.UTC(2026, 0, 2, 3, 30);
  assert.equal(nextRun({ cron: "30 3 * * *" }, { now, ran: false }), now + 24 * 60 * MINUTE);
  assert.equal(nextRun({ cron: "30 3 * * *" }, { now: now - 1, ran: false }), now);
  assert.equal(nextRun({ interval: 90 }, { now, ran: true }), now + 90_000);
});

Deno.test("a one-shot schedule is due until it has run [4.5]", () => {
  const at = "2026-01-02T03:30";
  const time = Date.UTC(2026, 0, 2, 3, 30);
  assert.equal(nextRun({ at }, { now: time + 1, ran: false }), time);
  assert.equal(nextRun({ at }, { now: time - 1, ran: true }), undefined);
});

Deno.test("an invalid cron expression is rejected with the name of the field [4.5]", () => {
  const cases: [string, RegExp][] = [
    ["", /0 of the 5 fields/],
    ["* * * *", /4 of the 5 fields/],
    ["0 * * * * *", /6 of the 5 fields/],
    ["@daily", /1 of the 5 fields/],
    ["60 * * * *", /field minute \(60\) goes from 0 to 59/],
    ["* 24 * * *", /field hour/],
    ["* * 0 * *", /field day of month \(0\) goes from 1 to 31/],
    ["* * 32 * *", /field day of month/],
    ["* * L * *", /field day of month \(L\) does not understand "L"/],
    ["* * ? * *", /field day of month/],
    ["* * * JAN *", /field month/],
    ["* * * 13 *", /field month/],
    ["* * * * MON", /field day of week/],
    ["* * * * 8", /field day of week \(8\) goes from 0 to 7/],
    ["* * * * 5#2", /field day of week/],
    ["5/10 * * * *", /field minute \(5\/10\) has a step without a range/],
    ["*/0 * * * *", /field minute.*step of 0/],
    ["*/61 * * * *", /field minute.*wider than its range/],
    ["30-10 * * * *", /field minute.*backwards/],
    ["1,,2 * * * *", /field minute \(1,,2\) does not understand ""/],
    ["1- * * * *", /field minute/],
    ["-1 * * * *", /field minute/],
    ["1.5 * * * *", /field minute/],
    ["** * * * *", /field minute/],
  ];
  for (const [cron, message] of cases) {
    assert.match(cronFault(cron) ?? "accepted", message, cron);
    assert.throws(() => checkSchedule({ cron }), { code: "bad_cron", exit: 2 });
  }
  for (const cron of ["*/15 * * * *", "0 0 1,15 1-12/2 0-7", " 5  4\t* * 7 ", "59 23 31 12 6"]) {
    assert.equal(cronFault(cron), undefined);
  }
});

Deno.test("a cron expression that is never due is rejected [4.5]", () => {
  assert.equal(nextCron("0 0 31 2 *", 0), undefined);
  assert.throws(() => checkSchedule({ cron: "0 0 31 2 *" }), /never comes/);
});

Deno.test("a schedule is exactly one of cron, interval and at [2.6, 4.5, 8]", () => {
  assert.match(scheduleFault({})!, /0 are given/);
  assert.match(scheduleFault({ interval: 60, at: "2026-01-01" })!, /2 are given/);
  for (const interval of [59, 60.5, 0, -60, NaN]) {
    assert.match(scheduleFault({ interval })!, /at least 60 whole seconds/);
  }
  assert.equal(scheduleFault({ interval: 60 }), undefined);
});

Deno.test("a datetime of a schedule without an offset is in UTC, and days that do not exist are rejected [4.5]", () => {
  const noon = Date.UTC(2026, 11, 24, 12);
  const good = {
    "2026-12-24T12:00": noon,
    "2026-12-24 12:00:00": noon,
    "2026-12-24T12:00:00.000Z": noon,
    "2026-12-24T14:00:00+02:00": noon,
    "2026-12-24T14:00+0200": noon,
    "2026-12-24T14:00+02": noon,
    "2026-12-24": noon - 12 * 60 * MINUTE,
  };
  for (const [text, time] of Object.entries(good)) assert.equal(readTime(text), time, text);
  const bad = [
    "",
    "tomorrow",
    "2026-02-30",
    "2026-13-01",
    "2026-02-30T12:00:00.000Z",
    "2026-13-01T12:00:00.000Z",
    "2026-12-24T25:00:00.000Z",
    "2026-12-24T25:00",
    "12:00",
    "1766577600",
  ];
  for (const text of bad) assert.equal(readTime(text), undefined, text);
});

/** The first minute strictly after `after` and within `days` that every field matches. */
function walk(fields: Set<number>[], after: number, days: number): number | undefined {
  const [minutes, hours, monthDays, months, weekDays] = fields as [
    Set<number>,
    Set<number>,
    Set<number>,
    Set<number>,
    Set<number>,
  ];
  const first = (Math.floor(after / MINUTE) + 1) * MINUTE;
  for (let at = first; at < first + days * 24 * 60 * MINUTE; at += MINUTE) {
    const date = new Date(at);
    const weekDay = date.getUTCDay();
    if (
      minutes.has(date.getUTCMinutes()) && hours.has(date.getUTCHours()) &&
      monthDays.has(date.getUTCDate()) && months.has(date.getUTCMonth() + 1) &&
      (weekDays.has(weekDay) || (weekDay === 0 && weekDays.has(7)))
    ) return at;
  }
  return undefined;
}

function between(from: number, to: number, step: number): number[] {
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => from + i * step);
}
