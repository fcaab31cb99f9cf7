import { findNodeAtLocation, getNodeValue, type Node } from "jsonc-parser";
import { usageError } from "../platform/error.ts";
import { isObject } from "../platform/files.ts";
import { acceptNew } from "./check.ts";
import { changeConfigFile, parseObject, readConfigFile } from "./file.ts";
import { appendItem, insertItem, removeItem, replaceValue } from "./items.ts";
import { findKey, type KeyPath, namesIn, unknownKey, within } from "./key_path.ts";

/**
 * Writes one setting into a configuration file, which is created when it is missing. Other settings of the
 * file may be wrong, so that a file can be corrected step by step.
 *
 * @param name a setting such as `tools.deny`, or a part of an object setting such as `tool_permission.bash`.
 * @throws SvcError (exit 2) for an unknown name, a value of the wrong kind, or a file that is not valid;
 * nothing is written then.
 */
export async function setInFile(file: string, name: string, value: unknown): Promise<void> {
  const path = findKey(name);
  if (path === undefined) throw unknownKey(name);
  const accepted = acceptNew(path, value);
  await changeConfigFile(file, (text) => {
    const changed = setInText(text ?? "{}\n", path, accepted, file);
    parseObject(changed, file); // the edited file must be readable
    return changed;
  });
}

/**
 * Removes a setting, or a name that is no setting, from a configuration file.
 *
 * @returns whether it was there.
 */
export async function unsetInFile(file: string, name: string): Promise<boolean> {
  if (readConfigFile(file) === undefined) return false;
  let found = false;
  await changeConfigFile(file, (text) => {
    if (text === undefined) return undefined;
    const changed = unsetInText(text, namesIn("", name), file);
    parseObject(changed, file);
    found = changed !== text;
    return changed;
  });
  return found;
}

/** A path in the syntax tree of a file: names in the spelling of the file, and indices. */
type Location = (string | number)[];

/**
 * Changes a setting in the text of a configuration file. The spelling of the file, its comments and its
 * formatting are kept. Other spellings of the same setting are removed, so that the new value is in effect.
 *
 * @throws SvcError `config_syntax` (exit 2) when the text is not what `parseObject` accepts, or has a name twice.
 */
export function setInText(
  text: string,
  { key, rest }: KeyPath,
  value: unknown,
  file: string,
): string {
  const path = [...key.split("."), ...rest];
  for (;;) {
    const root = parseObject(text, file);
    const found = findSpellings(root, path, file);
    const exact = found.exact.pop();
    const stale = [...found.exact, ...found.parts, ...found.blocking][0];
    if (stale !== undefined) {
      text = removeAt(text, stale, file);
      continue;
    }
    if (exact !== undefined) return assign(text, exact, value, file);
    const [parent] = found.parents;
    if (parent !== undefined) {
      return append(text, parent.location, parent.rest, value, file);
    }
    // The file has neither the setting nor an object for it.
    const flat = [key, ...rest].join(".");
    const siblings = root.children!.some((child) => nameOf(child).startsWith(`${key}.`));
    return append(text, [], siblings ? [flat] : [key, ...rest], value, file);
  }
}

/** Removes all spellings of a setting. Comments are kept. */
export function unsetInText(text: string, path: string[], file: string): string {
  for (;;) {
    const { exact, parts } = findSpellings(parseObject(text, file), path, file);
    const [location] = [...exact, ...parts];
    if (location === undefined) return text;
    text = removeAt(text, location, file);
  }
}

interface Spellings {
  /** The locations of the setting itself; the last one counts (see `nest` in key_path.ts). */
  exact: Location[];
  /** The locations of parts of the setting outside of these. */
  parts: Location[];
  /** The locations of values that are no object where one is needed. */
  blocking: Location[];
  /** Objects that can hold the setting, the closest first, and the missing names. */
  parents: { location: Location; rest: string[] }[];
}

function findSpellings(root: Node, path: string[], file: string): Spellings {
  const found: Spellings = { exact: [], parts: [], blocking: [], parents: [] };
  search(root, path, [], found, file);
  found.parents.sort((a, b) => a.rest.length - b.rest.length);
  return found;
}

function search(object: Node, path: string[], at: Location, found: Spellings, file: string): void {
  refuseDuplicates(object, file);
  const prefix = at.map((name) => `${name}.`).join("");
  const properties = object.children!.map((node) => {
    const name = nameOf(node);
    return { name, parts: namesIn(prefix, name), value: node.children![1]! };
  });
  properties.sort((a, b) => a.parts.length - b.parts.length);
  for (const { name, parts, value } of properties) {
    const shared = Math.min(parts.length, path.length);
    if (!parts.slice(0, shared).every((part, index) => part === path[index])) continue;
    const location = [...at, name];
    if (parts.length > path.length) found.parts.push(location);
    else if (parts.length === path.length) found.exact.push(location);
    else if (value.type !== "object") found.blocking.push(location);
    else {
      const rest = path.slice(parts.length);
      found.parents.push({ location, rest });
      search(value, rest, location, found, file);
    }
  }
}

/** Throws for a name that occurs twice: only the last one counts, and the user may mean the other. */
function refuseDuplicates(object: Node, file: string): void {
  const names = object.children!.map(nameOf);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return;
  throw usageError(
    "config_syntax",
    `${file} has the name "${twice}" twice in one object, so it cannot be edited safely.`,
    "Keep one of the two.",
  );
}

function nameOf(property: Node): string {
  return property.children![0]!.value as string;
}

/** The node of a value. */
function nodeAt(text: string, location: Location, file: string): Node {
  return findNodeAtLocation(parseObject(text, file), location)!;
}

/** The node that is separated by commas: the property of an object, or the element of an array. */
function itemAt(text: string, location: Location, file: string): Node {
  const node = nodeAt(text, location, file);
  return node.parent!.type === "property" ? node.parent! : node;
}

function removeAt(text: string, location: Location, file: string): string {
  return removeItem(text, itemAt(text, location, file));
}

/** Adds a property; its value is wrapped into objects for all names but the first. */
function append(
  text: string,
  location: Location,
  [name, ...inner]: string[],
  value: unknown,
  file: string,
): string {
  return appendItem(text, nodeAt(text, location, file), {
    name: name!,
    value: within(inner, value),
  });
}

/** Refound the value at a location; only the differences are edited. */
function assign(text: string, location: Location, value: unknown, file: string): string {
  const node = nodeAt(text, location, file);
  const old = getNodeValue(node) as unknown;
  if (same(old, value)) return text;
  if (Array.isArray(old) && Array.isArray(value)) {
    return assignList(text, location, old, value, file);
  }
  if (!isObject(old) || !isObject(value)) {
    return replaceValue(text, itemAt(text, location, file), node, value);
  }
  refuseDuplicates(node, file);
  for (const name of Object.keys(old)) {
    if (!Object.hasOwn(value, name)) text = removeAt(text, [...location, name], file);
  }
  for (const [name, item] of Object.entries(value)) {
    text = Object.hasOwn(old, name)
      ? assign(text, [...location, name], item, file)
      : append(text, location, [name], item, file);
  }
  return text;
}

function assignList(
  text: string,
  location: Location,
  old: unknown[],
  value: unknown[],
  file: string,
): string {
  let start = 0;
  while (start < Math.min(old.length, value.length) && same(old[start], value[start])) start++;
  let end = 0;
  while (
    end < Math.min(old.length, value.length) - start && same(old.at(-1 - end), value.at(-1 - end))
  ) end++;
  for (let index = old.length - end - 1; index >= start; index--) {
    text = removeAt(text, [...location, index], file);
  }
  for (let index = start; index < value.length - end; index++) {
    const list = nodeAt(text, location, file);
    const next = list.children![index];
    text = next === undefined
      ? appendItem(text, list, { value: value[index] })
      : insertItem(text, next, value[index]);
  }
  return text;
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
