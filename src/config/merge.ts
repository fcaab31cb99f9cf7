import { isObject, isReserved } from "./key_path.ts";

/** A higher layer's value over a lower one's: objects merge per key, all else replaces. Copies both. */
export function merge(lower: unknown, higher: unknown): unknown {
  if (!isObject(lower) || !isObject(higher)) return copy(higher);
  const result = copy(lower);
  for (const name of Object.keys(higher)) {
    if (isReserved(name)) continue;
    const below = Object.hasOwn(lower, name) ? lower[name] : undefined;
    result[name] = merge(below, higher[name]);
  }
  return result;
}

/** A copy of a JSON value of which no part is shared, without reserved names. */
export function copy<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copy) as T;
  if (!isObject(value)) return value;
  const result: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    if (!isReserved(name)) result[name] = copy(value[name]);
  }
  return result as T;
}
