import { join } from "node:path";
import type { ConfigView } from "../plugins/api.ts";
import type { Paths } from "../platform/environment.ts";
import { acceptNew } from "./check.ts";
import { copy, findKey, type KeyPath, lookUp, merge, unknownKey, within } from "./key_path.ts";
import { type ConfigKey, type ConfigValues, settingOf } from "./keys.ts";
import { type Layer, migratePlugins, readLayer } from "./layer.ts";

export type { ConfigKey, ConfigValues };

/** The configuration files: the user's and the worktree's. */
export type ConfigScope = "global" | "local";

/** The origin of a value, lowest layer first. */
export type ConfigOrigin = "default" | ConfigScope | "override";

/** The configuration file of a scope. */
export function configFile(paths: Paths, scope: ConfigScope): string {
  return join(scope === "global" ? paths.user : paths.state, "config.json");
}

interface Layers {
  readonly global: Layer;
  readonly local: Layer;
  readonly warnings: string[];
  /** The plugin lists that stand for former settings of a file. */
  readonly former: { scope: ConfigScope; list: string[] }[];
}

/**
 * Returns the settings of the worktree's file that take effect, given the settings of the lower layers. `Trust` in
 * `policy/trust.ts` leaves out what is not trusted.
 */
export type Screen = (lower: ConfigView, local: Layer["values"]) => Map<ConfigKey, unknown>;

/**
 * The settings of one worktree (specification 2.13). Layers, lowest first: defaults, the user's file, the
 * worktree's file, overrides in memory. Objects merge per key; other values replace the lower layer's.
 */
export class Config {
  readonly #paths: Paths;
  readonly #screen: Screen;
  #layers: Layers;
  readonly #overrides = new Map<ConfigKey, unknown>();
  readonly #effective = new Map<ConfigKey, unknown>();

  private constructor(paths: Paths, screen: Screen) {
    this.#paths = paths;
    this.#screen = screen;
    this.#layers = readLayers(paths, screen);
    Object.freeze(this); // plugins receive it
  }

  /**
   * Reads both files; a missing one is empty. Of the worktree's file, only what `screen` returns takes effect.
   *
   * @throws SvcError (exit 2) `config_file`, `config_syntax` or `config_value` when a file cannot be read, is not
   * valid, or holds a value of the wrong kind. Nothing is guessed, since the files hold the tool policy.
   */
  static open(paths: Paths, screen: Screen): Config {
    return new Config(paths, screen);
  }

  /** Warnings about unknown names and former settings, one line each. */
  get warnings(): readonly string[] {
    return this.#layers.warnings;
  }

  /**
   * The effective value of a setting, or of a part of one such as `tool_permission.bash`; undefined when
   * there is none. The value is a copy.
   */
  get<K extends ConfigKey>(key: K): ConfigValues[K];
  get(key: string): unknown;
  get(key: string): unknown {
    const path = findKey(key);
    return path && copy(lookUp(this.#value(path.key), path.rest));
  }

  /** The value of a scope that takes effect, without the other layers; undefined when it has none. */
  getFrom(scope: ConfigScope, key: string): unknown {
    const path = findKey(key);
    return path && copy(lookUp(this.#layers[scope].values.get(path.key), path.rest));
  }

  /** The highest layer that has a setting or a part of it. */
  origin(key: string): ConfigOrigin {
    const path = findKey(key);
    if (path === undefined) return "default";
    const { global, local } = this.#layers;
    if (holds(this.#overrides, path)) return "override";
    if (holds(local.values, path)) return "local";
    return holds(global.values, path) ? "global" : "default";
  }

  /**
   * Sets a value in memory, above both files; it is never written.
   *
   * @throws SvcError `config_key` or `config_value` (exit 2).
   */
  override(key: string, value: unknown): void {
    const path = findKey(key);
    if (path === undefined) throw unknownKey(key);
    const accepted = within(path.rest, acceptNew(path, value));
    const current = path.rest.length === 0 ? undefined : this.#overrides.get(path.key);
    this.#overrides.set(path.key, merge(current, accepted));
    this.#effective.delete(path.key);
  }

  /** Removes the override of a whole setting. */
  release(key: ConfigKey): void {
    this.#overrides.delete(key);
    this.#effective.delete(key);
  }

  /**
   * Writes a setting into the file of a scope and reloads both files. Comments and formatting are kept.
   *
   * @throws SvcError (exit 2). Nothing is written when the name or the value is wrong. When another part of
   * the files is wrong, the setting is written and the values in effect stay.
   */
  async set(scope: ConfigScope, key: string, value: unknown): Promise<void> {
    const { setInFile } = await import("./edit.ts");
    await setInFile(configFile(this.#paths, scope), key, value);
    this.reload();
  }

  /** Removes a setting from the file of a scope; returns whether it was there. */
  async unset(scope: ConfigScope, key: string): Promise<boolean> {
    const { unsetInFile } = await import("./edit.ts");
    const found = await unsetInFile(configFile(this.#paths, scope), key);
    if (found) this.reload();
    return found;
  }

  /**
   * Writes the lists that stand for the former plugin settings into their files, in place of these (specification
   * 9.6). The values in effect stay as they are. Each list is tried once.
   *
   * @throws SvcError (exit 2) when a file cannot be changed
   */
  async rewriteFormer(): Promise<void> {
    for (const { scope, list } of this.#layers.former.splice(0)) {
      const { setInFile } = await import("./edit.ts");
      await setInFile(configFile(this.#paths, scope), "plugins", list);
    }
  }

  /** Reads both files again; overrides are kept. When it throws, nothing has changed. */
  reload(): void {
    this.#layers = readLayers(this.#paths, this.#screen);
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

function readLayers(paths: Paths, screen: Screen): Layers {
  const global = readLayer(configFile(paths, "global"));
  const local = readLayer(configFile(paths, "local"));
  const former = [...migrate(global, "global"), ...migrate(local, "local", global)];
  const layers = { global, local };
  const migrations = former.map(({ scope, list }) =>
    `${
      layers[scope].file
    }: the former settings plugins.enabled and plugins.deny count as the list ` +
    `"plugins": ${JSON.stringify(list)}`
  );
  const lower: ConfigView = {
    get: (key) => {
      const { default: fallback } = settingOf(key as ConfigKey);
      return global.values.has(key as ConfigKey)
        ? merge(fallback, global.values.get(key as ConfigKey))
        : fallback;
    },
  };
  return {
    global,
    local: { ...local, values: screen(lower, local.values) },
    warnings: [...global.warnings, ...local.warnings, ...migrations],
    former,
  };
}

/** Converts the former plugin settings of a layer into its `plugins` list, as they worked across layers. */
function migrate(layer: Layer, scope: ConfigScope, base?: Layer): Layers["former"] {
  if (layer.legacy === undefined) return [];
  const own = layer.values.get("plugins") as string[] | undefined;
  const lower = base?.values.get("plugins") ?? settingOf("plugins").default;
  const legacy = { ...base?.legacy, ...layer.legacy };
  const list = migratePlugins(
    own === undefined ? legacy : { ...legacy, enabled: own },
    lower as string[],
    layer.file,
  );
  layer.values.set("plugins", list);
  return [{ scope, list }];
}
