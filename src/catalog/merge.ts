import { merge } from "../config/merge.ts";
import type { Layer, LayerName } from "./layers.ts";
import {
  type Kind,
  type Loop,
  type RawEntry,
  role,
  type Skill,
  skill,
  type Stage,
  team,
  type Values,
} from "./schema.ts";

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

/** The entries of all layers, which come lowest first, by name in alphabetical order; the broken ones too. */
export function mergeLayers<K extends Kind>(
  kind: K,
  layers: Layer[],
  warn: (message: string) => void,
): Map<string, Entry<Values[K]>> {
  const merged = new Map<string, { layers: LayerName[]; raw: RawEntry }>();
  for (const layer of layers) {
    for (const [name, raw] of layer.entries) {
      const below = merged.get(name);
      const said = new Set([...below?.layers ?? [], layer.name]);
      merged.set(name, {
        layers: [...said],
        raw: below === undefined ? raw : overlay(kind, below.raw, raw),
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

/** The entries of which some layer says what cannot be read; all, when it cannot be read as a whole. */
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
 * A higher layer's entry over a lower one's, field by field: objects such as `tool_permission` merge
 * per key, lists and texts replace. A skill is one text, so the higher one replaces it; and a loop names
 * stages, so a layer that brings stages of its own leaves the loop of those below behind.
 */
export function overlay(kind: Kind, lower: RawEntry, higher: RawEntry): RawEntry {
  if (kind === "skill") return higher;
  const { loop, ...rest } = lower;
  return merge(
    higher.stages !== undefined || loop === undefined ? rest : lower,
    higher,
  ) as RawEntry;
}

/** A merged entry with all of its fields. */
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
        stageNumber(rest.stages, loop.from),
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
      const { text, description } = skill.parse(raw);
      return { description: description || firstLine(text), text } satisfies Skill;
    },
  };
  return make[kind]();
}

/** The number of the first stage that is meant; without a word about it, of the first of all. */
function stageNumber(stages: Stage[], place: string | number = 1): number | undefined {
  const number = typeof place === "number"
    ? place
    : stages.findIndex(({ role }) => role === place) + 1;
  return stages[number - 1] && number;
}

/** The number of the last stage that is meant; without a word about it, of the last of all. */
function lastStage(stages: Stage[], place: string | number = stages.length): number | undefined {
  const number = typeof place === "number"
    ? place
    : stages.findLastIndex(({ role }) => role === place) + 1;
  return stages[number - 1] && number;
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!.replace(/^#+\s*/, "").trim();
}
