import { findNodeAtLocation, getNodeValue, type Node } from "jsonc-parser";
import { usageError } from "../platform/error.ts";
import { acceptNew } from "./check.ts";
import { changeConfigFile, parseObject, readConfigFile } from "./file.ts";
import { appendItem, insertItem, removeItem, replaceValue } from "./items.ts";
import { findKey, isObject, type KeyPath, unknownKey, within } from "./key_path.ts";

/**
 * Writes one setting into a configuration file, which is made when it is missing. The other settings
 * of the file may be wrong: this is how they are put right.
 *
 * @param name a setting such as `tools.deny`, or a part of an object setting such as `tool_permission.bash`.
 * @throws SvcError (exit 2) for an unknown name, a value of the wrong kind, or a file that is not valid;
 * nothing is written then.
 */
export async function setInFile(file: string, name: string, value: unknown): Promise<void> {
  const place = findKey(name);
  if (place === undefined) throw unknownKey(name);
  const accepted = acceptNew(place, value);
  await changeConfigFile(file, (text) => {
    const changed = setInText(text ?? "{}\n", place, accepted, file);
    parseObject(changed, file); // whatever the edit met, the file stays one that can be read
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
    const changed = unsetInText(text, name.split("."), file);
    parseObject(changed, file);
    found = changed !== text;
    return changed;
  });
  return found;
}

/** A place in the tree of a file: names as they are spelled there, and indices. */
type Location = (string | number)[];

/**
 * The text of a configuration file with a setting changed: in the spelling in which the file has it,
 * with every comment and all other formatting kept. Further spellings of the same setting go, so that
 * the new value holds.
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
    const places = findPlaces(root, path, file);
    const exact = places.exact.pop();
    const stale = [...places.exact, ...places.below, ...places.blocking][0];
    if (stale !== undefined) {
      text = removeAt(text, stale, file);
      continue;
    }
    if (exact !== undefined) return assign(text, exact, value, file);
    const [parent] = places.above;
    if (parent !== undefined) {
      return append(text, parent.location, parent.rest, value, file);
    }
    // Neither the setting nor an object around it is there yet.
    const flat = [key, ...rest].join(".");
    const siblings = root.children!.some((child) => nameOf(child).startsWith(`${key}.`));
    return append(text, [], siblings ? [flat] : [key, ...rest], value, file);
  }
}

/** The text without a setting, in whatever spelling it was there. Comments stay. */
export function unsetInText(text: string, path: string[], file: string): string {
  for (;;) {
    const { exact, below } = findPlaces(parseObject(text, file), path, file);
    const [place] = [...exact, ...below];
    if (place === undefined) return text;
    text = removeAt(text, place, file);
  }
}

interface Places {
  /** Where the setting itself stands; the last one counts (see `nest` in layer.ts). */
  exact: Location[];
  /** Where parts of it stand outside of that. */
  below: Location[];
  /** Where something that is no object stands in the way. */
  blocking: Location[];
  /** Objects that the setting may be written into, the closest first, and the names still missing. */
  above: { location: Location; rest: string[] }[];
}

function findPlaces(root: Node, path: string[], file: string): Places {
  const places: Places = { exact: [], below: [], blocking: [], above: [] };
  search(root, path, [], places, file);
  places.above.sort((a, b) => a.rest.length - b.rest.length);
  return places;
}

function search(object: Node, path: string[], at: Location, places: Places, file: string): void {
  refuseDuplicates(object, file);
  const properties = object.children!.map((node) => {
    const name = nameOf(node);
    return { name, parts: name.split("."), value: node.children![1]! };
  });
  properties.sort((a, b) => a.parts.length - b.parts.length);
  for (const { name, parts, value } of properties) {
    const shared = Math.min(parts.length, path.length);
    if (!parts.slice(0, shared).every((part, index) => part === path[index])) continue;
    const location = [...at, name];
    if (parts.length > path.length) places.below.push(location);
    else if (parts.length === path.length) places.exact.push(location);
    else if (value.type !== "object") places.blocking.push(location);
    else {
      const rest = path.slice(parts.length);
      places.above.push({ location, rest });
      search(value, rest, location, places, file);
    }
  }
}

/** Of a name that is there twice only the last counts; which one the user means, only he can say. */
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

/** What carries a comma: the property of an object, the element of an array. */
function itemAt(text: string, location: Location, file: string): Node {
  const node = nodeAt(text, location, file);
  return node.parent!.type === "property" ? node.parent! : node;
}

function removeAt(text: string, location: Location, file: string): string {
  return removeItem(text, itemAt(text, location, file));
}

/** Adds a property, with objects around its value for all names but the first. */
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

/** Gives the value at a location a new one, touching only what differs. */
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
