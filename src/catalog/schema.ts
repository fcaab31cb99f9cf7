import * as z from "zod/mini";

/** The kinds of entries in a catalog (specification 2.12). */
export type Kind = "role" | "team" | "skill";

/** The names that `isCatalogName` accepts. */
export const NAME_PATTERN = /^[\p{L}\p{N}][\p{L}\p{M}\p{N}._-]{0,63}$/u;

/** Whether a name is valid for an entry and for its files: `<name>.md` of a skill or a memory. */
export function isCatalogName(name: string): boolean {
  return NAME_PATTERN.test(name);
}

/** The rule of `isCatalogName` in words. */
export const NAME_RULE =
  "up to 64 letters, digits, dots, dashes and underscores, of which the first is a letter or a digit";

const name = z.string().check(z.refine(isCatalogName, { error: "must be a plain name" }));
const names = z._default(z.array(name), []);
const text = z._default(z.string(), "");
const categoryActions = z.record(z.string(), z.enum(["allow", "ask", "deny"]));

/** A role: the description of an agent, in `roles.json` under the role's name. */
export const role = z.object({
  description: text,
  system_prompt: text,
  /** A model id or a `<provider>/<model>` ref. Empty: the caller's. */
  model: text,
  /** Skills that are always in the role's prompt. */
  skills: names,
  tags: z._default(z.array(z.string()), []),
  /** Category to action. A missing category has the caller's action. */
  tool_permission: z._default(categoryActions, {}),
  /** The ceiling of the agents that it starts. Default: its own permissions (specification 5.3.6). */
  grant_permission: z.optional(categoryActions),
  ask_policy: z.optional(z.object({
    permission: z.optional(z.enum(["auto", "human", "deny"])),
    direction: z.optional(z.enum(["auto", "human", "lead", "deny"])),
  })),
  /** A Markdown file that is added to the prompt, relative to the root of the role's layer. */
  instructions: text,
  /** `false`: an agent saved the entry and no person has accepted it, so the role opens no category. */
  accepted: z.optional(z.boolean()),
});
export type Role = z.infer<typeof role>;

const stage = z.pipe(
  z.transform((value: unknown) => typeof value === "string" ? { role: value } : value),
  z.object({
    role: name,
    /** Empty: build. */
    mode: text,
    /** Instructions for the work of this stage on the team's task. */
    task_hint: text,
    /** A note from the previous stage to this one. */
    handoff_note: text,
    skills: names,
  }),
);
/** The work of one role in a team. */
export type Stage = z.infer<typeof stage>;

/** A stage of the same team, by the name of its role or its number, which counts from 0. */
const stageRef = z.union([name, z.int().check(z.gte(0))], {
  error: "the role of a stage or its number",
});

/** A team: roles that work one after the other, in `teams.json` under the team's name. */
export const team = z.object({
  description: text,
  tags: z._default(z.array(z.string()), []),
  stages: z._default(z.array(stage), []),
  /** Stages that are repeated until the last of them accepts the work. */
  loop: z.optional(z.object({
    from: z.optional(stageRef),
    until: z.optional(stageRef),
    max_iterations: z._default(z.int().check(z.gte(1)), 3),
    /** The prefix of the line with the verdict. */
    verdict: z._default(z.string().check(z.minLength(1)), "VERDICT:"),
  })),
});

/** A loop with its stages as 1-based numbers. */
export interface Loop {
  from: number;
  until: number;
  max_iterations: number;
  verdict: string;
}
export type Team = Omit<z.infer<typeof team>, "loop"> & { loop?: Loop };

/** A skill: text for a role's prompt. */
export const skill = z.object({
  /** Default: the text's first line. */
  description: text,
  text: z.string().check(z.minLength(1)),
  /** The absolute path of a skill that is a folder. */
  folder: text,
  /** Whether only a role or a person names it. */
  hidden: z._default(z.boolean(), false),
});
export type Skill = z.infer<typeof skill>;

/** The entry of each kind. */
export interface Values {
  role: Role;
  team: Team;
  skill: Skill;
}

export const SCHEMAS = { role, team, skill };

/** An entry of one layer: only the fields that the layer sets. */
export type RawEntry = Record<string, unknown>;

/** The names of an entry's fields. */
export function fieldNames(kind: Kind): string[] {
  return Object.keys(SCHEMAS[kind].shape);
}
