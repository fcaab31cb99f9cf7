import type { Clock } from "../platform/clock.ts";

/** Whether a `last_used` stamp is less than an hour old: not every run is worth a write to disk. */
export function isRecent(last_used: string, clock: Clock): boolean {
  const age = clock.now() - Date.parse(last_used);
  return age >= 0 && age < 3_600_000;
}
