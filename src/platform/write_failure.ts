import { errorMessage, SvcError } from "./error.ts";

/**
 * The error for a file that the operating system would not have written: the work has failed, whoever asked
 * for it (exit 1).
 *
 * @param what the file, or what it is for
 */
export function writeFailure(code: string, what: string, cause: unknown): SvcError {
  const message = `${what} cannot be written: ${errorMessage(cause).replace(/\.$/, "")}.`;
  return new SvcError(code, message, { hint: writeHint(cause), cause });
}

/** What a person can do about a write that failed; empty when nobody knows. */
export function writeHint(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return HINTS[code] ?? "";
}

const ACCESS = "Look at the owner and the mode of that file and of its folder.";
const FULL = "The disk is full, or your share of it: make room, then do it again.";
const HINTS: Record<string, string> = {
  ENOSPC: FULL,
  EDQUOT: FULL,
  EROFS: "That file system is read-only.",
  EACCES: ACCESS,
  EPERM: ACCESS,
};
