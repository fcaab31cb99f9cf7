import { join } from "node:path";
import type { Glob, GlobState } from "./glob.ts";

/** An entry below a folder that a pattern matched. */
export interface Found {
  /** Relative to the folder, with forward slashes. */
  path: string;
  entry: Deno.DirEntry;
}

/** What a walk found, sorted by path, and whether it saw all there is. */
export interface Walked {
  found: Found[];
  complete: boolean;
}

/** Entries after which a walk gives up. */
const MAX_ENTRIES = 500_000;

/**
 * Everything below `folder` that `glob` matches. Links are listed and never followed, so a walk stays
 * in its folder and meets no cycle. Folders that cannot be read are passed over.
 */
export async function walk(folder: string, glob: Glob, signal: AbortSignal): Promise<Walked> {
  const found: Found[] = [];
  const pending: { path: string; state: GlobState }[] = [{ path: "", state: glob.start }];
  let seen = 0;
  while (pending.length > 0 && seen < MAX_ENTRIES) {
    signal.throwIfAborted();
    const { path, state } = pending.pop()!;
    for (const entry of await entries(join(folder, path))) {
      seen++;
      const next = glob.step(state, entry.name);
      if (next.length === 0) continue;
      const below = path === "" ? entry.name : `${path}/${entry.name}`;
      if (glob.accepts(next) && (entry.isDirectory || !glob.folders_only)) {
        found.push({ path: below, entry });
      }
      if (entry.isDirectory) pending.push({ path: below, state: next });
    }
  }
  found.sort((a, b) => a.path < b.path ? -1 : 1);
  return { found, complete: pending.length === 0 };
}

async function entries(folder: string): Promise<Deno.DirEntry[]> {
  try {
    return await Array.fromAsync(Deno.readDir(folder));
  } catch {
    return []; // gone, or closed to us
  }
}
