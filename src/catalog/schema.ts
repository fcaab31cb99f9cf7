import * as z from "zod/mini";

/** What a catalog holds (specification 2.12). */
export type Kind = "role" | "team" | "skill";

const NAME = /^[\p{L}\p{N}][\p{L}\p{M}\p{N}._-]{0,63}$/u;

/** Whether a name is a plain word that can also name a file: a skill's, a memory's. */
export function isCatalogName(name: string): boolean {
  return NAME.test(name);
}

/** What `isCatalogName` accepts, in words. */
export const NAME_RULE =
  "up to 64 letters, digits, dots, dashes and underscores, of which the first is a letter or a digit";

const name = z.string().check(z.refine(isCatalogName, { error: "must be a plain name" }));
const names = z._default(z.array(name), []);
const text = z._default(z.string(), "");
const carve = z.record(z.string(), z.enum(["allow", "ask", "deny"]));

/** A role: an agent to be, as `roles.json` has it under the role's name. */
export const role = z.object({
  description: text,
  system_prompt: text,
  /** A model id or a provider/model ref; empty: the caller's. */
  model: text,
  /** Skills that always belong to the role's prompt. */
  skills: names,
  tags: z._default(z.array(z.string()), []),
  /** Category to action. What it leaves out is the caller's. */
  tool_permission: z._default(carve, {}),
  /** What the role may hand down at most; left out: what it may itself (specification 5.3.6). */
  grant_permission: z.optional(carve),
  ask_policy: z.optional(z.object({
    permission: z.optional(z.enum(["auto", "human", "deny"])),
    direction: z.optional(z.enum(["auto", "human", "lead", "deny"])),
  })),
  /** A Markdown file with more to the prompt, relative to the folder of the layer that names it. */
  instructions: text,
});
export type Role = z.infer<typeof role>;

const stage = z.pipe(
  z.transform((value: unknown) => typeof value === "string" ? { role: value } : value),
  z.object({
    role: name,
    /** Empty: build. */
    mode: text,
    /** What this stage is to do with the team's task. */
    task_hint: text,
    /** What the stage before it says to this one. */
    handoff_note: text,
    skills: names,
  }),
);
/** One role's turn in a team. */
export type Stage = z.infer<typeof stage>;

/** A stage of the same team, by its role's name or its number, counted from 1. */
const place = z.union([name, z.int().check(z.gte(1))], {
  error: "the role of a stage or its number",
});

/** A team: roles that work one after the other, as `teams.json` has it under the team's name. */
export const team = z.object({
  description: text,
  tags: z._default(z.array(z.string()), []),
  stages: z._default(z.array(stage), []),
  /** Stages that are gone through again until the last of them passes the work. */
  loop: z.optional(z.object({
    from: z.optional(place),
    until: z.optional(place),
    max_iterations: z._default(z.int().check(z.gte(1)), 3),
    /** What the line of the verdict starts with. */
    verdict: z._default(z.string().check(z.minLength(1)), "VERDICT:"),
  })),
});

/** A loop whose places are stage numbers, counted from 1. */
export interface Loop {
  from: number;
  until: number;
  max_iterations: number;
  verdict: string;
}
export type Team = Omit<z.infer<typeof team>, "loop"> & { loop?: Loop };

/** A skill: text that a role's prompt can be given. */
export const skill = z.object({
  /** Default: the text's first line. */
  description: text,
  text: z.string().check(z.minLength(1)),
});
export type Skill = z.infer<typeof skill>;

/** What an entry of each kind holds. */
export interface Values {
  role: Role;
  team: Team;
  skill: Skill;
}

export const SCHEMAS = { role, team, skill };

/** An entry as a layer has it: the fields that it says something about. */
export type RawEntry = Record<string, unknown>;

/** The fields of an entry. */
export function fieldNames(kind: Kind): string[] {
  return Object.keys(SCHEMAS[kind].shape);
}
