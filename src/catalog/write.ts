import { join } from "node:path";
import { applyEdits, modify } from "jsonc-parser";
import { changeConfigFile } from "../config/file.ts";
import { parseSettings } from "../config/jsonc.ts";
import { SvcError, usageError, writeFailure } from "../platform/error.ts";
import { readTextIfExists, withFileLock, writeFileAtomic } from "../platform/files.ts";
import { acceptEntry, checkName, fieldsOfOthers } from "./accept.ts";
import { checkPlace } from "./confined.ts";
import type { Place, Scope } from "./place.ts";
import { existing } from "./refusals.ts";
import type { Kind } from "./schema.ts";

/**
 * Writes an entry into a layer, in place of what the layer had under this name. The fields of that which
 * no entry has are kept, and so are all other entries, also those that cannot be used.
 *
 * @param options.replace `false`: refuse when the layer has one already.
 * @throws SvcError (exit 2) for a bad name or entry, and when the layer's file is broken.
 */
export async function saveEntry(
  { scope, ...place }: Place & { scope: Scope },
  kind: Kind,
  name: string,
  value: unknown,
  { replace = true }: { replace?: boolean } = {},
): Promise<void> {
  checkName(kind, name);
  const entry = acceptEntry(kind, name, value);
  const demandFree = (taken: boolean) => {
    if (taken && !replace) throw existing(kind, scope, name);
  };
  if (kind === "skill") {
    await changeSkill(place, name, (exists) => {
      demandFree(exists);
      return `${(entry.text as string).trim()}\n`;
    });
  } else {
    await changeEntry(place, kind, name, (old) => {
      demandFree(old !== undefined);
      return { ...fieldsOfOthers(kind, old), ...entry };
    });
  }
}

/** Removes an entry from a layer; false when the layer has none. */
export async function removeEntry(place: Place, kind: Kind, name: string): Promise<boolean> {
  checkName(kind, name);
  let found = false;
  const note = (there: boolean) => void (found = there);
  if (kind === "skill") await changeSkill(place, name, note);
  else await changeEntry(place, kind, name, (old) => note(old !== undefined));
  return found;
}

/**
 * Changes an entry of `roles.json` or `teams.json`, which is made when it is missing. Everything else in
 * the file stays as it is written there.
 *
 * @param change gets what the file has under the name, and returns the new entry or undefined for none.
 * @throws SvcError (exit 2) when the file cannot be read or written, or is no valid JSON; it stays as it is.
 */
async function changeEntry(
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
async function changeSkill(
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
