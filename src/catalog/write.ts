import { applyEdits, modify } from "jsonc-parser";
import { join } from "node:path";
import { changeConfigFile, parseSettings } from "../config/file.ts";
import { SvcError, usageError, writeFailure } from "../platform/error.ts";
import { isObject, readTextIfExists, withFileLock, writeFileAtomic } from "../platform/files.ts";
import { checkInside, type LayerFolder, type Scope } from "./files.ts";
import { acceptEntry } from "./layers.ts";
import { fieldNames, isCatalogName, type Kind, NAME_RULE, type RawEntry } from "./schema.ts";

/**
 * Writes an entry into a layer and replaces the layer's entry of this name. Unknown fields of the old entry
 * are kept, and so are all other entries, including broken ones.
 *
 * @param options.replace `false`: fail with `catalog_exists` when the layer has the entry
 * @throws SvcError (exit 2) for an invalid name or entry, and when the layer's file is broken
 */
export async function saveEntry(
  { scope, ...layer }: LayerFolder & { scope: Scope },
  kind: Kind,
  name: string,
  value: unknown,
  { replace = true }: { replace?: boolean } = {},
): Promise<void> {
  checkName(kind, name);
  const entry = acceptEntry(kind, name, value);
  const checkFree = (taken: boolean) => {
    if (!taken || replace) return;
    throw usageError(
      "catalog_exists",
      `There is a ${scope} ${kind} ${name} already.`,
      "Pass --force to replace it.",
    );
  };
  if (kind === "skill") {
    await changeSkill(layer, name, (exists) => {
      checkFree(exists);
      return `${(entry.text as string).trim()}\n`;
    });
  } else {
    await changeEntry(layer, kind, name, (old) => {
      checkFree(old !== undefined);
      return { ...unknownFields(kind, old), ...entry };
    });
  }
}

/** Removes an entry from a layer; false when the layer does not have it. */
export async function removeEntry(layer: LayerFolder, kind: Kind, name: string): Promise<boolean> {
  checkName(kind, name);
  let found = false;
  const note = (there: boolean) => void (found = there);
  if (kind === "skill") await changeSkill(layer, name, note);
  else await changeEntry(layer, kind, name, (old) => note(old !== undefined));
  return found;
}

/**
 * Changes an entry of `roles.json` or `teams.json` and creates a missing file. The rest of the file keeps
 * its text.
 *
 * @param change gets the entry of the file, and returns the new one or undefined to remove it
 * @throws SvcError (exit 2) when the file cannot be read or written, or is not valid JSON; it is unchanged
 */
async function changeEntry(
  { root, folder }: LayerFolder,
  kind: Kind,
  name: string,
  change: (old: unknown) => Record<string, unknown> | undefined,
): Promise<void> {
  const file = join(folder, `${kind}s.json`);
  checkInside(root, folder, file);
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
 * @param change gets whether the file exists, and returns the new text or undefined to remove it
 */
async function changeSkill(
  { root, folder }: LayerFolder,
  name: string,
  change: (exists: boolean) => string | undefined,
): Promise<void> {
  const skills = join(folder, "skills");
  const file = join(skills, `${name}.md`);
  checkInside(root, folder, skills);
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

/** The fields of an entry on disk that the schema does not have; another version may know them. */
function unknownFields(kind: Kind, old: unknown): RawEntry {
  if (!isObject(old)) return {};
  const known = fieldNames(kind);
  return Object.fromEntries(
    Object.entries(old).filter(([field]) => field !== "name" && !known.includes(field)),
  );
}

/** @throws SvcError `catalog_name` (exit 2) */
function checkName(kind: Kind, name: string): void {
  if (isCatalogName(name)) return;
  throw usageError(
    "catalog_name",
    `${JSON.stringify(name.slice(0, 80))} cannot be the name of a ${kind}.`,
    `A name has ${NAME_RULE}.`,
  );
}
