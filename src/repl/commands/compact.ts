import { usageError } from "../../platform/error.ts";
import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "summarise old turns, so that less is sent",
  usage: ["compact"],
  async run(_line, shell) {
    const session = shell.focus.current()?.session ?? shell.conversation.name;
    if (session === undefined || shell.workspace.sessions.read(session) === undefined) {
      throw usageError("usage", "There is nothing to compact yet.");
    }
    const [{ runTwin }, { compactSession }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/sessions.ts"),
    ]);
    await runTwin(compactSession, ["compact", session], shell);
  },
});
