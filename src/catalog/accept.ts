import { isObject } from "../config/key_path.ts";
import { nearest, usageError } from "../platform/error.ts";
import { checkEntry } from "./layers.ts";
import { fieldNames, isCatalogName, type Kind, NAME_RULE, type RawEntry } from "./schema.ts";

/** @throws SvcError `catalog_entry` (exit 2) for a field of the wrong kind, or one that no entry has. */
export function acceptEntry(kind: Kind, name: string, value: unknown): RawEntry {
  const { entry, problem, unknown } = checkEntry(kind, name, value);
  if (problem) throw usageError("catalog_entry", `"${problem.place}" ${problem.fault}.`);
  if (unknown[0] === undefined) return entry;
  const field = unknown[0].split(".").at(-1)!;
  const guess = nearest(field, fieldNames(kind));
  throw usageError(
    "catalog_entry",
    `"${unknown[0]}" is no field of a ${kind}.`,
    guess === undefined ? `Its fields: ${fieldNames(kind).join(", ")}.` : `Did you mean ${guess}?`,
  );
}

/** What an entry on disk has beside the fields that entries have; another version may know them. */
export function fieldsOfOthers(kind: Kind, old: unknown): RawEntry {
  if (!isObject(old)) return {};
  const known = fieldNames(kind);
  return Object.fromEntries(
    Object.entries(old).filter(([field]) => field !== "name" && !known.includes(field)),
  );
}

/** @throws SvcError `catalog_name` (exit 2) */
export function checkName(kind: Kind, name: string): void {
  if (isCatalogName(name)) return;
  throw usageError(
    "catalog_name",
    `${JSON.stringify(name.slice(0, 80))} cannot be the name of a ${kind}.`,
    `A name has ${NAME_RULE}.`,
  );
}
