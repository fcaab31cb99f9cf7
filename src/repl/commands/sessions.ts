import { usageError } from "../../platform/error.ts";
import type { Shell } from "../shell.ts";
import { slashCommand } from "./command.ts";

/** How many are listed when nobody says how many. */
const SHOWN = 20;

export const command = slashCommand({
  summary: "saved sessions, newest first",
  usage: [
    "sessions [n|all]",
    "sessions preview <name>|#<id>",
    "sessions delete <name>|#<id>",
    "sessions export <name>|#<id> [file|-]",
  ],
  complete: {
    "": ["preview", "delete", "export", "all"],
    preview: "sessions",
    delete: "sessions",
    export: "sessions",
  },
  async run(line, shell) {
    const [action = String(SHOWN), name, out] = line.words;
    if (/^(all|[1-9]\d{0,8})$/.test(action)) return list(action, shell);
    if (!["preview", "delete", "export"].includes(action)) {
      throw usageError("usage", `/sessions does not know "${action}".`, "See: /help sessions");
    }
    if (name === undefined) {
      throw usageError("usage", `/sessions ${action} needs a name or #<id>.`, "See: /sessions");
    }
    if (action === "preview") return await preview(name, shell);
    if (action === "delete") return await remove(name, shell);
    const [{ runTwin }, { exportSession }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/sessions.ts"),
    ]);
    const target = out === undefined ? [] : [`--out=${out}`];
    await runTwin(exportSession, ["export", ...target, "--", name], shell);
  },
});

function list(
  count: string,
  { workspace: { sessions }, conversation, output, style, io }: Shell,
): void {
  const all = sessions.newest();
  const shown = count === "all" ? all : all.slice(0, Number(count));
  for (const { name, updated } of shown) {
    const time = new Date(updated).toISOString().slice(0, 16).replace("T", " ");
    const mark = name === conversation.name ? "*" : " ";
    output.line(`${mark} ${name}  ${style.dim(time)}`);
  }
  const more = all.length - shown.length;
  if (all.length === 0) io.note("There are no saved sessions.");
  else if (more > 0) io.note(`${shown.length} of ${all.length}; the others: /sessions all`);
}

async function preview(name: string, { workspace, output }: Shell): Promise<void> {
  const [{ findSession }, { previewLines }] = await Promise.all([
    import("../../commands/sessions.ts"),
    import("../render/saved_turns.ts"),
  ]);
  for (const each of previewLines(findSession(workspace, name).document)) output.line(each);
}

async function remove(given: string, { workspace, conversation, io }: Shell): Promise<void> {
  const { sessions } = workspace;
  const name = given.startsWith("#") ? sessions.findById(given) : given;
  if (name === undefined || !sessions.list().includes(name)) {
    const { noSession } = await import("../../commands/sessions.ts");
    throw noSession(given, workspace);
  }
  if (
    conversation.runs.list().some(({ session }) => session === name) || name === conversation.name
  ) {
    throw usageError(
      "session_active",
      `Session ${name} is in use here.`,
      "Begin another first: /session new",
    );
  }
  if (!await io.confirm(`Delete session ${name} for good?`)) return io.note("Nothing was deleted.");
  sessions.remove(name);
  io.note(`Session ${name} is deleted.`);
}
