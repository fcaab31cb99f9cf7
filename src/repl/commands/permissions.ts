import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "what each category of tools may do",
  usage: ["permissions [--mode <mode>]"],
  flags: { "--mode": "modes", "--output": ["table", "json"] },
  async run({ words }, shell) {
    const [{ runTwin }, { permissions }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/permissions.ts"),
    ]);
    await runTwin(permissions, ["permissions", ...words], shell);
  },
});
