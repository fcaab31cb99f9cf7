import { join } from "node:path";
import { nearest, type SvcError, usageError } from "../platform/error.ts";
import { layerFolder, readMarkdown, type Scope } from "./files.ts";
import {
  acceptEntry,
  type CatalogSources,
  catalogStamp,
  complete,
  type Entry,
  type Layer,
  type LayerName,
  mergeLayers,
  overlay,
  readLayers,
} from "./layers.ts";
import type { Kind, Values } from "./schema.ts";

/** The parts of a system prompt that come from a role and from skills. Either may be empty. */
export interface RolePrompt {
  /** The role's `system_prompt`, then its instructions. */
  identity: string;
  /** The block of {@linkcode Catalog.skillsBlock}. */
  skills: string;
}

/**
 * The roles, teams and skills of one worktree (specification 2.12), merged field by field from four layers,
 * lowest first: bundled, plugins, the user's in `~/.config/svc`, the worktree's in `.svc`. The layers of a
 * kind are read at its first use. Faulty entries on disk are skipped with a warning and stay unchanged.
 */
export class Catalog {
  readonly #sources: CatalogSources;
  readonly #layers = new Map<Kind, Layer[]>();
  readonly #entries = new Map<Kind, Map<string, Entry<unknown>>>();
  /** The files as they were before the first of them was read. */
  #stamp: string | undefined;

  constructor(sources: CatalogSources) {
    const warned = new Set<string>();
    const warn = (message: string) => {
      if (!warned.has(message)) sources.warn(message);
      warned.add(message);
    };
    this.#sources = { ...sources, warn };
  }

  /** All entries of a kind in alphabetical order, including broken ones. */
  list<K extends Kind>(kind: K): Entry<Values[K]>[] {
    return [...this.#all(kind).values()];
  }

  /** An entry, unless it is missing or broken. */
  get<K extends Kind>(kind: K, name: string): Entry<Values[K]> | undefined {
    const entry = this.#all(kind).get(name);
    return entry?.broken === undefined ? entry : undefined;
  }

  /**
   * The entry of a name.
   *
   * @throws SvcError (exit 2) `unknown_role`, `unknown_team` or `unknown_skill`, with the nearest name;
   * `broken_role` or `broken_team` with the file, since the rest of the entry may lack its denials
   */
  need<K extends Kind>(kind: K, name: string): Entry<Values[K]> {
    const entry = this.#all(kind).get(name);
    if (entry === undefined) throw unknownEntry(kind, name, [...this.#all(kind).keys()]);
    if (entry.broken !== undefined) throw brokenEntry(kind, name, entry.broken);
    return entry;
  }

  /** The prompt of a role with its own skills, then the given ones, each once. */
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
    const skills = [...new Set(names)].map((name) => {
      const { text, folder } = this.need("skill", name).value;
      const files = folder === "" ? "" : `Its files are in ${folder}.\n\n`;
      return `### ${name}\n\n${files}${text.trim()}`;
    });
    return ["## Skills", ...skills].join("\n\n");
  }

  /**
   * The text of a role's `instructions` file, cut at 20000 characters; empty when the role has none. The
   * path is relative to the user's folder in the global layer, and to the worktree in the local layer.
   *
   * @throws SvcError `catalog_text` (exit 2) when it cannot be read, is not Markdown or leads elsewhere
   */
  instructions(name: string): string {
    const { instructions } = this.need("role", name).value;
    if (instructions === "") return "";
    const from = this.#layersOf("role")
      .findLast(({ entries }) => entries.get(name)?.instructions !== undefined)!;
    const { paths, warn } = this.#sources;
    const root = from.name === "global" ? paths.user : paths.worktree;
    return readMarkdown(root, join(root, instructions), warn);
  }

  /**
   * Who set each category in a role's `tool_permission` or `grant_permission`: the layer, or `saved` for a role of
   * which no person has accepted a part.
   */
  permissionOrigins(
    name: string,
    field: "tool_permission" | "grant_permission",
  ): Record<string, LayerName | "saved"> {
    const saved = this.need("role", name).value.accepted === false;
    const layers = this.#layersOf("role").flatMap(({ name: layer, entries }) =>
      Object.keys(entries.get(name)?.[field] ?? {}).map((
        category,
      ) => [category, saved ? "saved" : layer])
    );
    return Object.fromEntries(layers);
  }

  /**
   * Makes a role that an agent saved one of the person's: the entry of a layer loses its `accepted: false`.
   *
   * @throws SvcError (exit 2) `not_in_layer` when the layer does not have it
   */
  async accept(scope: Scope, name: string): Promise<void> {
    const role = this.need("role", name);
    const layer = this.#layersOf("role").find((each) => each.name === scope);
    const entry = layer?.entries.get(name);
    if (entry === undefined) throw notInLayer("role", scope, role);
    const { accepted: _, ...fields } = entry;
    await this.save("role", scope, name, fields);
  }

  /**
   * Writes an entry into a layer; see {@linkcode saveEntry}.
   *
   * @throws SvcError (exit 2) for an invalid name or entry, and when the layer's file is broken
   */
  async save(
    kind: Kind,
    scope: Scope,
    name: string,
    value: unknown,
    options: { replace?: boolean } = {},
  ): Promise<void> {
    if (kind === "skill") this.#refuseFolder(scope, name);
    const { saveEntry } = await import("./write.ts");
    await saveEntry(
      { ...layerFolder(scope, this.#sources.paths), scope },
      kind,
      name,
      value,
      options,
    );
    this.#forget(kind);
  }

  /**
   * Removes an entry from a layer, which uncovers that of lower layers.
   *
   * @throws SvcError (exit 2) `not_in_layer` when the layer does not have it, as for bundled and plugin entries
   */
  async remove(kind: Kind, scope: Scope, name: string): Promise<void> {
    if (kind === "skill") this.#refuseFolder(scope, name);
    const { removeEntry } = await import("./write.ts");
    const found = await removeEntry(layerFolder(scope, this.#sources.paths), kind, name);
    this.#forget(kind);
    if (!found) throw notInLayer(kind, scope, this.need(kind, name));
  }

  /**
   * The merged entry if the local layer had this value, or none; undefined when no layer has the entry.
   *
   * @throws SvcError (exit 2) for an invalid entry
   */
  wouldBe<K extends Kind>(
    kind: K,
    name: string,
    value: Record<string, unknown> | undefined,
  ): Values[K] | undefined {
    const lower = this.#layersOf(kind).filter((layer) => layer.name !== "local")
      .flatMap(({ entries }) => entries.has(name) ? [entries.get(name)!] : []);
    const own = value === undefined ? [] : [acceptEntry(kind, name, value)];
    const all = [...lower, ...own];
    if (all.length === 0) return undefined;
    return complete(kind, name, all.reduce((lower, raw) => overlay(kind, lower, raw)), () => {});
  }

  /** Reads all layers again at their next use, if a file was edited. */
  refresh(): void {
    if (this.#stamp !== undefined && this.#stamp !== catalogStamp(this.#sources)) this.reload();
  }

  /** Reads all layers again at their next use. */
  reload(): void {
    for (const kind of ["role", "team", "skill"] as const) this.#forget(kind);
    this.#stamp = undefined;
  }

  /** @throws SvcError `skill_folder` (exit 2) for a skill of a layer that is a folder */
  #refuseFolder(scope: Scope, name: string): void {
    const entry = this.#layersOf("skill").find((layer) => layer.name === scope)?.entries.get(name);
    if (typeof entry?.folder === "string") throw isFolder(name, entry.folder);
  }

  #forget(kind: Kind): void {
    this.#layers.delete(kind);
    this.#entries.delete(kind);
  }

  #all<K extends Kind>(kind: K): Map<string, Entry<Values[K]>> {
    const known = this.#entries.get(kind) as Map<string, Entry<Values[K]>> | undefined;
    if (known !== undefined) return known;
    const all = mergeLayers(kind, this.#layersOf(kind), this.#sources.warn);
    this.#entries.set(kind, all);
    return all;
  }

  #layersOf(kind: Kind): Layer[] {
    const known = this.#layers.get(kind);
    if (known !== undefined) return known;
    this.#stamp ??= catalogStamp(this.#sources); // before reading: a later edit is noticed
    const layers = readLayers(kind, this.#sources);
    this.#layers.set(kind, layers);
    return layers;
  }
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

function isFolder(name: string, folder: string): SvcError {
  return usageError(
    "skill_folder",
    `The skill ${name} is a folder, which svc does not change.`,
    `Remove or edit ${folder} yourself.`,
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

function brokenEntry(kind: Kind, name: string, reason: string): SvcError {
  return usageError(
    `broken_${kind}`,
    `The ${kind} ${name} cannot be used: ${reason}`,
    "What is left of it might lack what that part was to deny. Correct the file.",
  );
}
