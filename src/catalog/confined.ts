import { sep } from "node:path";
import { errorMessage, usageError } from "../platform/error.ts";

/** Characters of a skill or of a role's instructions that a prompt gets at most. */
const MAX_CHARS = 20_000;
/** Bytes of the largest such file that is read. */
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * The text of a Markdown file below `root`, cut at 20000 characters. Its text goes to a model, and a
 * worktree can come from anywhere: links may not lead out of `root`, nor to anything but Markdown.
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
 * Refuses a place that a link takes out of `root`; one that is not there yet is judged by the folder
 * it would be made in.
 *
 * @throws SvcError `catalog_place` (exit 2)
 */
export function checkPlace(root: string, ...paths: string[]): void {
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

function isLink(path: string): boolean {
  try {
    return Deno.lstatSync(path).isSymlink;
  } catch {
    return false;
  }
}

function leadsOut(path: string): Error {
  return usageError(
    "catalog_place",
    `${path} is a link that leads elsewhere, so nothing is written there.`,
    "Put a file or a folder in its place.",
  );
}
