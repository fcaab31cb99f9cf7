/**
 * Whether a reviewer's answer passes the work: its last line that starts with `mark` is followed by
 * `pass`. Case and Markdown around the words do not count; an answer without such a line is no pass, and
 * neither is one that only passes under a condition.
 *
 * @param mark what the line of the verdict starts with (`loop.verdict` of a team)
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * assert(passes("All is well.\n\n**Verdict:** PASS.", "VERDICT:"));
 * assert(!passes("VERDICT: pass or fail?", "VERDICT:"));
 * ```
 */
export function passes(answer: string, mark: string): boolean {
  const start = plain(mark);
  const lines = answer.split(/\r\n|[\n\r\u2028\u2029]/).map(plain).filter((line) => line !== "");
  const at = lines.findLastIndex((line) => line.startsWith(start));
  if (at < 0) return false;
  // Some put the word below a heading.
  const said = lines[at]!.slice(start.length).trim() || (lines[at + 1] ?? "");
  const [, rest] = /^[^\p{L}\p{N}]*pass(?:ed|es)?(?![\p{L}\p{N}_])(.*)$/u.exec(said) ?? [];
  return rest !== undefined && /^\s*(?:[^\p{L}\p{N}\s/|].*)?$/u.test(rest) &&
    !/\bfail(?:s|ed)?\b/.test(rest);
}

/** A line in lower case, without Markdown and what a list or a quotation starts it with. */
function plain(line: string): string {
  return line.normalize("NFKC").toLowerCase().replace(/[*_`~#>]/g, "")
    .replace(/\s+/g, " ").replace(/^ ?(?:[-+•] )?/, "").replace(/ :/g, ":").trim();
}
