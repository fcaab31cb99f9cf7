import type { Line } from "../words.ts";
import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "show and change the teams, and have one do a task",
  usage: [
    "teams [list [tag]]",
    "teams show <name>",
    "teams new <name> [options]",
    "teams remove <name>",
    "teams run <name> <task>",
  ],
  complete: {
    "": ["list", "show", "new", "remove", "run"],
    show: "teams",
    new: "teams",
    remove: "teams",
    run: "teams",
  },
  flags: { "--global": true, "--force": true, "--file": "files" },
  async run(line, shell) {
    const [{ runTwin }, { teams }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/teams.ts"),
    ]);
    await runTwin(teams, ["teams", ...argumentsOf(line)], shell);
  },
});

/** The task of a run is the rest of the line as it was typed, unless options are among it. */
function argumentsOf({ words, rest }: Line): readonly string[] {
  if (words.length === 0) return ["list"];
  if (words[0] !== "run" || words.some((word) => word.startsWith("--"))) return words;
  return ["run", "--output", "text", "--verbose", ...words.slice(1, 2), rest(2)];
}
