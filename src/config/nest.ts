import { isObject, isReserved } from "./key_path.ts";
import { merge } from "./merge.ts";

/**
 * Settings as nested objects, whichever way they were spelled: a dot in a name separates. Where
 * several spellings give the same setting, the one with more dots wins: the flat one over the nested one.
 *
 * @param ignored gets each name that was left out, because JavaScript gives it a meaning of its own.
 */
export function nest(
  settings: Record<string, unknown>,
  ignored: (name: string) => void,
  prefix = "",
): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  const named = Object.keys(settings).map((name) => ({ name, parts: name.split(".") }));
  for (const { name, parts } of named.sort((a, b) => a.parts.length - b.parts.length)) {
    if (parts.some(isReserved)) {
      ignored(prefix + name);
      continue;
    }
    let parent = result;
    for (const part of parts.slice(0, -1)) {
      if (!Object.hasOwn(parent, part) || !isObject(parent[part])) parent[part] = {};
      parent = parent[part] as Record<string, unknown>;
    }
    const last = parts.at(-1)!;
    const value = settings[name];
    const nested = isObject(value) ? nest(value, ignored, `${prefix}${name}.`) : value;
    parent[last] = merge(Object.hasOwn(parent, last) ? parent[last] : undefined, nested);
  }
  return result;
}
