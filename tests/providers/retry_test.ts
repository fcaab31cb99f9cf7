import assert from "node:assert/strict";
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
