import { option } from "@optique/core/primitives";
import { object } from "@optique/core/constructs";
import { multiple, optional } from "@optique/core/modifiers";
import { string } from "@optique/core/valueparser";
import { usageError } from "../../platform/error.ts";
import { catalogCommand, jsonEntry, words } from "./catalog.ts";
import { says } from "../command.ts";

const text = (
  flag: `--${string}`,
  metavar: "TEXT" | "REF" | "FILE" | "WORDS",
  description: string,
) => optional(option(flag, string({ metavar }), { description: says(description) }));

const actions = (flag: `--${string}`, description: string) =>
  multiple(
    option(flag, string({ metavar: "CATEGORY=ACTION" }), { description: says(description) }),
  );

/** `svc roles`. */
export const roles = catalogCommand({
  kind: "role",
  fields: object({
    description: text("--description", "TEXT", "What the role is for, in one line."),
    system_prompt: text("--system-prompt", "TEXT", "Who the agent is and how it works."),
    instructions: text("--instructions", "FILE", "A Markdown file with more of that."),
    model: text("--model", "REF", "A model, or <provider>/<model>."),
    tags: text("--tags", "WORDS", "Separated by commas."),
    skills: text("--skills", "WORDS", "Skills that always belong to its prompt, by commas."),
    tool_permission: actions(
      "--tool-permission",
      "allow, ask or deny for a category of tools; may be repeated.",
    ),
    grant_permission: actions(
      "--grant-permission",
      "What the role may hand down at most; may be repeated.",
    ),
  }),
  entryOf: ({ tags, skills, tool_permission, grant_permission, ...rest }) => ({
    ...rest,
    tags: words(tags),
    skills: words(skills),
    tool_permission: pairs(tool_permission),
    grant_permission: pairs(grant_permission),
  }),
  entryOfFile: jsonEntry,
  examples: [
    "svc roles list programming",
    "svc roles show code-reviewer",
    "svc roles new tester --model groq/llama-3.3-70b-versatile --global",
    'svc roles new clerk --system-prompt "You keep the minutes." --tool-permission bash=deny',
    "svc roles new clerk --file clerk.json --force",
    "svc roles remove clerk",
  ],
});

/** `category=action` pairs as an object; undefined for none. */
function pairs(given: readonly string[]): Record<string, string> | undefined {
  if (given.length === 0) return undefined;
  return Object.fromEntries(given.map((pair) => {
    const [category, action, ...more] = pair.split("=");
    if (category && action && more.length === 0) return [category, action];
    throw usageError("usage", `${JSON.stringify(pair)} is not of the form category=action.`);
  }));
}
