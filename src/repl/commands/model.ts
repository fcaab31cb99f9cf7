import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "the model; choose another",
  usage: ["model", "model <id>|<provider>/<id> [--global]"],
  complete: { "": "models" },
  flags: { "--global": true },
  async run({ words }, shell) {
    const [{ runTwin }, { model }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/providers.ts"),
    ]);
    await runTwin(model, ["model", ...words], shell);
  },
});
