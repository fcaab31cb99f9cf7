import type { LineProgram } from "./line_program.ts";
import { LinearPattern } from "./linear_pattern.ts";
import { longestLiteral, patternTree } from "./pattern_tree.ts";
import type { Pace } from "./pace.ts";

/** Finds a pattern in one line: the column of a match, or -1; a promise where that takes its time. */
export type LineSearch = (line: string, pace: Pace) => number | Promise<number>;

/**
 * Compiles a regular expression so that no line can keep it busy for long. JavaScript's own engine
 * backtracks, and a repetition inside a repetition can take it longer than the universe has lasted; it
 * only gets patterns and lines with which it cannot take long. All others are matched in linear time, and
 * in slices.
 *
 * A leading `(?i)`, which other languages know, ignores case.
 *
 * @throws Error a sentence that says why the pattern cannot be used.
 */
export function compileLineSearch(pattern: string): LineSearch {
  const { regex, linear, reach } = compile(pattern);
  return (line, pace) => {
    if (line.length <= reach.whole) return line.search(regex);
    const search = linear?.search(line) ?? searchFrom(line.slice(0, reach.start), regex);
    const { done, value } = search.next();
    return done ? value : inSlices(search, pace);
  };
}

/** A quick look at a whole file, which tells whether a line of it can match at all. */
export type QuickLook =
  /** Looks for text that every match holds. */
  | { kind: "text"; source: string; flags: string }
  | { kind: "linear"; program: LineProgram }
  | { kind: "lines"; source: string; flags: string; reach: Reach };

/** The quick look for a pattern that {@linkcode compileLineSearch} takes. */
export function quickLook(pattern: string): QuickLook {
  const { source, flags } = split(pattern);
  const text = requiredText(source);
  if (text !== "") {
    return { kind: "text", source: text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), flags };
  }
  const { linear, reach } = compile(pattern);
  return linear
    ? { kind: "linear", program: linear.program }
    : { kind: "lines", source, flags, reach };
}

/** The longest lines that JavaScript's own engine searches within `NATIVE_STEPS`. */
interface Reach {
  /** From every start. */
  whole: number;
  /** From one start. */
  start: number;
}

/** Steps that JavaScript's own engine may take in one go: a millisecond or two. */
const NATIVE_STEPS = 300_000;
/** Characters of a pattern; what reads it goes one call deeper for each bracket. */
const MAX_PATTERN = 1000;

interface Compiled {
  regex: RegExp;
  /** Undefined where only JavaScript's own engine can match the pattern. */
  linear: LinearPattern | undefined;
  reach: Reach;
}

function compile(pattern: string): Compiled {
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
  const reach = nativeReach(source);
  try {
    return { regex, linear: new LinearPattern(source, flags), reach };
  } catch (error) {
    if (reach.start === 0) throw error;
    return { regex, linear: undefined, reach };
  }
}

/** The pattern without a leading `(?i)`, and what that says in JavaScript. */
function split(pattern: string): { source: string; flags: string } {
  const ignoreCase = pattern.startsWith("(?i)");
  return { source: ignoreCase ? pattern.slice(4) : pattern, flags: ignoreCase ? "i" : "" };
}

function requiredText(source: string): string {
  try {
    return longestLiteral(patternTree(source));
  } catch {
    return ""; // look-around and back-references are not read here
  }
}

/**
 * How far JavaScript's own engine gets at worst: nowhere, unless the pattern has at most one repetition,
 * of a single character, and few places where one of several ways is taken. Alternatives outside of
 * groups are tried one after the other and multiply nothing.
 */
function nativeReach(source: string): Reach {
  const refersBack = /\\[1-9k]/.test(source);
  const bare = source.replace(/\\./gs, "x").replace(/\[\^?[^\]]*\]/g, "x")
    .replace(/\(\?(?:[:=!]|<[=!]|<[^>]*>)/g, "(");
  const repetitions = bare.match(/[*+{]/g)?.length ?? 0;
  const ways = bare.match(bare.includes("(") ? /[?|]/g : /\?/g)?.length ?? 0;
  if (repetitions > (refersBack ? 0 : 1) || ways > 4 || /\)[*+{]/.test(bare)) {
    return { whole: 0, start: 0 };
  }
  const start = Math.floor(NATIVE_STEPS / (Math.max(1, bare.length) * 2 ** ways));
  // With a repetition, or a reference to what may be long, each start can take the rest of the line.
  return { whole: repetitions === 0 && !refersBack ? start : Math.floor(Math.sqrt(start)), start };
}

/** Searches start by start, as many in a slice as `NATIVE_STEPS` allows. */
function* searchFrom(line: string, regex: RegExp): Generator<void, number> {
  const here = new RegExp(regex, `${regex.flags}y`);
  for (let at = 0; at <= line.length; at++) {
    here.lastIndex = at;
    if (here.test(line)) return at;
    yield;
  }
  return -1;
}

async function inSlices(search: Generator<void, number>, pace: Pace): Promise<number> {
  for (;;) {
    if (pace.due) await pace.rest();
    const { done, value } = search.next();
    if (done) return value;
  }
}
