import { join } from "node:path";
import { checkAgainst, type Problem } from "../config/check.ts";
import { readConfigFile } from "../config/file.ts";
import { parseSettings } from "../config/jsonc.ts";
import { isObject } from "../config/key_path.ts";
import { errorMessage } from "../platform/error.ts";
import type { Paths } from "../platform/environment.ts";
import type { CatalogEntry, Registered } from "../plugins/hooks.ts";
import { BUNDLED_ROLES } from "./bundled_roles.ts";
import { BUNDLED_TEAMS } from "./bundled_teams.ts";
import { readMarkdown } from "./confined.ts";
import { placeOf, type Scope } from "./place.ts";
import { isCatalogName, type Kind, NAME_RULE, type RawEntry, SCHEMAS } from "./schema.ts";

/** What a layer says. */
interface LayerEntries {
  entries: Map<string, RawEntry>;
  /** Entries that are there and cannot be used, by name: file, place and fault as one phrase. */
  broken: Map<string, string>;
  /** The same for all of the layer, when nothing of it can be read; else empty. */
  unreadable: string;
}

/** Where an entry comes from, lowest first (specification 2.12). */
export type LayerName = "bundled" | "plugin" | Scope;

export interface Layer extends LayerEntries {
  name: LayerName;
}

type Warn = (message: string) => void;

/** What a catalog is read from. */
export interface CatalogSources {
  paths: Paths;
  /** What plugins registered, in the order in which they loaded. */
  plugins?: Pick<Registered, "roles" | "teams" | "skills">;
  warn: Warn;
}

/** The layers of a kind, lowest first; each plugin is one. What is wrong is warned about and left out. */
export function readLayers(kind: Kind, { paths, plugins, warn }: CatalogSources): Layer[] {
  const bundled = { role: BUNDLED_ROLES, team: BUNDLED_TEAMS, skill: {} }[kind];
  return [
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
      const { root, folder } = placeOf(scope, paths);
      const layer = kind === "skill"
        ? readSkills(root, join(folder, "skills"), warn)
        : readRegistry(join(folder, `${kind}s.json`), kind, warn);
      return { name: scope, ...layer };
    }),
  ];
}

/** The entries of `roles.json` or `teams.json`; what is wrong is warned about and left out. */
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

/** The skills of a folder: each `<name>.md` is one. */
function readSkills(root: string, folder: string, warn: Warn): LayerEntries {
  const skills: [string, unknown][] = [];
  for (const file of markdownFiles(folder, warn)) {
    try {
      const text = readMarkdown(root, join(folder, file), warn);
      skills.push([file.slice(0, -".md".length), { text }]);
    } catch (error) {
      warn(errorMessage(error));
    }
  }
  return accepted("skill", skills, folder, warn);
}

/** What a plugin registered. */
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
 * An entry without its name and without what is null, which says nothing; `unknown` are the places of
 * fields that no entry of the kind has.
 */
export function checkEntry(
  kind: Kind,
  name: string,
  value: unknown,
): { entry: RawEntry; problem?: Problem; unknown: string[] } {
  const entry: RawEntry = isObject(value) ? { ...value } : {};
  delete entry.name;
  for (const [field, said] of Object.entries(entry)) if (said === null) delete entry[field];
  const given = isObject(value) ? entry : value;
  const { problem } = checkAgainst(SCHEMAS[kind], name, given);
  const unknown = problem ? [] : unknownFields(entry, SCHEMAS[kind].parse(entry), name);
  return { entry, problem, unknown };
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
      const fault = `${origin}: "${problem.place}" ${problem.fault}`;
      warn(`${fault}; the ${kind} ${name} ${kind === "skill" ? "is left out" : "cannot be used"}.`);
      result.broken.set(name, `${fault}.`);
      continue;
    }
    for (const place of unknown) warn(`${origin}: "${place}" is no field of a ${kind}.`);
    result.entries.set(name, entry);
  }
  return result;
}

/** Places in `given` that the schema dropped. */
function unknownFields(given: unknown, known: unknown, place: string): string[] {
  if (Array.isArray(given) && Array.isArray(known)) {
    return given.flatMap((item, index) => unknownFields(item, known[index], `${place}[${index}]`));
  }
  if (!isObject(given) || !isObject(known)) return [];
  return Object.keys(given).flatMap((name) =>
    Object.hasOwn(known, name)
      ? unknownFields(given[name], known[name], `${place}.${name}`)
      : [`${place}.${name}`]
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
