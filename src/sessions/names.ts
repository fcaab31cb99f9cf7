import type { Clock } from "../platform/clock.ts";
import { usageError } from "../platform/error.ts";
import { mintId } from "../platform/files.ts";

/** What a minted session is for: an interactive or headless one, a sub-agent's, a job run's. */
export type SessionKind = "ses" | "sub" | "job";

const MINTED = /^(?:ses|sub|job)_\d{8}_\d{6}_([0-9a-z]{6})$/;
/** Leaves room in a 255-byte file name for the hidden files beside a session. */
const LONGEST_NAME = 200;

/** A new name, `<kind>_<YYYYMMDD>_<HHMMSS>_<id>` in UTC (specification 2.1). */
export function mintName(kind: SessionKind, clock: Clock): string {
  const [date, time] = new Date(clock.now()).toISOString().split("T") as [string, string];
  return `${kind}_${date.replaceAll("-", "")}_${time.slice(0, 8).replaceAll(":", "")}_${mintId()}`;
}

/** The id a minted name ends with; empty for a name that a user chose (specification 2.1). */
export function idOf(name: string): string {
  return MINTED.exec(name)?.[1] ?? "";
}

/** Whether `name` is a plain file name, which cannot lead out of the sessions directory. */
export function isSessionName(name: string): boolean {
  return name !== "" && !name.startsWith(".") && !/[\/\\\p{Cc}]/u.test(name) &&
    name.isWellFormed() && new TextEncoder().encode(name).length <= LONGEST_NAME;
}

/**
 * Refuses a name that is not a plain file name.
 *
 * @throws SvcError `session_name` (exit 2)
 */
export function checkSessionName(name: string): void {
  if (isSessionName(name)) return;
  throw usageError(
    "session_name",
    `${JSON.stringify(name.slice(0, 80))} cannot be the name of a session.`,
    `Use up to ${LONGEST_NAME} bytes without slashes, control characters or a leading dot.`,
  );
}
