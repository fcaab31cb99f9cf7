import { LinearPattern } from "./linear_pattern.ts";

/** Finds a pattern in one line: the column of a match, or -1. */
export type LineSearch = (line: string) => number;

/**
 * Compiles a regular expression so that no line can keep it busy for long. JavaScript's own engine
 * backtracks, and a repetition inside a repetition can take it longer than the universe has lasted; it
 * only gets patterns that cannot do that. All others are matched in linear time.
 *
 * A leading `(?i)`, which other languages know, ignores case.
 *
 * @throws Error a sentence that says why the pattern cannot be used.
 */
export function compileLineSearch(pattern: string): LineSearch {
  const ignoreCase = pattern.startsWith("(?i)");
  const source = ignoreCase ? pattern.slice(4) : pattern;
  const flags = ignoreCase ? "i" : "";
  let regex: RegExp;
  try {
    regex = new RegExp(source, flags);
  } catch (error) {
    throw new Error(`invalid pattern: ${(error as Error).message}`);
  }
  if (backtracksLittle(source)) return (line) => line.search(regex);
  const linear = new LinearPattern(source, flags);
  return (line) => linear.search(line);
}

/** At most one repetition, of a single character, and few optional parts: quadratic at worst. */
function backtracksLittle(source: string): boolean {
  const bare = source.replace(/\\./gs, "x").replace(/\[\^?[^\]]*\]/g, "x");
  const repetitions = bare.match(/[*+{]/g)?.length ?? 0;
  const optional = bare.match(/\?/g)?.length ?? 0;
  return repetitions <= 1 && optional <= 8 && !/\)[*+{]/.test(bare);
}
