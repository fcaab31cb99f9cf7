import assert from "node:assert/strict";
import { isRetryable, retryDelay } from "../../src/providers/retry.ts";
import { TestClock } from "./support.ts";

const clock = new TestClock();

Deno.test("only 429 and 5xx are retried", () => {
  const statuses = [400, 401, 403, 404, 408, 422, 429, 500, 502, 503, 504, 529];
  assert.deepEqual(statuses.filter(isRetryable), [429, 500, 502, 503, 504, 529]);
});

Deno.test("Retry-After is seconds or a date, without jitter", () => {
  const after = (header: string) => retryDelay(header, 0, clock, () => 1);
  assert.equal(after("12"), 12);
  assert.equal(after(" 1.5 "), 1.5);
  assert.equal(after(new Date(clock.now() + 90_000).toUTCString()), 90);
});

Deno.test("without a future time in Retry-After, backoff applies", () => {
  for (const header of ["0", "soon", "", "-5", new Date(clock.now() - 5000).toUTCString(), null]) {
    assert.equal(retryDelay(header, 1, clock, () => 0), 2);
  }
  assert.equal(retryDelay("0.001", 0, clock, () => 0), 0.5);
});

Deno.test("backoff doubles from 1 to 30 seconds; jitter subtracts up to a half", () => {
  const delays = [0, 1, 2, 3, 4, 5, 50].map((n) => retryDelay(null, n, clock, () => 0));
  assert.deepEqual(delays, [1, 2, 4, 8, 16, 30, 30]);
  assert.equal(retryDelay(null, 2, clock, () => 0.5), 3);
  assert.equal(retryDelay(null, 2, clock, () => 1), 2);
});
