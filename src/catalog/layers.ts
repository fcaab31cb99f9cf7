import { join } from "node:path";
import { checkAgainst, type Problem } from "../config/check.ts";
import { parseSettings, readConfigFile } from "../config/file.ts";
import { merge } from "../config/key_path.ts";
import type { Paths } from "../platform/environment.ts";
import { errorMessage, nearest, usageError } from "../platform/error.ts";
import { entriesOf, exists, fileStamp, isObject } from "../platform/files.ts";
import type { PluginInfo } from "../plugins/discovery.ts";
import type { CatalogEntry, Registered } from "../plugins/hooks.ts";
import { BUNDLED_ROLES, BUNDLED_TEAMS } from "./bundled.ts";
import { layerFolder, readMarkdown, type Scope } from "./files.ts";
import {
  fieldNames,
  isCatalogName,
  type Kind,
  type Loop,
  NAME_RULE,
  type RawEntry,
  role,
  SCHEMAS,
  type Skill,
  skill,
  type Stage,
  team,
  type Values,
} from "./schema.ts";
import {
  readFolderSkills,
  SKILL_FILE,
  skillFolders,
  type SkillRoot,
  skillRoots,
} from "./skills.ts";

/** The entries of a layer. */
interface LayerEntries {
  entries: Map<string, RawEntry>;
  /** Entries that cannot be used, by name: file, field and fault in one phrase. */
  broken: Map<string, string>;
  /** The fault when the whole layer cannot be read, otherwise empty. */
  unreadable: string;
}

/** The layers, lowest first (specification 2.12). */
export type LayerName = "bundled" | "plugin" | Scope;

export interface Layer extends LayerEntries {
  name: LayerName;
}

type Warn = (message: string) => void;

/** The sources that a catalog is read from. */
export interface CatalogSources {
  paths: Paths;
  /** Entries that plugins registered, in the order in which the plugins loaded. */
  plugins?: Pick<Registered, "roles" | "teams" | "skills"> & { plugins?: PluginInfo[] };
  /** Whether a role or team of the worktree takes effect, given the merged entry of the lower layers. */
  accepts: (local: LocalEntry) => boolean;
  warn: Warn;
}

/** An entry of the worktree, and the merged one of the lower layers. */
export interface LocalEntry {
  kind: "role" | "team";
  name: string;
  entry: RawEntry;
  /** Empty: no lower layer has it. */
  lower: RawEntry;
}

/** The layers of a kind, lowest first; each plugin entry is one. Faulty entries are skipped with a warning. */
export function readLayers(kind: Kind, sources: CatalogSources): Layer[] {
  const { paths, plugins, warn } = sources;
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
    ...kind === "skill" ? pluginSkills(plugins?.plugins ?? [], warn) : [],
    ...(["global", "local"] as const).map((scope): Layer => {
      const { root, folder } = layerFolder(scope, paths);
      const layer = kind === "skill"
        ? readSkills({ root, folder: join(folder, "skills") }, skillRoots(scope, paths), warn)
        : readRegistry(join(folder, `${kind}s.json`), kind, warn);
      return { name: scope, ...layer };
    }),
  ];
  if (kind !== "skill") leaveOutUntrusted(kind, layers, sources);
  return layers;
}

/**
 * Differs when the files of the catalog may have changed. Reads no file. It is made for each turn, and most of the files
 * are usually missing: a system call that fails takes as long as three others, so the folders are listed instead.
 */
export function catalogStamp({ paths }: Pick<CatalogSources, "paths">): string {
  return (["global", "local"] as const).flatMap((scope) => {
    const { folder } = layerFolder(scope, paths);
    const names = new Set(entriesOf(folder).map(({ name }) => name));
    const files = ["roles.json", "teams.json"].filter((name) => names.has(name))
      .map((name) => join(folder, name));
    const own = join(folder, "skills");
    const roots = skillRoots(scope, paths).map((root) => root.folder)
      .filter((root) => root === own ? names.has("skills") : exists(root));
    const skills = roots.flatMap((root) => [
      root,
      ...skillFolders(root).map((name) => join(root, name, SKILL_FILE)),
      ...root === own ? markdownFiles(own, () => {}).map((file) => join(own, file)) : [],
    ]);
    return [...files, ...skills].map((file) => file + fileStamp(file));
  }).join();
}

/** Removes the entries of the highest layer, the worktree's, that are not accepted. */
function leaveOutUntrusted(
  kind: "role" | "team",
  layers: Layer[],
  { accepts, warn }: CatalogSources,
): void {
  const { entries } = layers.at(-1)!;
  for (const [name, entry] of entries) {
    const below = layers.slice(0, -1).map((layer) => layer.entries.get(name) ?? {});
    const lower = below.reduce<RawEntry>((lower, higher) => overlay(kind, lower, higher), {});
    if (accepts({ kind, name, entry, lower })) continue;
    entries.delete(name);
    warn(`The ${kind} ${name} of this worktree is left out, not being trusted; see svc trust.`);
  }
}

/** The entries of `roles.json` or `teams.json`. */
function readRegistry(file: string, kind: Kind, warn: Warn): LayerEntries {
  let entries: Record<string, unknown> = {};
  let unreadable = "";
  try {
    const text = readConfigFile(file);
    if (text !== undefined) entries = parseSettings(text, file);
  } catch (error) {
    unreadable = errorMessage(error);
    warn(`${unreadable} It is left as it is, and none of its ${kind}s can be used.`);
  }
  return { ...accepted(kind, Object.entries(entries), file, warn), unreadable };
}

/** The skills of a layer: one in each `<name>.md` of its folder, and the folders of its roots, which win. */
function readSkills({ root, folder }: SkillRoot, roots: SkillRoot[], warn: Warn): LayerEntries {
  const skills: [string, unknown][] = [];
  for (const file of markdownFiles(folder, warn)) {
    try {
      const text = readMarkdown(root, join(folder, file), warn);
      skills.push([file.slice(0, -".md".length), { text }]);
    } catch (error) {
      warn(errorMessage(error));
    }
  }
  return folderSkills(roots, skills, folder, warn);
}

/** @param files skills that those of the roots replace */
function folderSkills(
  roots: SkillRoot[],
  files: [string, unknown][],
  origin: string,
  warn: Warn,
): LayerEntries {
  const folders = roots.flatMap((root) => readFolderSkills(root, warn));
  const entries = folders.map(({ name, ...skill }): [string, unknown] => [name, skill]);
  return accepted("skill", [...files, ...entries], origin, warn);
}

/** The folder `skills` of each plugin that is loaded. */
function pluginSkills(plugins: PluginInfo[], warn: Warn): Layer[] {
  const own = plugins.filter(({ status, path }) => status === "loaded" && path !== "");
  return own.map(({ path }): Layer => ({
    name: "plugin",
    ...folderSkills([{ root: path, folder: join(path, "skills") }], [], path, warn),
  }));
}

/** The entry that a plugin registered. */
function pluginEntry(
  kind: Kind,
  { owner, entry: { name, ...fields } }: { owner: string; entry: CatalogEntry },
  warn: Warn,
): LayerEntries {
  const origin = `The plugin ${owner}`;
  const layer = accepted(kind, [[name, fields]], origin, warn);
  const { entries } = layer;
  if (entries.get(name)?.instructions !== undefined) {
    warn(
      `${origin}: a plugin's role has all of its prompt in system_prompt; "instructions" is none.`,
    );
    delete entries.get(name)!.instructions;
  }
  return layer;
}

/**
 * Checks an entry against the schema. The result has neither the name nor fields that are null, which
 * count as unset; `unknown` lists fields that the schema does not have.
 */
function checkEntry(
  kind: Kind,
  name: string,
  value: unknown,
): { entry: RawEntry; problem?: Problem; unknown: string[] } {
  const entry: RawEntry = isObject(value) ? { ...value } : {};
  delete entry.name;
  for (const [field, set] of Object.entries(entry)) if (set === null) delete entry[field];
  const given = isObject(value) ? entry : value;
  const { problem } = checkAgainst(SCHEMAS[kind], name, given);
  const unknown = problem ? [] : unknownFields(entry, SCHEMAS[kind].parse(entry), name);
  return { entry, problem, unknown };
}

/**
 * A valid entry for a layer on disk.
 *
 * @throws SvcError `catalog_entry` (exit 2) for an invalid or unknown field
 */
export function acceptEntry(kind: Kind, name: string, value: unknown): RawEntry {
  const { entry, problem, unknown } = checkEntry(kind, name, value);
  if (problem) throw usageError("catalog_entry", `"${problem.path}" ${problem.fault}.`);
  if (unknown[0] === undefined) return entry;
  const field = unknown[0].split(".").at(-1)!;
  const guess = nearest(field, fieldNames(kind));
  throw usageError(
    "catalog_entry",
    `"${unknown[0]}" is no field of a ${kind}.`,
    guess === undefined ? `Its fields: ${fieldNames(kind).join(", ")}.` : `Did you mean ${guess}?`,
  );
}

function accepted(
  kind: Kind,
  entries: [string, unknown][],
  origin: string,
  warn: Warn,
): LayerEntries {
  const result: LayerEntries = { entries: new Map(), broken: new Map(), unreadable: "" };
  for (const [name, value] of entries) {
    if (!isCatalogName(name)) {
      warn(
        `${origin}: ${JSON.stringify(name)} is no name of a ${kind}; it is left out. ` +
          `A name has ${NAME_RULE}.`,
      );
      continue;
    }
    const { entry, problem, unknown } = checkEntry(kind, name, value);
    if (problem !== undefined) {
      const fault = `${origin}: "${problem.path}" ${problem.fault}`;
      warn(`${fault}; the ${kind} ${name} ${kind === "skill" ? "is left out" : "cannot be used"}.`);
      result.broken.set(name, `${fault}.`);
      continue;
    }
    for (const field of unknown) warn(`${origin}: "${field}" is no field of a ${kind}.`);
    result.entries.set(name, entry);
  }
  return result;
}

/** Paths of fields in `given` that the schema dropped. */
function unknownFields(given: unknown, known: unknown, path: string): string[] {
  if (Array.isArray(given) && Array.isArray(known)) {
    return given.flatMap((item, index) => unknownFields(item, known[index], `${path}[${index}]`));
  }
  if (!isObject(given) || !isObject(known)) return [];
  return Object.keys(given).flatMap((name) =>
    Object.hasOwn(known, name)
      ? unknownFields(given[name], known[name], `${path}.${name}`)
      : [`${path}.${name}`]
  );
}

function markdownFiles(folder: string, warn: Warn): string[] {
  try {
    return [...Deno.readDirSync(folder)].map(({ name }) => name)
      .filter((name) => name.endsWith(".md") && !name.startsWith(".")).sort();
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) {
      warn(`${folder} cannot be read: ${errorMessage(error)}.`);
    }
    return [];
  }
}

/** A named entry, merged over its layers. */
export interface Entry<T> {
  name: string;
  /** The highest layer that has it. */
  origin: LayerName;
  /** All layers that have it, lowest first. */
  layers: LayerName[];
  value: T;
  /**
   * Why it cannot be used, when one of its layers cannot be read. `value` then comes from the other layers
   * and may lack denials of the unreadable one.
   */
  broken?: string;
}

/** Merges the layers, lowest first. The entries are in alphabetical order and include the broken ones. */
export function mergeLayers<K extends Kind>(
  kind: K,
  layers: Layer[],
  warn: (message: string) => void,
): Map<string, Entry<Values[K]>> {
  const merged = new Map<string, { layers: LayerName[]; raw: RawEntry }>();
  for (const layer of layers) {
    for (const [name, raw] of layer.entries) {
      const lower = merged.get(name);
      const origins = new Set([...lower?.layers ?? [], layer.name]);
      merged.set(name, {
        layers: [...origins],
        raw: lower === undefined ? raw : overlay(kind, lower.raw, raw),
      });
    }
  }
  const broken = kind === "skill" ? new Map<string, Broken>() : brokenOf(layers, merged.keys());
  const names = [...new Set([...merged.keys(), ...broken.keys()])].sort();
  return new Map(names.map((name) => {
    const { layers, raw } = merged.get(name) ?? { layers: [broken.get(name)!.layer], raw: {} };
    const value = complete(kind, name, raw, warn);
    const entry = { name, origin: layers.at(-1)!, layers, value };
    return [name, broken.has(name) ? { ...entry, broken: broken.get(name)!.reason } : entry];
  }));
}

type Broken = { layer: LayerName; reason: string };

/** The entries that are broken in some layer; all entries when a whole layer cannot be read. */
function brokenOf(layers: Layer[], names: Iterable<string>): Map<string, Broken> {
  const found = new Map<string, Broken>();
  const all = [...names];
  for (const { name: layer, broken, unreadable } of layers) {
    for (const [name, reason] of broken) found.set(name, { layer, reason });
    if (unreadable === "") continue;
    for (const name of all) found.set(name, { layer, reason: unreadable });
  }
  return found;
}

/**
 * Merges a higher layer's entry over a lower one's, field by field: objects such as `tool_permission`
 * merge per key, lists and texts replace. A higher skill replaces a lower one. A loop refers to stages, so
 * a higher entry with stages also drops the lower loop.
 */
export function overlay(kind: Kind, lower: RawEntry, higher: RawEntry): RawEntry {
  if (kind === "skill") return higher;
  const { loop, ...rest } = lower;
  return merge(
    higher.stages !== undefined || loop === undefined ? rest : lower,
    higher,
  ) as RawEntry;
}

/** A merged entry with the defaults of all fields. */
export function complete<K extends Kind>(
  kind: K,
  name: string,
  raw: RawEntry,
  warn: (message: string) => void,
): Values[K] {
  const make: { [kind in Kind]: () => Values[kind] } = {
    role: () => role.parse(raw),
    team: () => {
      const { loop, ...rest } = team.parse(raw);
      if (loop === undefined) return rest;
      const [from, until] = [
        firstStage(rest.stages, loop.from),
        lastStage(rest.stages, loop.until),
      ];
      if (from !== undefined && until !== undefined && from <= until) {
        return { ...rest, loop: { ...loop, from, until } satisfies Loop };
      }
      warn(
        `The loop of the team ${name} does not go from one of its stages to the same or a later one; ` +
          "the team runs without it.",
      );
      return rest;
    },
    skill: () => {
      const { text, description, folder, hidden } = skill.parse(raw);
      return { description: description || firstLine(text), text, folder, hidden } satisfies Skill;
    },
  };
  return make[kind]();
}

/** The 1-based number of the first stage of a loop; a number in a file counts from 0. Default: the first stage. */
function firstStage(stages: Stage[], from: string | number = 0): number | undefined {
  const number = typeof from === "number"
    ? from + 1
    : stages.findIndex(({ role }) => role === from) + 1;
  return stages[number - 1] && number;
}

/** The 1-based number of the last stage of a loop; a number in a file counts from 0. Default: the last stage. */
function lastStage(
  stages: Stage[],
  until: string | number = stages.length - 1,
): number | undefined {
  const number = typeof until === "number"
    ? until + 1
    : stages.findLastIndex(({ role }) => role === until) + 1;
  return stages[number - 1] && number;
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!.replace(/^#+\s*/, "").trim();
}
