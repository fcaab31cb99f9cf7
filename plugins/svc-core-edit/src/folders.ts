import { dirname } from "node:path";
import type { ToolPaths } from "../../../src/plugins/api.ts";

/**
 * Makes the missing folders above `path` (real and absolute) and returns them, the topmost first.
 *
 * Deno cannot make a folder inside one that is held open, so another program may swap a folder for a
 * link in between. Hence one at a time, with a look before and after: at worst one empty folder comes
 * to be elsewhere, and it is taken back.
 *
 * @throws Error a sentence, when `path` leads elsewhere meanwhile; nothing is left behind then.
 */
export function makeFolders(path: string, paths: ToolPaths): string[] {
  const missing: string[] = [];
  for (let folder = dirname(path); !exists(folder); folder = dirname(folder)) missing.push(folder);
  const made: string[] = [];
  try {
    for (const folder of missing.reverse()) {
      assertInPlace(path, paths);
      if (makeFolder(folder)) made.push(folder);
      assertInPlace(path, paths);
    }
    return made;
  } catch (error) {
    removeFolders(made);
    throw error;
  }
}

/** Takes back folders that `makeFolders` made; those that hold something by now stay. */
export function removeFolders(made: string[]): void {
  for (const folder of made.toReversed()) {
    try {
      Deno.removeSync(folder);
    } catch {
      return; // so do the ones above it
    }
  }
}

/** @throws Error a sentence, unless the real path `path` is still where it leads. */
export function assertInPlace(path: string, paths: ToolPaths): void {
  if (paths.resolve(path) !== path) {
    throw new Error(`${path} was moved meanwhile; look at it again`);
  }
}

function makeFolder(folder: string): boolean {
  try {
    Deno.mkdirSync(folder);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.AlreadyExists) return false;
    throw error;
  }
}

function exists(folder: string): boolean {
  try {
    Deno.lstatSync(folder);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) {
      return false;
    }
    throw error;
  }
}
