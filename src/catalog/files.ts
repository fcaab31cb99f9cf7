import { sep } from "node:path";
import type { Paths } from "../platform/environment.ts";
import { errorMessage, usageError } from "../platform/error.ts";
import { isLink } from "../platform/files.ts";

/** The layers that can be written. */
export type Scope = "global" | "local";

/** The folder of a layer on disk, and the root that its links must stay in. */
export interface LayerFolder {
  root: string;
  folder: string;
}

export function layerFolder(scope: Scope, { worktree, state, user }: Paths): LayerFolder {
  return scope === "global" ? { root: user, folder: user } : { root: worktree, folder: state };
}

/** Characters of a skill or of a role's instructions that a prompt may contain. */
const MAX_CHARS = 20_000;
/** Bytes of the largest file that is read. */
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * The text of a Markdown file in `root`, cut at 20000 characters. The text is sent to a model and the
 * worktree may be untrusted, so links must stay in `root` and lead to a Markdown file.
 *
 * @throws SvcError `catalog_text` (exit 2) that names the file.
 */
export function readMarkdown(root: string, path: string, warn: (message: string) => void): string {
  try {
    const real = Deno.realPathSync(path);
    if (!isBelow(root, real)) throw new Error(`it leads out of ${root}`);
    if (!real.endsWith(".md")) throw new Error("it is no Markdown file (.md)");
    const info = Deno.statSync(real);
    if (!info.isFile) throw new Error("it is no regular file"); // a pipe would block
    if (info.size > MAX_BYTES) throw new Error("it is too large");
    const text = Deno.readTextFileSync(real).trim();
    if (text.length <= MAX_CHARS) return text;
    warn(`${path} has ${text.length} characters; only the first ${MAX_CHARS} are used.`);
    return text.slice(0, MAX_CHARS) + "\n... (truncated)";
  } catch (error) {
    const reason = error instanceof Deno.errors.NotFound ? "there is no such file" : error;
    throw usageError("catalog_text", `${path} cannot be used: ${errorMessage(reason)}.`);
  }
}

/**
 * Rejects paths that a link leads out of `root`. A path that does not exist is skipped, so the caller
 * passes its directory too.
 *
 * @throws SvcError `catalog_place` (exit 2)
 */
export function checkInside(root: string, ...paths: string[]): void {
  for (const path of paths) {
    let real: string;
    try {
      real = Deno.realPathSync(path);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound) || isLink(path)) throw leadsOut(path);
      continue;
    }
    if (!isBelow(root, real)) throw leadsOut(path);
  }
}

function isBelow(root: string, real: string): boolean {
  const base = Deno.realPathSync(root);
  return real === base || real.startsWith(base.endsWith(sep) ? base : base + sep);
}

function leadsOut(path: string): Error {
  return usageError(
    "catalog_place",
    `${path} is a link that leads elsewhere, so nothing is written there.`,
    "Put a file or a folder in its place.",
  );
}
