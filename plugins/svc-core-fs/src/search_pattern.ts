/** The error of a pattern that is not searched for, as a sentence for the model. */
export class PatternError extends Error {}

/** The pattern of a search. */
export interface SearchPattern {
  /** Matches a line in time that is linear in its length. */
  regex: RegExp;
  /** A plain text that every match contains; empty when none is known. */
  required: RegExp;
}

/** Characters of a pattern, and of one whose counts are written out. */
const MAX_PATTERN = 1000;
/**
 * Ways through a pattern for V8's usual matcher. It takes time for each of them before it counts one backtrack, and to
 * compile them: a line of 4000 characters takes it up to 0.1 s with so many, and minutes with some more.
 */
const MAX_WAYS = 128;

/**
 * Reads a pattern of JavaScript's syntax. A leading `(?i)`, which other languages know, ignores case.
 *
 * V8 starts with its usual matcher, which is fast and backtracks. When it backtracks too much, V8 goes on with one
 * that is linear (`--enable-experimental-regexp-engine-on-excessive-backtracks`), but only for expressions that this
 * one knows: those that the flag `l` accepts (`--enable-experimental-regexp-engine`). So no other is used, and
 * nothing that a model asks for keeps a processor busy. Counts, captures and case are rewritten, since the linear
 * matcher knows small counts only, is slow with captures, and does not ignore case. A pattern with many ways through it is
 * matched by the linear matcher at once.
 *
 * @throws PatternError for an invalid pattern, and for one that cannot be matched in linear time.
 */
export function searchPattern(pattern: string): SearchPattern {
  const ignoreCase = pattern.startsWith("(?i)");
  const source = ignoreCase ? pattern.slice(4) : pattern;
  if (source.length > MAX_PATTERN) {
    throw new PatternError(`the pattern has more than ${MAX_PATTERN} characters`);
  }
  try {
    new RegExp(source);
  } catch (error) {
    throw new PatternError(`invalid pattern: ${(error as Error).message}`);
  }
  const { text, ways } = linear(source, ignoreCase);
  const required = requiredText(source).replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  try {
    const regex = new RegExp(text, "l");
    return {
      regex: ways > MAX_WAYS ? regex : new RegExp(text),
      required: new RegExp(required, ignoreCase ? "i" : ""),
    };
  } catch (error) {
    const { message } = error as Error;
    throw new PatternError(
      message.startsWith("Invalid flags")
        ? "svc was started without V8's linear matcher (--v8-flags=--enable-experimental-regexp-engine)"
        : `the pattern cannot be matched in linear time; use simpler syntax (${message})`,
    );
  }
}

const TOKEN =
  /\\(?:x[\da-fA-F]{2}|u[\da-fA-F]{4}|c[a-zA-Z]|k<[^>]*>|\d+|[^])|\[(?:\\[^]|[^\]\\])*\]|\((?:\?(?:<?[=!]|<[^>]*>|[a-z-]*:))?|[*+?]|\{\d+(?:,\d*)?\}\??|[^]/g;

/** A part of an expression, rewritten. */
interface Part {
  text: string;
  /** Characters and groups. */
  size: number;
  /** Ways to go through it when each repetition is taken once at most. */
  ways: number;
}

/** Writes an expression without counts and captures, and in both cases where case is ignored. */
function linear(source: string, ignoreCase: boolean): Part {
  const tokens = source.match(TOKEN) ?? [];
  let at = 0;
  /** The tokens up to a closing parenthesis. */
  const group = (): Part => {
    const whole = { text: "", size: 0, ways: 0 };
    let ways = 1;
    while (at < tokens.length && tokens[at] !== ")") {
      const token = tokens[at++]!;
      let part = { text: ignoreCase ? anyCase(token) : token, size: 1, ways: 1 };
      if (token.startsWith("(")) {
        const { text, size, ways } = group();
        at++;
        part = { text: `${opening(token)}${text})`, size: size + 1, ways };
      } else if (/^\\(?:[1-9]|k<)/.test(token)) {
        throw new PatternError(
          `a pattern cannot refer back to a group (${token}); write the text out, or search for the rest`,
        );
      }
      const count = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})/.exec(tokens[at] ?? "");
      if (count !== null) {
        at++;
        part = repeated(part, count);
      }
      whole.text += part.text;
      whole.size += part.size;
      if (whole.size > MAX_PATTERN) throw new PatternError(TOO_LARGE);
      ways *= part.ways;
      if (token === "|") {
        whole.ways += ways;
        ways = 1;
      }
    }
    return { ...whole, ways: whole.ways + ways };
  };
  return group();
}

const TOO_LARGE =
  `the pattern has more than ${MAX_PATTERN} characters when its counts are written out; use *, + or smaller counts`;

/** Repeats a part as a quantifier says. Nested options leave one way only to match a text. */
function repeated({ text, size, ways }: Part, [sign, least, comma, most]: string[]): Part {
  if (least === undefined) return { text: text + sign, size: size + 1, ways: ways + 1 };
  const min = Number(least);
  const rest = comma === "" ? 0 : most === "" ? undefined : Number(most) - min;
  const all = size * (min + (rest ?? 1));
  if (all > MAX_PATTERN) throw new PatternError(TOO_LARGE);
  let last = 1;
  for (let i = rest ?? 1; i > 0; i--) last = 1 + ways * last;
  return {
    text: text.repeat(min) +
      (rest === undefined ? `${text}*` : `(?:${text}`.repeat(rest) + ")?".repeat(rest)),
    size: all,
    ways: ways ** min * last,
  };
}

function opening(token: string): string {
  if (/^\(\?[=!]/.test(token)) {
    throw new PatternError(
      `a pattern cannot look ahead (${token}); search for the rest of it and read the lines found`,
    );
  }
  return /^\((?:\?<[^=!]|$)/.test(token) ? "(?:" : token;
}

/** The class of the characters that a letter or a class matches when case is ignored. */
function anyCase(token: string): string {
  if (/^[a-z]$/i.test(token)) return `[${token.toLowerCase()}${token.toUpperCase()}]`;
  if (!/^(?:\[|[^\0-\x7f]|\\[xu].)/.test(token)) return token;
  const regex = new RegExp(token, "i");
  const ranges: [number, number][] = [];
  for (let code = 0; code <= 0xffff; code++) {
    if (!regex.test(String.fromCharCode(code))) continue;
    if (ranges.at(-1)?.[1] === code - 1) ranges.at(-1)![1] = code;
    else ranges.push([code, code]);
  }
  const escaped = (code: number) => `\\u${code.toString(16).padStart(4, "0")}`;
  return `[${ranges.map(([from, to]) => `${escaped(from)}-${escaped(to)}`).join("")}]`;
}

/** The longest run of plain characters outside of groups; empty when there are alternatives to it. */
function requiredText(source: string): string {
  const runs = [""];
  let depth = 0;
  for (const [token] of source.matchAll(TOKEN)) {
    if (token.startsWith("(")) depth++;
    else if (token === ")") depth--;
    else if (depth > 0) continue;
    if (token === "|") return "";
    if (/^[*?{]/.test(token)) runs[0] = runs[0]!.slice(0, -1); // what it repeats may be left out
    if (/^(?:[^\\^$.*+?()[\]{}|]|\\[^\w])$/.test(token)) runs[0] += token.at(-1)!;
    else runs.unshift("");
  }
  return runs.reduce((longest, run) => run.length > longest.length ? run : longest);
}
