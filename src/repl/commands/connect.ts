import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "connect a model provider and store its key",
  usage: ["connect", "connect <name>", "connect <url> [name]"],
  complete: { "": "providers" },
  flags: { "--no-key": true, "--force": true, "--local": true },
  async run({ words }, shell) {
    const [{ runTwin }, { connect }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/providers.ts"),
    ]);
    await runTwin(connect, ["connect", ...words], shell);
  },
});
