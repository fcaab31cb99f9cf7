import { nameOf } from "../../commands/names.ts";
import { usageError } from "../../platform/error.ts";
import { checkNewName } from "../../sessions/names.ts";
import type { Shell } from "../shell.ts";
import type { SlashCommand } from "./table.ts";
import { argument, command, type InferValue, optional, string } from "../../commands/options.ts";

const saved = argument(nameOf("sessions", "SESSION"), "The name of a session, or its #<id>.");

const sessionParser = command("session", [
  command("show", { action: "show" }, "Show the active session."),
  command(
    "new",
    { action: "new", name: optional(argument(string("NAME"))) },
    "Begin another session with the next message.",
  ),
  command(
    "load",
    { action: "load", name: optional(saved) },
    "Continue a saved session; without a name, choose one from a list.",
  ),
  command("save", { action: "save" }, "Write the session now; every turn is saved anyway."),
], "Show the active session, begin another, or load one.");

/** `/session` */
export const session: SlashCommand<InferValue<typeof sessionParser>> = {
  parser: sessionParser,
  bare: "show",
  examples: ["/session", "/session new draft", "/session load nightly", "/session load #k3x9qa"],
  async run(values, shell) {
    switch (values.action) {
      case "show":
        return show(shell);
      case "new":
        return await begin(values.name, shell);
      case "load":
        return await (values.name === undefined ? choose(shell) : load(values.name, shell));
      case "save":
        shell.io.note(`Session ${shell.conversation.open().name} is saved.`);
    }
  },
};

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

async function begin(
  name: string | undefined,
  { conversation, workspace, focus, io }: Shell,
): Promise<void> {
  if (name !== undefined) {
    checkNewName(name);
    await workspace.sessions.locate(name);
    if (workspace.sessions.list().includes(name)) {
      throw usageError(
        "session_exists",
        `There is a session ${name} already.`,
        `/session load ${name}`,
      );
    }
  }
  await conversation.switchTo(name);
  focus.reset();
  const begun = name === undefined ? "A new session" : `Session ${name}`;
  io.note(`${begun} begins with your next message.`);
}

/** `/sessions` at a terminal, `/session load`, `svc --resume`: continues a session that is chosen from a list. */
export async function choose(shell: Shell): Promise<void> {
  if (!shell.output.isTerminal) {
    const hint = "Such as: /session load nightly";
    throw usageError("usage", "A list to choose from needs a terminal.", hint);
  }
  const { pickSession } = await import("./session_picker.ts");
  const name = await pickSession(shell);
  if (name !== undefined && name !== shell.conversation.name) await load(name, shell);
}

async function load(given: string, shell: Shell): Promise<void> {
  const { findSession } = await import("../../commands/workspace.ts");
  const { introduce } = await import("../terminal_session.ts");
  const { name } = await findSession(shell.workspace, given);
  await shell.conversation.switchTo(name);
  shell.focus.reset();
  introduce(shell);
}

/** `/clear` */
export const clear: SlashCommand<object> = {
  parser: command("clear", {}, "Begin a new session."),
  examples: ["/clear"],
  async run(_values, { conversation, focus, io }) {
    const before = conversation.name;
    await conversation.switchTo(undefined);
    focus.reset();
    if (before !== undefined) io.note(`Session ${before} stays saved: /session load ${before}`);
    io.note("A new session begins with your next message.");
  },
};
