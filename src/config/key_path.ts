import { nearest, type SvcError, usageError } from "../platform/error.ts";
import { isObject } from "../platform/files.ts";
import {
  CONFIG_KEYS,
  type ConfigKey,
  fieldNames,
  HOOK_EVENTS,
  settingOf,
  SETTINGS,
} from "./keys.ts";

/** A setting, or a path inside an object setting. */
export interface KeyPath {
  readonly key: ConfigKey;
  /** Names inside the setting; empty for the setting itself. */
  readonly rest: readonly string[];
}

/** The path of a dotted name such as `tools.deny` or `modes.review.color`; undefined when unknown. */
export function findKey(name: string): KeyPath | undefined {
  if (Object.hasOwn(SETTINGS, name)) return { key: name as ConfigKey, rest: [] };
  const names = namesIn("", name);
  if (names.some((part) => part === "" || isReserved(part))) return undefined;
  for (let length = names.length - 1; length > 0; length--) {
    const key = names.slice(0, length).join(".");
    if (Object.hasOwn(SETTINGS, key) && isObject(settingOf(key as ConfigKey).default)) {
      return { key: key as ConfigKey, rest: names.slice(length) };
    }
  }
  return undefined;
}

/**
 * The names that a dotted name inside of the settings at `prefix` stands for. In `prices`, the name of a model may
 * have dots of its own.
 *
 * @param prefix empty, or with a dot at its end
 */
export function namesIn(prefix: string, path: string): string[] {
  if (prefix === "prices.") return [path];
  if (prefix !== "") return path.split(".");
  const [, model, field] = /^prices\.(.+?)(?:\.(in|out|cached|cache_write))?$/.exec(path) ?? [];
  if (model === undefined) return path.split(".");
  return ["prices", model, ...field === undefined ? [] : [field]];
}

/** Wraps a value into objects, so that its path in the setting is `rest`. */
export function within(rest: readonly string[], value: unknown): unknown {
  return rest.reduceRight((inner, name) => ({ [name]: inner }), value);
}

/** The value at `rest` in the value of a setting; undefined when there is none. */
export function lookUp(value: unknown, rest: readonly string[]): unknown {
  for (const name of rest) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

/** The settings of a group such as `tools`; empty when the name is no group. */
export function groupKeys(group: string): ConfigKey[] {
  return CONFIG_KEYS.filter((key) => key.startsWith(`${group}.`));
}

/** The error for a name that is no setting, with the nearest one. */
export function unknownKey(name: string): SvcError {
  if (isApiKey(name)) return usageError("config_key", API_KEY, API_KEY_HINT);
  const group = groupKeys(name);
  if (group.length > 0) {
    return usageError(
      "config_key",
      `"${name}" is a group of settings, not a setting.`,
      `Its settings: ${group.join(", ")}.`,
    );
  }
  if (name === "plugins.enabled" || name === "plugins.deny") {
    return usageError(
      "config_key",
      `"${name}" is an old setting.`,
      'The list "plugins" names the plugins to load.',
    );
  }
  const event = unknownEvent(name);
  if (event !== undefined) return usageError("config_key", `${event.sentence}.`, event.hint);
  const guess = nearestKey(name);
  return usageError(
    "config_key",
    `There is no setting "${name}".`,
    guess === undefined ? "svc config get lists all settings." : `Did you mean "${guess}"?`,
  );
}

/** What is said of a name in the setting `hooks` that is no event; undefined for any other name. */
export function unknownEvent(name: string): { sentence: string; hint: string } | undefined {
  const [, event] = /^hooks\.([^.[\]]+)$/.exec(name) ?? [];
  if (event === undefined) return undefined;
  const events = Object.keys(HOOK_EVENTS);
  const words = (text: string) =>
    text.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase().split("_");
  const guess = nearest(event, Object.entries(HOOK_EVENTS).flat(2)) ??
    nearest(words(event).join("_"), events) ??
    events.find((each) => words(each).at(-1) === words(event).at(-1));
  return {
    sentence: `"hooks" has no event "${event}"`,
    hint: `${guess === undefined ? "" : `Did you mean "${guess}"? `}The events: ${
      events.join(", ")
    }.`,
  };
}

/** The setting, the group or, inside a setting, the field whose name is nearest to `name`, if one is near. */
export function nearestKey(name: string): string | undefined {
  if (CONFIG_KEYS.some((key) => name.startsWith(`${key}.`) || name.startsWith(`${key}[`))) {
    return nearest(name.slice(name.lastIndexOf(".") + 1), fieldNames());
  }
  const groups = CONFIG_KEYS.filter((key) => key.includes(".")).map((key) => key.split(".")[0]!);
  const candidates: string[] = [...CONFIG_KEYS, ...groups];
  const plain = name.replace(/-/g, "_").toLowerCase();
  // deny for tools.deny, llm.model for model, max-tokens for max_tokens
  return candidates.find((key) => key.endsWith(`.${plain}`) || plain.endsWith(`.${key}`)) ??
    nearest(plain, candidates);
}

/** Whether a name looks like that of an API key, which is never a setting (specification 5.1). */
export function isApiKey(name: string): boolean {
  return /(^|[._-])api[_-]?key$/i.test(name);
}

export const API_KEY = "API keys are never settings.";
export const API_KEY_HINT = "Store the key of a provider with: svc connect";

/** Names with a special meaning in JavaScript; they are no names of settings. */
export function isReserved(name: string): boolean {
  return name === "__proto__" || name === "constructor" || name === "prototype";
}

/**
 * Settings as nested objects: a dot in a name separates an object from its field. When a setting has several
 * spellings, the one with more dots wins: the flat one over the nested one.
 *
 * @param ignored is called with each reserved name, which is omitted
 * @param prefix the path of the settings, with a dot at its end
 */
export function nest(
  settings: Record<string, unknown>,
  ignored: (name: string) => void,
  prefix = "",
): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  const named = Object.keys(settings).map((name) => ({
    name,
    parts: namesIn(prefix, name),
  }));
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

/** Merges a higher layer's value into a lower one's: objects per key, other values replace. Copies both. */
export function merge(lower: unknown, higher: unknown): unknown {
  if (!isObject(lower) || !isObject(higher)) return copy(higher);
  const result = copy(lower);
  for (const name of Object.keys(higher)) {
    if (isReserved(name)) continue;
    const current = Object.hasOwn(lower, name) ? lower[name] : undefined;
    result[name] = merge(current, higher[name]);
  }
  return result;
}

/** A deep copy of a JSON value, without reserved names. */
export function copy<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copy) as T;
  if (!isObject(value)) return value;
  const result: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    if (!isReserved(name)) result[name] = copy(value[name]);
  }
  return result as T;
}
