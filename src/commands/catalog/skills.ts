import { object } from "@optique/core/constructs";
import { catalogCommand } from "./catalog.ts";

/** `svc skills`. */
export const skills = catalogCommand({
  kind: "skill",
  fields: object({}),
  entryOf: () => ({}),
  entryOfFile: (text) => ({ text }),
  examples: [
    "svc skills list",
    "svc skills show release-notes",
    "svc skills new release-notes --file release-notes.md",
    "svc skills remove release-notes",
  ],
});
