import { merge } from "../config/merge.ts";
import type { RawEntry } from "./layers.ts";
import {
  type Kind,
  type Loop,
  role,
  type Skill,
  skill,
  type Stage,
  team,
  type Values,
} from "./schema.ts";

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
