/** A token of a pattern for one name. */
export type Token =
  | { kind: "char"; char: string }
  | { kind: "any" }
  | { kind: "star" }
  | { kind: "set"; negated: boolean; ranges: [number, number][] };

/** Parses a name with `*`, `?`, `[a-z]`, `[!a]` and backslashes. */
export function tokens(name: string): Token[] {
  const result: Token[] = [];
  const chars = Array.from(name);
  for (let i = 0; i < chars.length; i++) {
    const char = chars[i]!;
    if (char === "\\" && i + 1 < chars.length) result.push({ kind: "char", char: chars[++i]! });
    else if (char === "?") result.push({ kind: "any" });
    else if (char === "*") {
      if (result.at(-1)?.kind !== "star") result.push({ kind: "star" });
    } else {
      const close = char === "[" ? closing(chars, i) : -1;
      if (close === -1) result.push({ kind: "char", char });
      else {
        result.push(set(chars.slice(i + 1, close)));
        i = close;
      }
    }
  }
  return result;
}

/** Index of the bracket that closes a set. A bracket at its start is a member. */
function closing(chars: string[], open: number): number {
  const first = chars[open + 1] === "!" || chars[open + 1] === "^" ? open + 2 : open + 1;
  return chars.indexOf("]", first + 1);
}

function set(chars: string[]): Token {
  const negated = chars[0] === "!" || chars[0] === "^";
  const members = negated ? chars.slice(1) : chars;
  const ranges: [number, number][] = [];
  for (let i = 0; i < members.length; i++) {
    const low = members[i]!.codePointAt(0)!;
    const ranged = members[i + 1] === "-" && i + 2 < members.length;
    ranges.push([low, ranged ? members[i + 2]!.codePointAt(0)! : low]);
    if (ranged) i += 2;
  }
  return { kind: "set", negated, ranges };
}

/** Backtracks to the last star only: no pattern makes it slow. */
export function matchesTokens(tokens: readonly Token[], name: string): boolean {
  if (tokens.length === 1 && tokens[0]!.kind === "star") return true;
  const chars = Array.from(name);
  let token = 0;
  let star = -1;
  let resume = 0;
  for (let i = 0; i < chars.length;) {
    const current = tokens[token];
    if (current?.kind === "star") [star, resume] = [token++, i];
    else if (current !== undefined && matchesChar(current, chars[i]!)) {
      token++;
      i++;
    } else if (star === -1) return false;
    else {
      token = star + 1;
      i = ++resume;
    }
  }
  return tokens.slice(token).every((rest) => rest.kind === "star");
}

function matchesChar(token: Token, char: string): boolean {
  if (token.kind === "char") return token.char === char;
  if (token.kind !== "set") return true;
  const code = char.codePointAt(0)!;
  return token.negated !== token.ranges.some(([low, high]) => low <= code && code <= high);
}

/** The tokens of a name in a `.gitignore`. */
export type IgnoreTokens = readonly Token[];

/** Character classes of a set, such as `[[:digit:]]`, as pairs of first and last character. */
const CLASSES: Record<string, string> = {
  alnum: "09AZaz",
  alpha: "AZaz",
  blank: "  \t\t",
  cntrl: "\0\x1f\x7f\x7f",
  digit: "09",
  graph: "!~",
  lower: "az",
  print: " ~",
  punct: "!/:@[`{~",
  space: "\t\r  ",
  upper: "AZ",
  xdigit: "09AFaf",
};

/** Parses a name like git, with backslashes and classes in sets; undefined when it is invalid. */
export function ignoreTokens(name: string): IgnoreTokens | undefined {
  const result: Token[] = [];
  const chars = Array.from(name);
  for (let i = 0; i < chars.length; i++) {
    const char = chars[i]!;
    if (char === "\\") {
      if (++i === chars.length) return undefined;
      result.push({ kind: "char", char: chars[i]! });
    } else if (char === "?") result.push({ kind: "any" });
    else if (char === "*") {
      if (result.at(-1)?.kind !== "star") result.push({ kind: "star" });
    } else if (char === "[") {
      const read = ignoreSet(chars, i + 1);
      if (read === undefined) return undefined;
      result.push(read.set);
      i = read.close;
    } else result.push({ kind: "char", char });
  }
  return result;
}

/** Index of the bracket that closes the set at `open`; undefined when it is not closed. */
export function closeOfIgnoreSet(chars: string[], open: number): number | undefined {
  return ignoreSet(chars, open + 1)?.close;
}

function ignoreSet(chars: string[], from: number): { set: Token; close: number } | undefined {
  const negated = chars[from] === "!" || chars[from] === "^";
  const first = negated ? from + 1 : from;
  const ranges: [number, number][] = [];
  for (let i = first; i < chars.length; i++) {
    if (chars[i] === "]" && i > first) return { set: { kind: "set", negated, ranges }, close: i };
    if (chars[i] === "[" && chars[i + 1] === ":") {
      const end = chars.indexOf("]", i + 2);
      if (end === -1) return undefined;
      if (chars[end - 1] === ":" && end - 1 > i + 1) {
        const members = CLASSES[chars.slice(i + 2, end - 1).join("")];
        if (members === undefined) return undefined;
        for (let j = 0; j < members.length; j += 2) {
          ranges.push([members.charCodeAt(j), members.charCodeAt(j + 1)]);
        }
        i = end;
        continue;
      }
    }
    if (chars[i] === "\\") i++;
    const low = chars[i]?.codePointAt(0);
    if (low === undefined) return undefined;
    let high = low;
    if (chars[i + 1] === "-" && chars[i + 2] !== undefined && chars[i + 2] !== "]") {
      i += chars[i + 2] === "\\" ? 3 : 2;
      const end = chars[i]?.codePointAt(0);
      if (end === undefined) return undefined;
      high = end;
    }
    ranges.push([low, high]);
  }
  return undefined;
}
