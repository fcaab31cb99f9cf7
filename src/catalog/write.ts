import { join } from "node:path";
import { applyEdits, modify } from "jsonc-parser";
import { changeConfigFile } from "../config/file.ts";
import { parseSettings } from "../config/jsonc.ts";
import { SvcError, usageError } from "../platform/error.ts";
import { readTextIfExists, writeFileAtomic } from "../platform/files.ts";
import { withFileLock } from "../platform/lock.ts";
import { writeFailure } from "../platform/write_failure.ts";
import { checkPlace } from "./confined.ts";
import type { Kind } from "./schema.ts";

/** A layer on disk: its folder, and the root that links may not lead out of. */
export interface Place {
  root: string;
  folder: string;
}

/**
 * Changes an entry of `roles.json` or `teams.json`, which is made when it is missing. Everything else in
 * the file stays as it is written there.
 *
 * @param change gets what the file has under the name, and returns the new entry or undefined for none.
 * @throws SvcError (exit 2) when the file cannot be read or written, or is no valid JSON; it stays as it is.
 */
export async function changeEntry(
  { root, folder }: Place,
  kind: Kind,
  name: string,
  change: (old: unknown) => Record<string, unknown> | undefined,
): Promise<void> {
  const file = join(folder, `${kind}s.json`);
  checkPlace(root, folder, file);
  await changeConfigFile(file, (text) => {
    const entries = parseSettings(text ?? "{}\n", file);
    const entry = change(Object.hasOwn(entries, name) ? entries[name] : undefined);
    if (text === undefined && entry === undefined) return undefined;
    const formattingOptions = { tabSize: 2, insertSpaces: true };
    const before = text ?? "{}\n";
    const after = applyEdits(before, modify(before, [name], entry, { formattingOptions }));
    const found = parseSettings(after, file);
    if (JSON.stringify(found[name]) === JSON.stringify(entry)) return after;
    throw usageError(
      "catalog_file",
      `${file} has the name "${name}" twice, so it cannot be edited safely.`,
      "Keep one of the two.",
    );
  });
}

/**
 * Writes or removes `skills/<name>.md`.
 *
 * @param change gets whether it is there, and returns the text or undefined for none.
 */
export async function changeSkill(
  { root, folder }: Place,
  name: string,
  change: (exists: boolean) => string | undefined,
): Promise<void> {
  const skills = join(folder, "skills");
  const file = join(skills, `${name}.md`);
  checkPlace(root, folder, skills);
  try {
    await withFileLock(skills, () => {
      const exists = readTextIfExists(file) !== undefined;
      const text = change(exists);
      if (text !== undefined) writeFileAtomic(file, text);
      else if (exists) Deno.removeSync(file);
    });
  } catch (error) {
    if (error instanceof SvcError) throw error;
    throw writeFailure("catalog_file", file, error);
  }
}
