import { usageError } from "../../platform/error.ts";
import { checkSessionName } from "../../sessions/names.ts";
import type { Shell } from "../shell.ts";
import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "the active session: begin another, load one",
  usage: ["session", "session new [name]", "session load <name>|#<id>", "session save"],
  complete: { "": ["new", "load", "save"], load: "sessions" },
  async run(line, shell) {
    const [action] = line.words;
    const name = line.rest(1);
    switch (action) {
      case undefined:
        return show(shell);
      case "new":
        return await begin(name, shell);
      case "load":
        return await load(name, shell);
      case "save":
        shell.io.note(`Saved as it is said: ${shell.conversation.open().name}`);
        return;
      default:
        throw usageError("usage", `/session does not know "${action}".`, "See: /help session");
    }
  },
});

function show({ conversation, workspace, output, io }: Shell): void {
  const { name } = conversation;
  if (name === undefined) return io.note("The session begins with your first message.");
  output.line(name);
  const document = workspace.sessions.read(name);
  if (document === undefined) return io.note("It begins with your next message.");
  const { turns, created_at, updated_at, role, parent_id, sub_sessions } = document;
  output.line(`  turns: ${turns.length}, created ${created_at}, last written ${updated_at}`);
  if (role !== "") output.line(`  role: ${role}`);
  if (parent_id !== "") output.line(`  parent: ${parent_id}`);
  for (const sub of sub_sessions) output.line(`  sub-session: ${sub}`);
}

async function begin(name: string, { conversation, workspace, focus, io }: Shell): Promise<void> {
  if (name !== "") {
    checkSessionName(name);
    if (workspace.sessions.list().includes(name)) {
      throw usageError(
        "session_exists",
        `There is a session ${name} already.`,
        `/session load ${name}`,
      );
    }
  }
  await conversation.switchTo(name === "" ? undefined : name);
  focus.reset();
  io.note(`${name === "" ? "A new session" : `Session ${name}`} begins with your next message.`);
}

async function load(given: string, shell: Shell): Promise<void> {
  if (given === "") {
    throw usageError("usage", "/session load needs a name or #<id>.", "See: /sessions");
  }
  const { findSession } = await import("../../commands/sessions.ts");
  const { introduce } = await import("../terminal_session.ts");
  const { name } = findSession(shell.workspace, given);
  await shell.conversation.switchTo(name);
  shell.focus.reset();
  introduce(shell);
}
