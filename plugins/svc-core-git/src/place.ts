import { basename, dirname, join } from "node:path";
import type { ToolContext } from "../../../src/plugins/api.ts";

/**
 * The absolute path that git is given for an argument. A link is that link, and not what it leads to:
 * git records where it points and does not follow it. Links on the way to it are resolved.
 *
 * @throws when it lies outside the worktree
 */
export function placeOf(path: string, { paths }: ToolContext): string {
  const name = basename(path);
  if (name === "" || name === "." || name === "..") return paths.resolve(path);
  const place = join(paths.resolve(dirname(path)), name);
  return isLink(place) ? place : paths.resolve(path);
}

function isLink(path: string): boolean {
  try {
    return Deno.lstatSync(path).isSymlink;
  } catch {
    return false; // a file that was deleted, or is only in the history
  }
}
