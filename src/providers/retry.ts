import type { Clock } from "../platform/clock.ts";

/**
 * Whether a request with this answer is sent again (specification 7.2), within the setting `retry_budget`.
 * Streams that break or bring nothing are retried by `engine/reply.ts`, up to the setting `stream_retries`.
 */
export function isRetryable(status: number): boolean {
  return status === 429 || status >= 500;
}

/**
 * Seconds to wait before the next attempt: the value of `Retry-After` (seconds or an HTTP date), else
 * 1 second doubling to 30 with each attempt (from 0), shortened at random by up to a half.
 */
export function retryDelay(
  retry_after: string | null,
  attempt: number,
  clock: Clock,
  random: () => number,
): number {
  const asked = parseRetryAfter(retry_after ?? "", clock.now());
  // A minimum also for "retry at once": otherwise the retry budget would never be used up.
  if (asked !== undefined && asked > 0) return Math.max(asked, SHORTEST);
  return Math.min(2 ** attempt, LONGEST) * (1 - random() / 2);
}

/** The time to wait as a value of `Retry-After`; some vendors send it in milliseconds. */
export function retryAfter(headers: Headers): string | null {
  const ms = headers.get("retry-after-ms") ?? headers.get("x-ms-retry-after-ms") ?? "";
  return /^\d+(\.\d+)?$/.test(ms.trim()) ? String(Number(ms) / 1000) : headers.get("retry-after");
}

const SHORTEST = 0.5;
const LONGEST = 30;

function parseRetryAfter(value: string, now: number): number | undefined {
  const text = value.trim();
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.ceil((date - now) / 1000);
}
