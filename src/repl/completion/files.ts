import { join, resolve } from "node:path";
import type { Completion } from "../input/completion.ts";
import type { Shell } from "../shell.ts";

/** Entries of a folder that are offered at most. */
const MOST = 200;

/** The files and folders that a beginning of a path may stand for; relative ones start at the worktree. */
export function files(typed: string, at: number, { workspace }: Shell): Completion {
  const slash = typed.lastIndexOf("/") + 1;
  const [folder, start] = [typed.slice(0, slash), typed.slice(slash)];
  const { paths: { worktree }, environment: { home } } = workspace;
  const place = folder.startsWith("~/") ? join(home, folder.slice(2)) : resolve(worktree, folder);
  return { from: at + slash, candidates: entries(place, start).map((text) => ({ text })) };
}

function entries(place: string, start: string): string[] {
  const found: string[] = [];
  try {
    for (const { name, isDirectory } of Deno.readDirSync(place)) {
      const hidden = name.startsWith(".") && !start.startsWith(".");
      // A name that a terminal or a message would take apart is not offered.
      if (hidden || !name.startsWith(start) || /[\s\p{Cc}]/u.test(name)) continue;
      found.push(isDirectory ? `${name}/` : name);
    }
  } catch {
    return []; // no folder, or none that may be read
  }
  return found.sort().slice(0, MOST);
}
