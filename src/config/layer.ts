import { checkValue, mustBe, wrongValue } from "./check.ts";
import { readConfigFile } from "./file.ts";
import { parseSettings } from "./jsonc.ts";
import { API_KEY, API_KEY_HINT, groupKeys, isApiKey, isObject, nearestKey } from "./key_path.ts";
import { type ConfigKey, settingOf, SETTINGS } from "./keys.ts";
import { type LegacyPlugins, takeLegacyPlugins } from "./legacy_plugins.ts";
import { nest } from "./nest.ts";

/** The settings of one configuration file, checked. */
export interface Layer {
  readonly file: string;
  /** Only the settings that the file has; object settings hold only the fields that it has. */
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
    const place = prefix + name;
    if (Object.hasOwn(SETTINGS, place)) {
      layer.values.set(place as ConfigKey, accept(place as ConfigKey, value, layer));
    } else if (groupKeys(place).length > 0) {
      if (!isObject(value)) {
        const found = Array.isArray(value) ? "a list" : "a single value";
        throw wrongValue({ place, fault: mustBe("an object", found) }, layer.file);
      }
      collect(value, place + ".", layer);
    } else if (place !== "$schema") {
      layer.warnings.push(`${layer.file}: ${unknownName(place)}`);
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
  const { place, fault } = problem;
  layer.warnings.push(`${layer.file}: "${place}" ${fault}; it counts as "${fallback}"`);
  return fallback;
}

function unknownName(name: string): string {
  if (isApiKey(name)) return `"${name}" is ignored. ${API_KEY} ${API_KEY_HINT}`;
  const guess = nearestKey(name);
  return `there is no setting "${name}"` +
    (guess === undefined ? "" : `; did you mean "${guess}"?`);
}
