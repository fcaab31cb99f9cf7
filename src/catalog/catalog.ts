import { join } from "node:path";
import { acceptEntry } from "./accept.ts";
import { readMarkdown } from "./confined.ts";
import { type CatalogSources, type Layer, readLayers } from "./layers.ts";
import { complete, type Entry, mergeLayers, overlay } from "./merge.ts";
import { placeOf, type Scope } from "./place.ts";
import { brokenEntry, notInLayer, unknownEntry } from "./refusals.ts";
import type { Kind, Values } from "./schema.ts";

/** What a role, and skills beside its own, bring to a system prompt. Either may be empty. */
export interface RolePrompt {
  /** Who the agent is: the role's `system_prompt`, then its instructions. */
  identity: string;
  /** The block of {@linkcode Catalog.skillsBlock}. */
  skills: string;
}

/**
 * The roles, teams and skills of one worktree (specification 2.12): bundled, under plugins', under the
 * user's in `~/.config/svc`, under the worktree's in `.svc`, merged field by field. A layer is read when
 * something of its kind is asked for first. What is wrong on disk is warned about, left out and left alone.
 */
export class Catalog {
  readonly #sources: CatalogSources;
  readonly #layers = new Map<Kind, Layer[]>();
  readonly #entries = new Map<Kind, Map<string, Entry<unknown>>>();

  constructor(sources: CatalogSources) {
    const told = new Set<string>();
    const warn = (message: string) => {
      if (!told.has(message)) sources.warn(message);
      told.add(message);
    };
    this.#sources = { ...sources, warn };
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
    const { paths, warn } = this.#sources;
    const root = from.name === "global" ? paths.user : paths.worktree;
    return readMarkdown(root, join(root, instructions), warn);
  }

  /**
   * Writes an entry into a layer; see {@linkcode saveEntry}.
   *
   * @throws SvcError (exit 2) for a bad name or entry, and when the layer's file is broken.
   */
  async save(
    kind: Kind,
    scope: Scope,
    name: string,
    value: unknown,
    options: { replace?: boolean } = {},
  ): Promise<void> {
    const { saveEntry } = await import("./write.ts");
    await saveEntry({ ...placeOf(scope, this.#sources.paths), scope }, kind, name, value, options);
    this.#forget(kind);
  }

  /**
   * Removes an entry from a layer; what lower layers say of it is in effect again.
   *
   * @throws SvcError (exit 2) `not_in_layer` when the layer has none, as for bundled ones and plugins'.
   */
  async remove(kind: Kind, scope: Scope, name: string): Promise<void> {
    const { removeEntry } = await import("./write.ts");
    const found = await removeEntry(placeOf(scope, this.#sources.paths), kind, name);
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
    const all = [...lower, ...own];
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
    const all = mergeLayers(kind, this.#layersOf(kind), this.#sources.warn);
    this.#entries.set(kind, all);
    return all;
  }

  #layersOf(kind: Kind): Layer[] {
    const layers = this.#layers.get(kind) ?? readLayers(kind, this.#sources);
    this.#layers.set(kind, layers);
    return layers;
  }
}
