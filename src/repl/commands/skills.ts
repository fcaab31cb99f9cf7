import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "texts that roles are given",
  usage: [
    "skills [list [tag]]",
    "skills show <name>",
    "skills new <name> [options]",
    "skills remove <name>",
  ],
  complete: {
    "": ["list", "show", "new", "remove"],
    show: "skills",
    new: "skills",
    remove: "skills",
  },
  flags: { "--global": true, "--force": true, "--file": "files" },
  async run({ words }, shell) {
    const [{ runTwin }, { skills }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/catalog.ts"),
    ]);
    await runTwin(skills, ["skills", ...(words.length === 0 ? ["list"] : words)], shell);
  },
});
