import type { Clock } from "../platform/clock.ts";

/** Whether an answer with this status may be asked for again (specification 7.2). */
export function isRetryable(status: number): boolean {
  return status === 429 || status >= 500;
}

/**
 * Seconds to wait before the next attempt: what `Retry-After` says (seconds or an HTTP date), else
 * 1 second doubling to 30 with each attempt (from 0), shortened at random by up to a half.
 */
export function retryDelay(
  retry_after: string | null,
  attempt: number,
  clock: Clock,
  random: () => number,
): number {
  const asked = parseRetryAfter(retry_after ?? "", clock.now());
  // A backend that says "at once" is still given a moment, or the budget would never be used up.
  if (asked !== undefined && asked > 0) return Math.max(asked, SHORTEST);
  return Math.min(2 ** attempt, LONGEST) * (1 - random() / 2);
}

/** What an answer says of when to ask again, as `Retry-After` would say it. */
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
