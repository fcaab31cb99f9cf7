import { matchesTokens, type Token, tokens } from "./name_pattern.ts";

/** The state of matching: the positions of the parts that the next name may match. */
export type GlobState = readonly number[];

type Part =
  | { kind: "globstar" }
  | { kind: "name"; tokens: Token[] }
  | { kind: "end" };

/** Names that a pattern only matches when it contains them. */
const UNNAMED = ["node_modules", ".git"];
const MAX_PATTERN = 1000;
const MAX_ALTERNATIVES = 100;

/**
 * A file pattern: `*` and `?` within a name, `**` over any number of folders, `[a-z]`, `[!a]`,
 * `{a,b}`, and a backslash before a literal character. A trailing slash matches
 * folders only. Names that start with a dot are matched by a part that starts with a dot.
 *
 * It is matched name by name from the top, so that a walk enters only folders that can hold a match.
 */
export class Glob {
  readonly folders_only: boolean;
  readonly start: GlobState;
  readonly #parts: Part[] = [];
  readonly #closed: string[];

  /** @throws Error a sentence that says why the pattern cannot be used. */
  constructor(pattern: string) {
    if (pattern.length > MAX_PATTERN) {
      throw new Error(`the pattern has more than ${MAX_PATTERN} characters`);
    }
    if (pattern.startsWith("/")) {
      throw new Error("the pattern must be relative; give the folder as path");
    }
    this.folders_only = pattern.endsWith("/");
    this.#closed = UNNAMED.filter((name) => !pattern.includes(name));
    const starts: number[] = [];
    for (const alternative of braces(pattern)) {
      starts.push(this.#parts.length);
      this.#append(alternative.split("/").filter((name) => name !== "" && name !== "."));
    }
    this.start = this.#closure(starts);
  }

  /** The state after a folder's or file's name; empty when nothing below can match. */
  step(state: GlobState, name: string): GlobState {
    const next: number[] = [];
    if (this.#closed.includes(name)) return next;
    for (const position of state) {
      const part = this.#parts[position]!;
      if (part.kind === "globstar") {
        if (!name.startsWith(".")) next.push(position);
      } else if (part.kind === "name" && matchesName(part.tokens, name)) next.push(position + 1);
    }
    return this.#closure(next);
  }

  /** True when a part of the pattern is exactly that name, which is then found even if it is ignored. */
  spells(state: GlobState, name: string): boolean {
    return state.some((position) => {
      const part = this.#parts[position]!;
      return part.kind === "name" && part.tokens.length === name.length &&
        part.tokens.every((token, i) => token.kind === "char" && token.char === name[i]);
    });
  }

  /** True when the names so far are a match. */
  accepts(state: GlobState): boolean {
    return state.some((position) => this.#parts[position]!.kind === "end");
  }

  /** True for a relative path with forward slashes that the pattern matches. */
  matches(path: string): boolean {
    let state = this.start;
    for (const name of path.split("/")) state = this.step(state, name);
    return this.accepts(state);
  }

  #append(names: string[]): void {
    if (names.includes("..")) {
      throw new Error('the pattern must not contain ".."; use path instead');
    }
    for (const [index, name] of names.entries()) {
      if (name !== "**") this.#parts.push({ kind: "name", tokens: tokens(name) });
      else if (names[index - 1] !== "**") this.#parts.push({ kind: "globstar" });
    }
    // `a/**` matches everything below `a`, but not `a` itself.
    if (names.at(-1) === "**") this.#parts.push({ kind: "name", tokens: [{ kind: "star" }] });
    this.#parts.push({ kind: "end" });
  }

  /** Adds the part after each globstar, which may match no folder at all. */
  #closure(positions: number[]): GlobState {
    const all = new Set<number>();
    for (const position of positions) {
      all.add(position);
      if (this.#parts[position]!.kind === "globstar") all.add(position + 1);
    }
    return [...all];
  }
}

/** Expands `{a,b}` alternatives. Braces without a comma are literal. */
function braces(pattern: string): string[] {
  const results: string[] = [];
  const pending = [pattern];
  while (pending.length > 0) {
    const current = pending.pop()!;
    const group = firstGroup(current);
    if (group === undefined) results.push(current);
    else {
      const [open, close] = [group[0]!, group.at(-1)!];
      for (let i = 0; i + 1 < group.length; i++) {
        const choice = current.slice(group[i]! + 1, group[i + 1]);
        pending.push(current.slice(0, open) + choice + current.slice(close + 1));
      }
    }
    if (results.length + pending.length > MAX_ALTERNATIVES) {
      throw new Error(`the pattern has more than ${MAX_ALTERNATIVES} alternatives`);
    }
  }
  return results;
}

/** Positions of the first group's opening brace, its commas and its closing brace. */
function firstGroup(pattern: string): number[] | undefined {
  for (let open = 0; open < pattern.length; open++) {
    if (pattern[open] === "\\") open++;
    else if (pattern[open] === "{") {
      const group = groupAt(pattern, open);
      if (group !== undefined) return group;
    }
  }
  return undefined;
}

function groupAt(pattern: string, open: number): number[] | undefined {
  const marks = [open];
  let depth = 0;
  for (let i = open + 1; i < pattern.length; i++) {
    const char = pattern[i];
    if (char === "\\") i++;
    else if (char === "{") depth++;
    else if (char === "}" && depth > 0) depth--;
    else if (char === "," && depth === 0) marks.push(i);
    else if (char === "}") return marks.length > 1 ? [...marks, i] : undefined;
  }
  return undefined;
}

function matchesName(tokens: Token[], name: string): boolean {
  const first = tokens[0];
  if (name.startsWith(".") && !(first?.kind === "char" && first.char === ".")) return false;
  return matchesTokens(tokens, name);
}
