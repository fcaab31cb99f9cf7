import { join } from "node:path";
import type { Paths } from "../platform/environment.ts";
import { setInFile, unsetInFile } from "./edit.ts";
import { acceptNew } from "./check.ts";
import { copy, findKey, type KeyPath, lookUp, merge, unknownKey, within } from "./key_path.ts";
import { type ConfigKey, type ConfigValues, settingOf } from "./keys.ts";
import { type Layer, migratePlugins, readLayer } from "./layer.ts";

export type { ConfigKey, ConfigValues };

/** The configuration files: the user's and the worktree's. */
export type ConfigScope = "global" | "local";

/** Where a value comes from, lowest first. */
export type ConfigOrigin = "default" | ConfigScope | "override";

/** The configuration file of a scope. */
export function configFile(paths: Paths, scope: ConfigScope): string {
  return join(scope === "global" ? paths.user : paths.state, "config.json");
}

interface Layers {
  readonly global: Layer;
  readonly local: Layer;
  readonly warnings: string[];
}

/**
 * The settings of one worktree (specification 2.13): defaults, under the user's file, under the worktree's,
 * under overrides in memory. Lists and scalars replace, objects merge per key.
 */
export class Config {
  readonly #paths: Paths;
  #layers: Layers;
  readonly #overrides = new Map<ConfigKey, unknown>();
  readonly #effective = new Map<ConfigKey, unknown>();

  private constructor(paths: Paths, layers: Layers) {
    this.#paths = paths;
    this.#layers = layers;
    Object.freeze(this); // plugins are handed it
  }

  /**
   * Reads both files; a missing one says nothing.
   *
   * @throws SvcError (exit 2) `config_file`, `config_syntax` or `config_value` when a file cannot be read, is not
   * valid, or holds a value of the wrong kind. The tool policy comes from here, so nothing is guessed.
   */
  static open(paths: Paths): Config {
    return new Config(paths, readLayers(paths));
  }

  /** What is odd but no error, one line each: unknown names, former settings. */
  get warnings(): readonly string[] {
    return this.#layers.warnings;
  }

  /**
   * The effective value of a setting, or of a part of one such as `tool_permission.bash`; undefined when
   * there is none. The value is the caller's own.
   */
  get<K extends ConfigKey>(key: K): ConfigValues[K];
  get(key: string): unknown;
  get(key: string): unknown {
    const place = findKey(key);
    return place && copy(lookUp(this.#value(place.key), place.rest));
  }

  /** The value that the file of a scope gives, without the other layers; undefined when it gives none. */
  getFrom(scope: ConfigScope, key: string): unknown {
    const place = findKey(key);
    return place && copy(lookUp(this.#layers[scope].values.get(place.key), place.rest));
  }

  /** The highest layer that says something about a setting or a part of one. */
  origin(key: string): ConfigOrigin {
    const place = findKey(key);
    if (place === undefined) return "default";
    const { global, local } = this.#layers;
    if (holds(this.#overrides, place)) return "override";
    if (holds(local.values, place)) return "local";
    return holds(global.values, place) ? "global" : "default";
  }

  /**
   * Sets a value in memory, over both files; it is never written.
   *
   * @throws SvcError `config_key` or `config_value` (exit 2).
   */
  override(key: string, value: unknown): void {
    const place = findKey(key);
    if (place === undefined) throw unknownKey(key);
    const accepted = within(place.rest, acceptNew(place, value));
    const there = place.rest.length === 0 ? undefined : this.#overrides.get(place.key);
    this.#overrides.set(place.key, merge(there, accepted));
    this.#effective.delete(place.key);
  }

  /** Takes back what `override` set for a whole setting: the files count again. */
  release(key: ConfigKey): void {
    this.#overrides.delete(key);
    this.#effective.delete(key);
  }

  /**
   * Writes a setting into the file of a scope and takes it up. Comments and formatting of the file stay.
   *
   * @throws SvcError (exit 2). Nothing is written when the name or the value is wrong; what is in effect stays
   * as it was when, after the write, something else in the files is.
   */
  async set(scope: ConfigScope, key: string, value: unknown): Promise<void> {
    await setInFile(configFile(this.#paths, scope), key, value);
    this.reload();
  }

  /** Removes a setting from the file of a scope; says whether it was there. */
  async unset(scope: ConfigScope, key: string): Promise<boolean> {
    const found = await unsetInFile(configFile(this.#paths, scope), key);
    if (found) this.reload();
    return found;
  }

  /** Reads both files again; when that fails, it throws and all stays as it was. Overrides stay. */
  reload(): void {
    this.#layers = readLayers(this.#paths);
    this.#effective.clear();
  }

  #value(key: ConfigKey): unknown {
    if (this.#effective.has(key)) return this.#effective.get(key);
    const { global, local } = this.#layers;
    let value = settingOf(key).default;
    for (const layer of [global.values, local.values, this.#overrides]) {
      if (layer.has(key)) value = merge(value, layer.get(key));
    }
    this.#effective.set(key, value);
    return value;
  }
}

function holds(layer: ReadonlyMap<ConfigKey, unknown>, { key, rest }: KeyPath): boolean {
  return layer.has(key) && lookUp(layer.get(key), rest) !== undefined;
}

function readLayers(paths: Paths): Layers {
  const global = readLayer(configFile(paths, "global"));
  const local = readLayer(configFile(paths, "local"));
  const migrations = [migrate(global, "global"), migrate(local, "local", global)];
  return {
    global,
    local,
    warnings: [...global.warnings, ...local.warnings, ...migrations.flat()],
  };
}

/** Turns the former plugin settings of a layer into its `plugins` list, as they worked across layers. */
function migrate(layer: Layer, scope: ConfigScope, below?: Layer): string[] {
  if (layer.legacy === undefined) return [];
  const own = layer.values.get("plugins") as string[] | undefined;
  const lower = below?.values.get("plugins") ?? settingOf("plugins").default;
  const legacy = { ...below?.legacy, ...layer.legacy };
  const list = migratePlugins(
    own === undefined ? legacy : { ...legacy, enabled: own },
    lower as string[],
    layer.file,
  );
  layer.values.set("plugins", list);
  return [
    `${layer.file}: the former settings plugins.enabled and plugins.deny count as this list of plugins; ` +
    `to write it there: svc config set --${scope} plugins '${JSON.stringify(list)}'`,
  ];
}
