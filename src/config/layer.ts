import { usageError } from "../platform/error.ts";
import { isObject } from "../platform/files.ts";
import { checkValue, mustBe, wrongValue } from "./check.ts";
import { parseSettings, readConfigFile } from "./file.ts";
import {
  API_KEY,
  API_KEY_HINT,
  groupKeys,
  isApiKey,
  nearestKey,
  nest,
  unknownEvent,
} from "./key_path.ts";
import { BUNDLED_PLUGINS, type ConfigKey, settingOf, SETTINGS } from "./keys.ts";

/** The checked settings of one configuration file. */
export interface Layer {
  readonly file: string;
  /** Only the settings in the file; object settings hold only the fields in the file. */
  readonly values: Map<ConfigKey, unknown>;
  readonly legacy: LegacyPlugins | undefined;
  readonly warnings: string[];
}

/**
 * Reads a configuration file; a missing one is an empty layer.
 *
 * @throws SvcError (exit 2) for a file that cannot be read or parsed, or a value of the wrong kind.
 */
export function readLayer(file: string): Layer {
  const layer: Layer = { file, values: new Map(), legacy: undefined, warnings: [] };
  const text = readConfigFile(file);
  if (text === undefined) return layer;
  const { settings, legacy } = takeLegacyPlugins(parseSettings(text, file), file);
  const nested = nest(settings, (name) => {
    layer.warnings.push(`${file}: "${name}" is ignored; it is no setting`);
  });
  collect(nested, "", layer);
  return { ...layer, legacy };
}

function collect(settings: Record<string, unknown>, prefix: string, layer: Layer): void {
  for (const [name, value] of Object.entries(settings)) {
    const path = prefix + name;
    if (Object.hasOwn(SETTINGS, path)) {
      layer.values.set(path as ConfigKey, accept(path as ConfigKey, value, layer));
    } else if (groupKeys(path).length > 0) {
      // `"sandbox": "off"` is short for its mode.
      if (path === "sandbox" && typeof value === "string") {
        collect({ mode: value }, "sandbox.", layer);
        continue;
      }
      if (!isObject(value)) {
        const found = Array.isArray(value) ? "a list" : "a single value";
        throw wrongValue({ path, fault: mustBe("an object", found) }, layer.file);
      }
      collect(value, path + ".", layer);
    } else if (path !== "$schema") {
      layer.warnings.push(`${layer.file}: ${unknownName(path)}`);
    }
  }
}

function accept(key: ConfigKey, value: unknown, layer: Layer): unknown {
  const { problem, unknown } = checkValue(key, value);
  const unknowns = unknown.map(unknownName);
  for (const sentence of unknowns) layer.warnings.push(`${layer.file}: ${sentence}`);
  if (problem === undefined) return value;
  const { lenient, default: fallback } = settingOf(key);
  if (!lenient) {
    const hint = unknowns[0] && `In the same place, ${unknowns[0]}`;
    throw wrongValue(problem, layer.file, hint);
  }
  const { path, fault } = problem;
  layer.warnings.push(`${layer.file}: "${path}" ${fault}; it counts as "${fallback}"`);
  return fallback;
}

function unknownName(name: string): string {
  if (isApiKey(name)) return `"${name}" is ignored. ${API_KEY} ${API_KEY_HINT}`;
  const event = unknownEvent(name);
  if (event !== undefined) return `${event.sentence}. ${event.hint}`;
  const guess = nearestKey(name);
  return `there is no setting "${name}"` +
    (guess === undefined ? "" : `; did you mean "${guess}"?`);
}

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
      throw wrongValue({ path: flat, fault: "must be a list of names" }, file);
    }
    legacy[name] = value;
  }
  // Other fields of the object are unknown; checking `plugins` reports them.
  if (isObject(settings.plugins) && Object.keys(nested).length === 0) delete rest.plugins;
  const some = legacy.enabled !== undefined || legacy.deny !== undefined;
  return { settings: rest, legacy: some ? legacy : undefined };
}

/**
 * The `plugins` list for the former settings.
 *
 * @param lower the list of the lower layers.
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
