import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "the roles that an agent can take",
  usage: [
    "roles [list [tag]]",
    "roles show <name>",
    "roles new <name> [options]",
    "roles remove <name>",
  ],
  complete: { "": ["list", "show", "new", "remove"], show: "roles", new: "roles", remove: "roles" },
  flags: { "--global": true, "--force": true, "--file": "files" },
  async run({ words }, shell) {
    const [{ runTwin }, { roles }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/catalog.ts"),
    ]);
    await runTwin(roles, ["roles", ...(words.length === 0 ? ["list"] : words)], shell);
  },
});
