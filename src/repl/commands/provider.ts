import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "the active provider; switch to another",
  usage: ["provider", "provider <name> [--global]"],
  complete: { "": "providers" },
  flags: { "--global": true },
  async run({ words }, shell) {
    const [{ runTwin }, { provider }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/providers.ts"),
    ]);
    await runTwin(provider, ["provider", ...words], shell);
  },
});
