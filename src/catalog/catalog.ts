import { join } from "node:path";
import { isObject } from "../config/key_path.ts";
import { type SvcError, usageError } from "../platform/error.ts";
import { nearest } from "../platform/nearest.ts";
import type { Paths } from "../platform/paths.ts";
import type { Registered } from "../plugins/hooks.ts";
import { BUNDLED_ROLES } from "./bundled_roles.ts";
import { BUNDLED_TEAMS } from "./bundled_teams.ts";
import { readMarkdown } from "./confined.ts";
import { checkEntry, pluginEntry, type RawEntry, readRegistry, readSkills } from "./layers.ts";
import { complete, overlay } from "./merge.ts";
import { fieldNames, isCatalogName, type Kind, NAME_RULE, type Values } from "./schema.ts";
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

type Layer = { name: LayerName; entries: Map<string, RawEntry> };

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
    this.#options = options;
  }

  /** All entries of a kind by name, in alphabetical order. */
  list<K extends Kind>(kind: K): Entry<Values[K]>[] {
    return [...this.#all(kind).values()];
  }

  get<K extends Kind>(kind: K, name: string): Entry<Values[K]> | undefined {
    return this.#all(kind).get(name);
  }

  /** @throws SvcError `unknown_role`, `unknown_team` or `unknown_skill` (exit 2), with the nearest name. */
  need<K extends Kind>(kind: K, name: string): Entry<Values[K]> {
    const entry = this.get(kind, name);
    if (entry !== undefined) return entry;
    throw unknownEntry(kind, name, [...this.#all(kind).keys()]);
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
    const names = [...merged.keys()].sort();
    return new Map(names.map((name) => {
      const { layers, raw } = merged.get(name)!;
      const value = complete(kind, name, raw, this.#options.warn);
      return [name, { name, origin: layers.at(-1)!, layers, value }];
    }));
  }

  /** The layers of a kind, lowest first; each plugin is one. */
  #layersOf(kind: Kind): Layer[] {
    const known = this.#layers.get(kind);
    if (known !== undefined) return known;
    const { plugins, warn } = this.#options;
    const bundled = { role: BUNDLED_ROLES, team: BUNDLED_TEAMS, skill: {} }[kind];
    const layers: Layer[] = [
      { name: "bundled", entries: new Map(Object.entries<RawEntry>(bundled)) },
      ...(plugins?.[`${kind}s`] ?? []).map((contribution): Layer => ({
        name: "plugin",
        entries: pluginEntry(kind, contribution, warn),
      })),
      ...(["global", "local"] as const).map((scope): Layer => {
        const { root, folder } = this.#place(scope);
        const entries = kind === "skill"
          ? readSkills(root, join(folder, "skills"), warn)
          : readRegistry(join(folder, `${kind}s.json`), kind, warn);
        return { name: scope, entries };
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

/** @throws SvcError `catalog_entry` (exit 2) for a field of the wrong kind, or one that no entry has. */
function acceptEntry(kind: Kind, name: string, value: unknown): RawEntry {
  const { entry, problem, unknown } = checkEntry(kind, name, value);
  if (problem) throw usageError("catalog_entry", `"${problem.place}" ${problem.fault}.`);
  if (unknown[0] === undefined) return entry;
  const field = unknown[0].split(".").at(-1)!;
  const guess = nearest(field, fieldNames(kind));
  throw usageError(
    "catalog_entry",
    `"${unknown[0]}" is no field of a ${kind}.`,
    guess === undefined ? `Its fields: ${fieldNames(kind).join(", ")}.` : `Did you mean ${guess}?`,
  );
}

/** What an entry on disk has beside the fields that entries have; another version may know them. */
function fieldsOfOthers(kind: Kind, old: unknown): RawEntry {
  if (!isObject(old)) return {};
  const known = fieldNames(kind);
  return Object.fromEntries(
    Object.entries(old).filter(([field]) => field !== "name" && !known.includes(field)),
  );
}

function existing(kind: Kind, scope: Scope, name: string): SvcError {
  return usageError(
    "catalog_exists",
    `There is a ${scope} ${kind} ${name} already.`,
    "Pass --force to replace it.",
  );
}

function notInLayer(kind: Kind, scope: Scope, { name, layers }: Entry<unknown>): SvcError {
  const other = layers.findLast((layer) => layer === "global" || layer === "local");
  return usageError(
    "not_in_layer",
    `There is no ${scope} ${kind} ${name}; this one is ${layers.join(" and ")}.`,
    other === undefined
      ? "What is bundled or a plugin's cannot be removed, only overridden."
      : `Remove it from the ${other} ${kind}s.`,
  );
}

function checkName(kind: Kind, name: string): void {
  if (isCatalogName(name)) return;
  throw usageError(
    "catalog_name",
    `${JSON.stringify(name.slice(0, 80))} cannot be the name of a ${kind}.`,
    `A name has ${NAME_RULE}.`,
  );
}

function unknownEntry(kind: Kind, name: string, known: string[]): SvcError {
  const guess = nearest(name, known);
  return usageError(
    `unknown_${kind}`,
    `There is no ${kind} ${JSON.stringify(name.slice(0, 80))}.`,
    guess === undefined ? `\`svc ${kind}s list\` shows those there are.` : `Did you mean ${guess}?`,
  );
}
