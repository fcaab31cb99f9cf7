import { join } from "node:path";
import { isCatalogName } from "../catalog/schema.ts";

/** Levels of folders below the worktree that are looked into. */
const DEPTH = 4;

/**
 * The folders below a worktree that hold `.svc/config.json`, relative to it and in order (specification
 * 4.6). Hidden ones, `node_modules` and links are not looked into, nor is what lies inside a found one.
 */
export function scanForAgents(worktree: string): string[] {
  const found: string[] = [];
  visit("", 0);
  return found;

  function visit(folder: string, depth: number): void {
    if (depth > 0 && isFile(join(worktree, folder, ".svc", "config.json"))) {
      found.push(folder);
      return;
    }
    if (depth === DEPTH) return;
    for (const name of foldersIn(join(worktree, folder))) visit(join(folder, name), depth + 1);
  }
}

/** A name for the agent of a folder that none of `taken` has; undefined when it gives none. */
export function nameFor(folder: string, taken: ReadonlySet<string>): string | undefined {
  const parts = folder.split("/");
  for (let length = 1; length <= parts.length; length++) {
    const name = parts.slice(-length).join("-").replaceAll(/[^\p{L}\p{M}\p{N}._-]+/gu, "-");
    if (isCatalogName(name) && !taken.has(name)) return name;
  }
  return undefined;
}

function foldersIn(folder: string): string[] {
  try {
    return [...Deno.readDirSync(folder)]
      .filter(({ name, isDirectory }) =>
        isDirectory && !name.startsWith(".") && name !== "node_modules"
      )
      .map(({ name }) => name).sort();
  } catch (error) {
    if (error instanceof Deno.errors.PermissionDenied) return [];
    throw error;
  }
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
