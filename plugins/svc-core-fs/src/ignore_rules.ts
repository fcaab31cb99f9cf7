import {
  closeOfIgnoreSet,
  type IgnoreTokens,
  ignoreTokens,
  matchesTokens,
} from "./name_pattern.ts";

interface Rule {
  negated: boolean;
  folders_only: boolean;
  /** Matches the name alone, wherever it lies; otherwise the path from the rules' folder. */
  floating: boolean;
  /** One for each name of the path; `**` stands for any number of them. */
  parts: ("**" | IgnoreTokens)[];
}

/**
 * What one `.gitignore` says, and by `above` what those of the folders around it say, as git reads
 * them: the last rule that matches decides, and the deepest file is asked first.
 */
export class IgnoreRules {
  readonly #rules: Rule[];
  readonly #folder: string;
  readonly #above: IgnoreRules | undefined;

  /** @param folder path of the file's folder with a slash at its end, or empty for the topmost. */
  constructor(text: string, folder: string, above?: IgnoreRules) {
    this.#folder = folder;
    this.#above = above;
    this.#rules = text.replace(/^\ufeff/, "").split("\n")
      .map(parse).filter((rule) => rule !== undefined).reverse();
  }

  /** Whether the path, which lies below the folder and none of whose folders is ignored, is. */
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
    if (tokens === undefined) return undefined; // git matches nothing with it either
    parts.push(tokens);
  }
  // What lies below a folder is not the folder itself.
  if (parts.at(-1) === "**" && !floating) parts.push([{ kind: "star" }]);
  return { negated, folders_only, floating, parts };
}

const MAX_PATTERN = 4096;

/** Spaces at the end do not count, unless a backslash is before them. */
function trimEnd(line: string): string {
  const kept = line.replace(/ +$/, "");
  const backslashes = /\\*$/.exec(kept)![0].length;
  return backslashes % 2 === 1 && kept.length < line.length ? `${kept} ` : kept;
}

/** Parts a pattern at its slashes, of which those within a set are none. */
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

/** Matches with one memory, the last `**`, as it is done within a name. */
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
