import { LinearPattern, requiredText } from "./linear_pattern.ts";

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
  const { source, flags } = split(pattern);
  if (source.length > MAX_PATTERN) {
    throw new Error(`the pattern has more than ${MAX_PATTERN} characters`);
  }
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

/** A quick look at a whole file, which tells whether a line of it can match at all. */
export interface QuickLook {
  source: string;
  flags: string;
  /** Looks at each line by itself, since the pattern would take too long over the whole text. */
  by_line: boolean;
}

/** The quick look for a pattern that {@linkcode compileLineSearch} took, if there is one. */
export function quickLook(pattern: string): QuickLook | undefined {
  const { source, flags } = split(pattern);
  const text = requiredText(source, flags);
  if (text !== "") {
    return { source: text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), flags, by_line: false };
  }
  if (!backtracksLittle(source)) return undefined;
  // Without endless repetition the whole text takes no longer than its lines. What `m` adds to `^` and
  // `$`, and matches over several lines, only make more files candidates; look-around could lose some.
  const by_line = /[*+]|\{\d+,\}|\(\?[=!<]/.test(source);
  return { source, flags: by_line ? flags : `${flags}m`, by_line };
}

/** The pattern without a leading `(?i)`, and what that says in JavaScript. */
function split(pattern: string): { source: string; flags: string } {
  const ignoreCase = pattern.startsWith("(?i)");
  return { source: ignoreCase ? pattern.slice(4) : pattern, flags: ignoreCase ? "i" : "" };
}

/** Characters of a pattern; what reads it goes one call deeper for each bracket. */
const MAX_PATTERN = 1000;

/**
 * At most one repetition, of a single character, and few places where one of several ways is taken:
 * quadratic at worst. Alternatives outside of groups are tried one after the other and multiply nothing.
 */
function backtracksLittle(source: string): boolean {
  const refersBack = /\\[1-9k]/.test(source);
  const bare = source.replace(/\\./gs, "x").replace(/\[\^?[^\]]*\]/g, "x")
    .replace(/\(\?(?:[:=!]|<[=!]|<[^>]*>)/g, "(");
  const repetitions = bare.match(/[*+{]/g)?.length ?? 0;
  const ways = bare.match(bare.includes("(") ? /[?|]/g : /\?/g)?.length ?? 0;
  return repetitions <= (refersBack ? 0 : 1) && ways <= 4 && !/\)[*+{]/.test(bare);
}
