import { usageError } from "../platform/error.ts";
import { wrongValue } from "./check.ts";
import { isObject } from "./key_path.ts";
import { BUNDLED_PLUGINS } from "./keys.ts";

/** The former settings `plugins.enabled` and `plugins.deny` of one file (specification 9.6). */
export interface LegacyPlugins {
  readonly enabled?: string[];
  readonly deny?: string[];
}

const NAMES = ["enabled", "deny"] as const;

/**
 * Splits the former plugin settings, in either spelling, from the other settings of a file.
 *
 * @throws SvcError `config_value` (exit 2) when one is not a list of names.
 */
export function takeLegacyPlugins(
  settings: Record<string, unknown>,
  file: string,
): { settings: Record<string, unknown>; legacy: LegacyPlugins | undefined } {
  const nested = isObject(settings.plugins) ? { ...settings.plugins } : {};
  const legacy: { enabled?: string[]; deny?: string[] } = {};
  const rest = { ...settings };
  for (const name of NAMES) {
    const flat = `plugins.${name}`;
    const value = Object.hasOwn(settings, flat) ? settings[flat] : nested[name];
    delete rest[flat];
    delete nested[name];
    if (value === undefined) continue;
    if (!Array.isArray(value) || !value.every((item) => typeof item === "string")) {
      throw wrongValue({ place: flat, fault: "must be a list of names" }, file);
    }
    legacy[name] = value;
  }
  // What else the object holds is not known to any version; checking `plugins` says so.
  if (isObject(settings.plugins) && Object.keys(nested).length === 0) delete rest.plugins;
  const some = legacy.enabled !== undefined || legacy.deny !== undefined;
  return { settings: rest, legacy: some ? legacy : undefined };
}

/**
 * The `plugins` list that former settings stand for.
 *
 * @param lower the list that holds without them.
 * @throws SvcError `config_value` (exit 2) when nothing is left: an empty list would load everything.
 */
export function migratePlugins(
  { enabled, deny = [] }: LegacyPlugins,
  lower: readonly string[],
  file: string,
): string[] {
  if (enabled?.length === 0 && deny.length === 0) return [];
  const base = [enabled, lower, BUNDLED_PLUGINS].find((list) => list && list.length > 0)!;
  const list = base.filter((name) => !deny.includes(name));
  if (list.length > 0) return list;
  throw usageError(
    "config_value",
    `${file}: "plugins.deny" leaves no plugin, which the list "plugins" cannot say.`,
    'Write "plugins" as the list of plugins to load; an empty one loads all that are found.',
  );
}
