import { lstatIfExists } from "../platform/files.ts";
import { join } from "node:path";
import { errorMessage, SvcError, usageError } from "../platform/error.ts";

/** Whose memory it is (specification 2.12). */
export type MemoryScope = "role" | "team" | "job";

export const SCOPES: readonly MemoryScope[] = ["role", "team", "job"];

/**
 * Where a memory lies, or is to lie: `<state>/memory/<scope>s/<name>.md`.
 *
 * @throws SvcError `memory_name` (exit 2) for a name that is no plain file name, `memory_link` when the
 * file or a folder on the way is a link, or no file or folder at all
 */
export function memoryPath(state: string, scope: MemoryScope, name: string): string {
  // Together with ".md" and what an atomic write adds, it fits into a file name of 255 bytes.
  const plain = /^(?!\.)[^/\\\p{Cc}]+$/u.test(name) && name.isWellFormed() &&
    new TextEncoder().encode(name).length <= 200;
  if (!plain) {
    throw usageError(
      "memory_name",
      `${JSON.stringify(name.slice(0, 80))} cannot be the name of a memory.`,
      "Use up to 200 bytes without slashes, control characters or a leading dot.",
    );
  }
  const root = join(state, "memory");
  const folder = folderOf(state, scope);
  const file = join(folder, `${name}.md`);
  for (const place of [root, folder, file]) {
    const info = lstatIfExists(place);
    if (info === undefined) break;
    if (place === file ? info.isFile : info.isDirectory) continue;
    const what = info.isSymlink ? "a link" : "something else than it should be";
    throw new SvcError("memory_link", `${place} is ${what} and is not used for memory.`);
  }
  return file;
}

/** The names of the memories that a scope has on disk, in alphabetical order. */
export function memoryNames(
  { state, warn }: { state: string; warn: (message: string) => void },
  scope: MemoryScope,
): string[] {
  try {
    return [...Deno.readDirSync(folderOf(state, scope))]
      .map(({ name }) => name)
      .filter((name) => name.endsWith(".md") && !name.startsWith("."))
      .map((name) => name.slice(0, -".md".length)).sort();
  } catch (error) {
    const missing = error instanceof Deno.errors.NotFound ||
      error instanceof Deno.errors.NotADirectory;
    if (!missing) warn(`The memories of ${scope}s cannot be listed: ${errorMessage(error)}`);
    return [];
  }
}

function folderOf(state: string, scope: MemoryScope): string {
  return join(state, "memory", `${scope}s`);
}
