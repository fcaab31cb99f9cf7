import assert from "node:assert/strict";
import fc from "fast-check";
import { announcedTime, backoff } from "../../src/providers/retry.ts";

Deno.test("backoff doubles from 1 second to 5 minutes; jitter subtracts up to a half", () => {
  const delays = [0, 1, 2, 3, 4, 5, 8, 9, 50].map((n) => backoff(n, () => 0));
  assert.deepEqual(delays, [1, 2, 4, 8, 16, 32, 256, 300, 300]);
  assert.equal(backoff(2, () => 0.5), 3);
  assert.equal(backoff(2, () => 1), 2);
});

Deno.test("announced times are read in every common form", () => {
  const now = Date.UTC(2026, 0, 2, 3, 4, 5);
  const seconds = (text: string, headers: Record<string, string> = {}) => {
    const said = { status: 429, headers: new Headers(headers), fields: [], text };
    const at = announcedTime(said, now);
    return at === undefined ? undefined : (at - now) / 1000;
  };
  const forms: [value: string, seconds: number | undefined][] = [
    ["12", 12],
    [" 1.5 ", 1.5],
    ["1.5s", 1.5],
    ["6m0s", 360],
    ["1h2m3s", 3723],
    ["250ms", 0.25],
    ["2d", 172_800],
    ["2026-01-02T03:04:35Z", 30],
    ["2026-01-02T04:04:05+01:00", undefined],
    ["2026-01-02T05:04:35+02:00", 30],
    [String(now / 1000 + 30), 30],
    [String(now + 30_000), 30],
    [new Date(now + 30_000).toUTCString(), 30],
    ["-5", undefined],
    ["soon", undefined],
    ["0", undefined],
    ["", undefined],
  ];
  for (const [value, expected] of forms) {
    assert.equal(seconds("", { "x-ratelimit-reset-requests": value }), expected, value);
    assert.equal(seconds("", { "retry-after": value }), expected, value);
  }
  const words: [text: string, seconds: number | undefined][] = [
    ["Please try again in 9m38s.", 578],
    ["Please try again in 1h0m0.5s", 3600.5],
    ["retry after 30 seconds", 30],
    ["Your limit resets in 3 hours", 10_800],
    ["Please wait 2 minutes", 120],
    ["It will reset at 2026-01-02 03:05:05", 60],
    ["You will regain access on 2026-01-02 at 04:04:05 UTC", 3600],
    ["Try again in 400 days", undefined],
    ["Please try again in an hour", 3600],
    ["Try again in 2 hours and 5 minutes", 7500],
    ["You are blocked until 2026-01-02T03:05:05Z", 60],
    ["try again later", undefined],
    ["It takes 5 minutes", undefined],
  ];
  for (const [text, expected] of words) assert.equal(seconds(text), expected, text);
});

/** The next time of a clock in the zone of this machine. */
function localTime(now: number, hours: number, minutes: number): number {
  const day = new Date(now);
  day.setHours(hours, minutes, 0, 0);
  return day.getTime() > now ? day.getTime() : day.setDate(day.getDate() + 1);
}

Deno.test("a clock time without a date is the next one in its zone, or the local one [7.2]", () => {
  const now = Date.UTC(2026, 0, 2, 3, 4, 5);
  const utc = (day: number, hours: number, minutes = 0) => Date.UTC(2026, 0, day, hours, minutes);
  const words: [text: string, at: number | undefined][] = [
    ["You've hit your usage limit. Try again at 7:58 PM.", localTime(now, 19, 58)],
    ["try again at 7:58 PM", localTime(now, 19, 58)],
    ["Limits will reset at 9:30 AM. View your usage details.", localTime(now, 9, 30)],
    ["Your limit will reset at 12am.", localTime(now, 0, 0)],
    ["available again at 12:15 p.m.", localTime(now, 12, 15)],
    ["or try again at Jan 20, 2026, 7:38 AM.", new Date(2026, 0, 20, 7, 38).getTime()],
    ["try again at Feb 3rd, 2026 11:05 PM", new Date(2026, 1, 3, 23, 5).getTime()],
    ["Your rate limit resets on January 3, 2026, 11:43 AM UTC", utc(3, 11, 43)],
    ["You've hit your session limit · resets 8:30pm (Asia/Tokyo)", utc(2, 11, 30)],
    ["Your limit will reset at 3pm (America/Santiago).", utc(2, 18)],
    ["Your limit will reset at 1pm (Etc/GMT+5).", utc(2, 18)],
    ["Your limit will reset at 10pm (America/New_York)", utc(3, 3)],
    ["try again at 03:10 UTC", utc(2, 3, 10)],
    ["Please retry after 03:00:00 GMT", utc(3, 3)],
    ["Maintenance until 5:30 (UTC+2)", utc(2, 3, 30)],
    ["try again at 09:00 +05:30", utc(2, 3, 30)],
    ["try again at 11:00 PM PDT", utc(2, 7)],
    ["try again at 03:04 UTC", utc(2, 3, 5)], // it is 03:04:05: the minute has not ended
    ["try again at 7:58 PM (Mars/Olympus)", undefined],
    ["try again at 13pm", undefined],
    ["try again at 24:00", undefined],
    ["try again at 7:75 PM", undefined],
    ["try again at 7", undefined],
    ["it was asked at 7:58 PM", undefined],
    ["try again in 30 seconds, at 7:58 PM", now + 30_000],
  ];
  for (const [text, expected] of words) {
    const at = announcedTime({ status: 429, fields: [], text }, now);
    assert.equal(
      at && new Date(at).toISOString(),
      expected && new Date(expected).toISOString(),
      text,
    );
  }
});

Deno.test("property: a clock time is never in the past and at most 24 hours away [7.2]", () => {
  const zones = ["", " UTC", " (Asia/Kolkata)", " (America/New_York)", " (UTC-9:30)", " CET"];
  fc.assert(fc.property(
    fc.integer({ min: Date.UTC(2025, 0, 1), max: Date.UTC(2027, 0, 1) }),
    fc.integer({ min: 1, max: 12 }),
    fc.integer({ min: 0, max: 59 }),
    fc.constantFrom("AM", "pm"),
    fc.constantFrom(...zones),
    (now, hours, minutes, half, zone) => {
      const text = `try again at ${hours}:${String(minutes).padStart(2, "0")} ${half}${zone}`;
      const at = announcedTime({ status: 429, fields: [], text }, now)!;
      assert.ok(at > now && at - now <= 86_400_000, `${text} at ${new Date(now).toISOString()}`);
    },
  ));
});

Deno.test("the fields of an error body announce a time under many names", () => {
  const now = Date.UTC(2026, 0, 2, 3, 4, 5);
  const fields: [name: string, value: string | number, seconds: number | undefined][] = [
    ["retry_after", 30, 30],
    ["retry_after_seconds", "30", 30],
    ["retryAfter", 30, 30],
    ["retry_after_ms", 1500, 1.5],
    ["retryAfterMs", 1500, 1.5],
    ["retryDelay", "38s", 38],
    ["resets_in_seconds", 60, 60],
    ["resets_at", now / 1000 + 60, 60],
    ["resetAt", now + 60_000, 60],
    ["reset_time", "2026-01-02T03:05:05Z", 60],
    ["reset", now / 1000 + 60, 60],
    ["retries", 3, undefined],
    ["reset_url", "https://h.test", undefined],
  ];
  for (const [name, value, expected] of fields) {
    const at = announcedTime({ status: 429, fields: [[name, value]], text: "" }, now);
    assert.equal(at && (at - now) / 1000, expected, name);
  }
});

Deno.test("the longest of several announced times counts, and limits that are not used up do not", () => {
  const now = 1_000_000;
  const at = (headers: Record<string, string>, text = "") =>
    announcedTime({ status: 429, headers: new Headers(headers), fields: [], text }, now);
  assert.equal(at({ "retry-after": "5" }, "try again in 20s"), now + 20_000);
  assert.equal(at({ "retry-after": "5", "x-ratelimit-reset-tokens": "60s" }), now + 5000);
  const limits = { "x-ratelimit-reset-requests": "6m0s", "x-ratelimit-reset-tokens": "1.5s" };
  assert.equal(at(limits), now + 360_000);
  assert.equal(at({ ...limits, "x-ratelimit-remaining-requests": "3" }), now + 1500);
  const said = { headers: new Headers(limits), fields: [], text: "" };
  assert.equal(announcedTime({ ...said, status: 503 }, now), undefined);
});
