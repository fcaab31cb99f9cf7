import {
  closeOfIgnoreSet,
  type IgnoreTokens,
  ignoreTokens,
  matchesTokens,
} from "./name_pattern.ts";

interface Rule {
  negated: boolean;
  folders_only: boolean;
  /** Whether it matches a name in any folder, instead of the path from the folder of the rules. */
  floating: boolean;
  /** A part for each name of the path; `**` matches any number of names. */
  parts: ("**" | IgnoreTokens)[];
}

/**
 * The rules of one `.gitignore` and, in `above`, of those in its parent folders, with git's semantics:
 * the last rule that matches decides, and the deepest file takes precedence.
 *
 * It matches in linear time, since the files of a cloned repository may be hostile.
 */
export class IgnoreRules {
  readonly #rules: Rule[];
  readonly #folder: string;
  readonly #above: IgnoreRules | undefined;

  /** @param folder path of the folder of the file with a trailing slash, or empty for the topmost. */
  constructor(text: string, folder: string, above?: IgnoreRules) {
    this.#folder = folder;
    this.#above = above;
    this.#rules = text.replace(/^\ufeff/, "").split("\n")
      .map(parse).filter((rule) => rule !== undefined).reverse();
  }

  /** Whether a path below the folder is ignored, given that none of its parent folders is. */
  ignores(path: string, isFolder: boolean): boolean {
    const name = path.slice(path.lastIndexOf("/") + 1);
    const nested = path.slice(this.#folder.length);
    let names: string[] | undefined;
    for (const rule of this.#rules) {
      if (rule.folders_only && !isFolder) continue;
      const matched = rule.floating
        ? matchesPart(rule.parts[0]!, name)
        : matchesPath(rule.parts, names ??= nested.split("/"));
      if (matched) return !rule.negated;
    }
    return this.#above?.ignores(path, isFolder) ?? false;
  }
}

function parse(line: string): Rule | undefined {
  if (line.startsWith("#")) return undefined;
  let pattern = trimEnd(line.endsWith("\r") ? line.slice(0, -1) : line);
  const negated = pattern.startsWith("!");
  if (negated) pattern = pattern.slice(1);
  const folders_only = pattern.endsWith("/");
  if (folders_only) pattern = pattern.slice(0, -1);
  if (pattern === "" || pattern.length > MAX_PATTERN) return undefined;
  const floating = !pattern.includes("/");
  const parts: Rule["parts"] = [];
  for (const name of splitNames(pattern.replace(/^\//, ""))) {
    if (/^\*\*+$/.test(name)) {
      if (parts.at(-1) !== "**") parts.push("**");
      continue;
    }
    const tokens = ignoreTokens(name);
    if (tokens === undefined) return undefined; // the pattern is invalid, and matches nothing in git either
    parts.push(tokens);
  }
  // `a/**` matches everything below `a`, but not `a` itself.
  if (parts.at(-1) === "**" && !floating) parts.push([{ kind: "star" }]);
  return { negated, folders_only, floating, parts };
}

const MAX_PATTERN = 4096;

/** Removes trailing spaces, except one after a backslash. */
function trimEnd(line: string): string {
  const kept = line.replace(/ +$/, "");
  const backslashes = /\\*$/.exec(kept)![0].length;
  return backslashes % 2 === 1 && kept.length < line.length ? `${kept} ` : kept;
}

/** Splits a pattern at its slashes, except for those in a set. */
function splitNames(pattern: string): string[] {
  const names: string[] = [];
  const chars = Array.from(pattern);
  let start = 0;
  for (let i = 0; i < chars.length; i++) {
    if (chars[i] === "\\") i++;
    else if (chars[i] === "[") i = closeOfIgnoreSet(chars, i) ?? i;
    if (chars[i] !== "/") continue;
    names.push(chars.slice(start, i).join("").replace(/(?<!\\)((?:\\\\)*)\\$/, "$1"));
    start = i + 1;
  }
  names.push(chars.slice(start).join(""));
  return names;
}

/** Backtracks to the last `**` only, which keeps the time linear. */
function matchesPath(parts: Rule["parts"], names: string[]): boolean {
  let part = 0;
  let globstar = -1;
  let resume = 0;
  for (let i = 0; i < names.length;) {
    const current = parts[part];
    if (current === "**") [globstar, resume] = [part++, i];
    else if (current !== undefined && matchesTokens(current, names[i]!)) {
      part++;
      i++;
    } else if (globstar === -1) return false;
    else {
      part = globstar + 1;
      i = ++resume;
    }
  }
  return part === parts.length;
}

function matchesPart(part: Rule["parts"][number], name: string): boolean {
  return part === "**" || matchesTokens(part, name);
}
