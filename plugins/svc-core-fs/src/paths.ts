import { basename, dirname, join, relative } from "node:path";
import type { ToolContext } from "../../../src/plugins/api.ts";

/** The file or folder that a path argument names. */
interface Located {
  /** Real absolute path. */
  path: string;
  info: Deno.FileInfo;
}

/**
 * Resolves a path argument.
 *
 * @throws Error that names the most similar entry when the path does not exist.
 */
export async function locate(path: string, context: ToolContext): Promise<Located> {
  const absolute = context.paths.resolve(path);
  try {
    return { path: absolute, info: Deno.statSync(absolute) };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) {
      throw new Error(await absence(path, absolute, context));
    }
    throw error;
  }
}

/** A path as results show it: relative to the worktree, or absolute outside of it. */
export function shown(absolute: string, context: ToolContext): string {
  const path = relative(context.paths.worktree, absolute);
  const named = path === ".." || path.startsWith("../") ? absolute : path || ".";
  return escaped(named);
}

/** A program that swaps a directory for a link and back passes one check by luck, but not all of them. */
const CHECKS = 4;

/**
 * Whether an entry that was listed under a real path is there: the directory could have been swapped for a link
 * while it was read.
 */
export function isInPlace(path: string): boolean {
  const directory = dirname(path);
  try {
    for (let check = 0; check < CHECKS; check++) {
      Deno.lstatSync(path);
      if (Deno.realPathSync(directory) !== directory) return false;
    }
    return true;
  } catch {
    return false;
  }
}

/** Escapes control characters of a name: a line break in it could forge a line of the result. */
export function escaped(name: string): string {
  return name.replace(CONTROL, (char) => {
    const json = JSON.stringify(char).slice(1, -1);
    // JSON does not escape some of them.
    return json === char ? `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}` : json;
  });
}

// deno-lint-ignore no-control-regex
const CONTROL = /[\0-\x1f\x7f-\x9f\u2028\u2029]/g;

async function absence(path: string, absolute: string, context: ToolContext): Promise<string> {
  let name = absolute;
  let folder = dirname(name);
  while (folder !== dirname(folder) && !await isDirectory(folder)) {
    name = folder;
    folder = dirname(name);
  }
  if (name !== absolute && (await statOf(name))?.isFile) {
    return `there is no ${path}: ${shown(name, context)} is a file, not a folder`;
  }
  const what = name === absolute
    ? `there is no ${path}`
    : `there is no ${path}: ${shown(name, context)} does not exist`;
  // Only folders that the call may read are searched for a similar name.
  const near = context.paths.contains(folder) ? await nearestEntry(folder, basename(name)) : "";
  return near === "" ? what : `${what}. Did you mean ${shown(join(folder, near), context)}?`;
}

async function isDirectory(path: string): Promise<boolean> {
  return (await statOf(path))?.isDirectory === true;
}

async function statOf(path: string): Promise<Deno.FileInfo | undefined> {
  try {
    return await Deno.stat(path);
  } catch {
    return undefined;
  }
}

async function nearestEntry(folder: string, name: string): Promise<string> {
  let best = "";
  let least = Math.max(2, Math.floor(name.length / 3)) + 1;
  for await (const entry of Deno.readDir(folder)) {
    const distance = edits(name.toLowerCase(), entry.name.toLowerCase(), least);
    if (distance < least) [best, least] = [entry.name, distance];
  }
  return best;
}

/** The edit distance of two words, capped at `limit`. */
function edits(from: string, to: string, limit: number): number {
  if (Math.abs(from.length - to.length) >= limit) return limit;
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const change = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(change, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return Math.min(row[to.length]!, limit);
}
