import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "models in use, or those a provider offers",
  usage: ["models", "models list [provider]"],
  complete: { "": ["list"], list: "providers" },
  async run({ words }, shell) {
    const [{ runTwin }, { models }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/providers.ts"),
    ]);
    await runTwin(models, ["models", ...words], shell);
  },
});
