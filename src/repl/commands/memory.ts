import { SCOPES } from "../../memory/memory.ts";
import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "what roles, teams and jobs remember",
  usage: ["memory [list]", "memory show <scope> <name>", "memory clear <scope> <name>"],
  complete: { "": ["list", "show", "clear"], show: SCOPES, clear: SCOPES },
  async run({ words }, shell) {
    const [{ runTwin }, { memory }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/memory.ts"),
    ]);
    await runTwin(memory, ["memory", ...words], shell);
  },
});
