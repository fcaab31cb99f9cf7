import { errorMessage } from "../platform/error.ts";

/** Characters of what a plugin throws that are repeated. */
const MAX_LENGTH = 1000;

/** What a plugin threw, as a part of a sentence. */
export function reasonOf(error: unknown): string {
  const reason = errorMessage(error).replace(/\.$/, "");
  return reason.length > MAX_LENGTH ? `${reason.slice(0, MAX_LENGTH).toWellFormed()}…` : reason;
}
