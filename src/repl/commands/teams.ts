import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "show and change the teams",
  usage: [
    "teams [list [tag]]",
    "teams show <name>",
    "teams new <name> [options]",
    "teams remove <name>",
  ],
  complete: { "": ["list", "show", "new", "remove"], show: "teams", new: "teams", remove: "teams" },
  flags: { "--global": true, "--force": true, "--file": "files" },
  async run({ words }, shell) {
    const [{ runTwin }, { teams }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/teams.ts"),
    ]);
    await runTwin(teams, ["teams", ...(words.length === 0 ? ["list"] : words)], shell);
  },
});
