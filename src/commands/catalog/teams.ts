import { option } from "@optique/core/primitives";
import { object } from "@optique/core/constructs";
import { optional } from "@optique/core/modifiers";
import { string } from "@optique/core/valueparser";
import { catalogCommand, jsonEntry, words } from "./catalog.ts";
import { says } from "../command.ts";
import { runTeam } from "./teams_run.ts";

/** `svc teams`. */
export const teams = catalogCommand({
  kind: "team",
  fields: object({
    description: optional(option("--description", string({ metavar: "TEXT" }), {
      description: says("What the team is for, in one line."),
    })),
    tags: optional(option("--tags", string({ metavar: "WORDS" }), {
      description: says("Separated by commas."),
    })),
    stages: optional(option("--stages", string({ metavar: "ROLES" }), {
      description: says("The roles in their order, separated by commas."),
    })),
  }),
  entryOf: ({ description, tags, stages }) => ({
    description,
    tags: words(tags),
    stages: words(stages),
  }),
  entryOfFile: jsonEntry,
  more: runTeam,
  examples: [
    'svc teams run programming "let export take several sessions" --verbose',
    "svc teams list",
    "svc teams show programming",
    "svc teams new review --stages tester,code-reviewer",
    "svc teams new review --file review.json --force",
    "svc teams remove review",
  ],
});
