import { usageError } from "../../platform/error.ts";
import { SCOPES } from "../../memory/memory.ts";
import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "write what a role, team or job remembers",
  usage: ["memorize", "memorize role|team|job <name>"],
  complete: { "": SCOPES, role: "roles", team: "teams" },
  async run({ words: [given, named] }, shell) {
    const { workspace, conversation, focus, io } = shell;
    const scope = SCOPES.find((each) => each === (given ?? "role"));
    const name = named ?? (given === undefined ? focus.current()?.role || conversation.role : "");
    if (scope === undefined || name === "") {
      throw usageError(
        "usage",
        "Whose memory it is to be is not said: this session runs as no role.",
        "Say: /memorize role <name>, team <name> or job <name>.",
      );
    }
    workspace.memory.path(scope, name); // refuses what is no name, or leads elsewhere
    const [{ targetOf }, { memorize }] = await Promise.all([
      import("./target.ts"),
      import("../../engine/agents/memorize.ts"),
    ]);
    const { document } = await targetOf(undefined, shell);
    if (document.turns.length === 0) throw usageError("usage", "There is nothing to remember yet.");
    const { EVERYTHING } = await import("../conversation.ts");
    await workspace.load(EVERYTHING);
    await shell.cancellable(async (signal) => {
      await memorize({
        workspace,
        scope,
        name,
        turns: document.turns,
        ended: { ok: true, text: lastAnswer(document.turns) },
        backend: await conversation.backend(),
        session_id: document.session_id || document.session_name,
        signal,
      });
    });
    io.note(`The ${scope} ${name} remembers: /memory show ${scope} ${name}`);
  },
});

function lastAnswer(
  turns: readonly { parts: readonly { type: string; text?: string }[] }[],
): string {
  return turns.flatMap(({ parts }) => parts).findLast(({ type }) => type === "text")?.text ?? "";
}
