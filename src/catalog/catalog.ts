import { join } from "node:path";
import type { Paths } from "../platform/paths.ts";
import type { Registered } from "../plugins/hooks.ts";
import { BUNDLED_ROLES } from "./bundled_roles.ts";
import { BUNDLED_TEAMS } from "./bundled_teams.ts";
import { acceptEntry, checkName, fieldsOfOthers } from "./accept.ts";
import { readMarkdown } from "./confined.ts";
import { brokenEntry, existing, notInLayer, unknownEntry } from "./refusals.ts";
import {
  type LayerEntries,
  pluginEntry,
  type RawEntry,
  readRegistry,
  readSkills,
} from "./layers.ts";
import { complete, overlay } from "./merge.ts";
import type { Kind, Values } from "./schema.ts";
import { changeEntry, changeSkill } from "./write.ts";

/** Where an entry comes from, lowest first (specification 2.12). */
export type LayerName = "bundled" | "plugin" | "global" | "local";
/** The layers that can be written. */
export type Scope = "global" | "local";

/** A named entry, merged over its layers. */
export interface Entry<T> {
  name: string;
  /** The highest layer that says something about it. */
  origin: LayerName;
  /** All layers that do, lowest first. */
  layers: LayerName[];
  value: T;
  /**
   * Why it cannot be used, when a layer says something of it that cannot be read. `value` is what the other
   * layers say, who may lack what that one was to deny.
   */
  broken?: string;
}

/** What a role, and skills beside its own, bring to a system prompt. Either may be empty. */
export interface RolePrompt {
  /** Who the agent is: the role's `system_prompt`, then its instructions. */
  identity: string;
  /** The block of {@linkcode Catalog.skillsBlock}. */
  skills: string;
}

export interface CatalogOptions {
  paths: Paths;
  /** What plugins registered, in the order in which they loaded. */
  plugins?: Pick<Registered, "roles" | "teams" | "skills">;
  warn: (message: string) => void;
}

type Broken = { layer: LayerName; reason: string };
type Layer = { name: LayerName } & LayerEntries;

/**
 * The roles, teams and skills of one worktree (specification 2.12): bundled, under plugins', under the
 * user's in `~/.config/svc`, under the worktree's in `.svc`, merged field by field. A layer is read when
 * something of its kind is asked for first. What is wrong on disk is warned about, left out and left alone.
 */
export class Catalog {
  readonly #options: CatalogOptions;
  readonly #layers = new Map<Kind, Layer[]>();
  readonly #entries = new Map<Kind, Map<string, Entry<unknown>>>();

  constructor(options: CatalogOptions) {
    const told = new Set<string>();
    const warn = (message: string) => {
      if (!told.has(message)) options.warn(message);
      told.add(message);
    };
    this.#options = { ...options, warn };
  }

  /** All entries of a kind by name, in alphabetical order; the broken ones too. */
  list<K extends Kind>(kind: K): Entry<Values[K]>[] {
    return [...this.#all(kind).values()];
  }

  /** An entry that can be used. */
  get<K extends Kind>(kind: K, name: string): Entry<Values[K]> | undefined {
    const entry = this.#all(kind).get(name);
    return entry?.broken === undefined ? entry : undefined;
  }

  /**
   * @throws SvcError (exit 2) `unknown_role`, `unknown_team` or `unknown_skill`, with the nearest name;
   * `broken_role` or `broken_team` that names the file: its denials must not get lost with it.
   */
  need<K extends Kind>(kind: K, name: string): Entry<Values[K]> {
    const entry = this.#all(kind).get(name);
    if (entry === undefined) throw unknownEntry(kind, name, [...this.#all(kind).keys()]);
    if (entry.broken !== undefined) throw brokenEntry(kind, name, entry.broken);
    return entry;
  }

  /** The prompt of a role with its standing skills, then others, none of them twice. */
  prompt(name: string, skills: string[] = []): RolePrompt {
    const { value } = this.need("role", name);
    const parts = [value.system_prompt.trim(), this.instructions(name)];
    return {
      identity: parts.filter((part) => part !== "").join("\n\n"),
      skills: this.skillsBlock([...value.skills, ...skills]),
    };
  }

  /**
   * The named skills as a block of a system prompt, each once; empty for none.
   *
   * @throws SvcError `unknown_skill` (exit 2)
   */
  skillsBlock(names: string[]): string {
    if (names.length === 0) return "";
    const skills = [...new Set(names)].map((name) =>
      `### ${name}\n\n${this.need("skill", name).value.text.trim()}`
    );
    return ["## Skills", ...skills].join("\n\n");
  }

  /**
   * The text of a role's `instructions` file, cut at 20000 characters; empty when it names none. The path
   * starts at the user's folder when the global layer names it, and at the worktree when the local one does.
   *
   * @throws SvcError `catalog_text` (exit 2) when it cannot be read, is no Markdown or leads elsewhere.
   */
  instructions(name: string): string {
    const { instructions } = this.need("role", name).value;
    if (instructions === "") return "";
    const from = this.#layersOf("role")
      .findLast(({ entries }) => entries.get(name)?.instructions !== undefined)!;
    const { paths, warn } = this.#options;
    const root = from.name === "global" ? paths.user : paths.worktree;
    return readMarkdown(root, join(root, instructions), warn);
  }

  /**
   * Writes an entry into a layer, in place of what the layer had under this name. The fields of that which
   * no entry has are kept, and so are all other entries, also those that cannot be used.
   *
   * @param options.replace `false`: refuse when the layer has one already.
   * @throws SvcError (exit 2) for a bad name or entry, and when the layer's file is broken.
   */
  async save(
    kind: Kind,
    scope: Scope,
    name: string,
    value: unknown,
    { replace = true }: { replace?: boolean } = {},
  ): Promise<void> {
    checkName(kind, name);
    const entry = acceptEntry(kind, name, value);
    const demandFree = (taken: boolean) => {
      if (taken && !replace) throw existing(kind, scope, name);
    };
    const place = this.#place(scope);
    if (kind === "skill") {
      await changeSkill(place, name, (exists) => {
        demandFree(exists);
        return `${(entry.text as string).trim()}\n`;
      });
    } else {
      await changeEntry(place, kind, name, (old) => {
        demandFree(old !== undefined);
        return { ...fieldsOfOthers(kind, old), ...entry };
      });
    }
    this.#forget(kind);
  }

  /**
   * Removes an entry from a layer; what lower layers say of it is in effect again.
   *
   * @throws SvcError (exit 2) `not_in_layer` when the layer has none, as for bundled ones and plugins'.
   */
  async remove(kind: Kind, scope: Scope, name: string): Promise<void> {
    checkName(kind, name);
    let found = false;
    const note = (there: boolean) => void (found = there);
    const place = this.#place(scope);
    if (kind === "skill") await changeSkill(place, name, note);
    else await changeEntry(place, kind, name, (old) => note(old !== undefined));
    this.#forget(kind);
    if (!found) throw notInLayer(kind, scope, this.need(kind, name));
  }

  /**
   * What would be in effect if the local layer had this entry, or none; undefined when there were none at all.
   *
   * @throws SvcError (exit 2) for a bad entry
   */
  wouldBe<K extends Kind>(
    kind: K,
    name: string,
    value: Record<string, unknown> | undefined,
  ): Values[K] | undefined {
    const lower = this.#layersOf(kind).filter((layer) => layer.name !== "local")
      .flatMap(({ entries }) => entries.has(name) ? [entries.get(name)!] : []);
    const own = value === undefined ? [] : [acceptEntry(kind, name, value)];
    const all: RawEntry[] = [...lower, ...own];
    if (all.length === 0) return undefined;
    return complete(kind, name, all.reduce((below, raw) => overlay(kind, below, raw)), () => {});
  }

  /** Reads everything again when it is asked for next. */
  reload(): void {
    for (const kind of ["role", "team", "skill"] as const) this.#forget(kind);
  }

  #forget(kind: Kind): void {
    this.#layers.delete(kind);
    this.#entries.delete(kind);
  }

  #all<K extends Kind>(kind: K): Map<string, Entry<Values[K]>> {
    const known = this.#entries.get(kind) as Map<string, Entry<Values[K]>> | undefined;
    if (known !== undefined) return known;
    const all = this.#merge(kind);
    this.#entries.set(kind, all);
    return all;
  }

  #merge<K extends Kind>(kind: K): Map<string, Entry<Values[K]>> {
    const merged = new Map<string, { layers: LayerName[]; raw: RawEntry }>();
    for (const layer of this.#layersOf(kind)) {
      for (const [name, raw] of layer.entries) {
        const below = merged.get(name);
        const layers = new Set([...below?.layers ?? [], layer.name]);
        merged.set(name, {
          layers: [...layers],
          raw: below === undefined ? raw : overlay(kind, below.raw, raw),
        });
      }
    }
    const broken = kind === "skill" ? new Map<string, Broken>() : this.#broken(kind, merged.keys());
    const names = [...new Set([...merged.keys(), ...broken.keys()])].sort();
    return new Map(names.map((name) => {
      const { layers, raw } = merged.get(name) ?? { layers: [broken.get(name)!.layer], raw: {} };
      const value = complete(kind, name, raw, this.#options.warn);
      const entry = { name, origin: layers.at(-1)!, layers, value };
      return [name, broken.has(name) ? { ...entry, broken: broken.get(name)!.reason } : entry];
    }));
  }

  /** The entries of which some layer says what cannot be read; all, when it cannot be read as a whole. */
  #broken(kind: Kind, names: Iterable<string>): Map<string, Broken> {
    const found = new Map<string, Broken>();
    const all = [...names];
    for (const { name: layer, broken, unreadable } of this.#layersOf(kind)) {
      for (const [name, reason] of broken) found.set(name, { layer, reason });
      if (unreadable === "") continue;
      for (const name of all) found.set(name, { layer, reason: unreadable });
    }
    return found;
  }

  /** The layers of a kind, lowest first; each plugin is one. */
  #layersOf(kind: Kind): Layer[] {
    const known = this.#layers.get(kind);
    if (known !== undefined) return known;
    const { plugins, warn } = this.#options;
    const bundled = { role: BUNDLED_ROLES, team: BUNDLED_TEAMS, skill: {} }[kind];
    const layers: Layer[] = [
      {
        name: "bundled",
        entries: new Map(Object.entries<RawEntry>(bundled)),
        broken: new Map(),
        unreadable: "",
      },
      ...(plugins?.[`${kind}s`] ?? []).map((contribution): Layer => ({
        name: "plugin",
        ...pluginEntry(kind, contribution, warn),
      })),
      ...(["global", "local"] as const).map((scope): Layer => {
        const { root, folder } = this.#place(scope);
        const layer = kind === "skill"
          ? readSkills(root, join(folder, "skills"), warn)
          : readRegistry(join(folder, `${kind}s.json`), kind, warn);
        return { name: scope, ...layer };
      }),
    ];
    this.#layers.set(kind, layers);
    return layers;
  }

  #place(scope: Scope): { root: string; folder: string } {
    const { worktree, state, user } = this.#options.paths;
    return scope === "global" ? { root: user, folder: user } : { root: worktree, folder: state };
  }
}
