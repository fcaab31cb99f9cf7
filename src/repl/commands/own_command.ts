import { usageError } from "../../platform/error.ts";
import { stripControl } from "../../platform/terminal.ts";
import type { Shell } from "../shell.ts";

/** Characters of output that the next message takes along. */
const MOST = 100_000;
/** Seconds of a command; Ctrl-C ends it before. */
const DAY = 86_400;

/**
 * Runs a command of the person's own, in the worktree, with the person's rights: `!cmd` shows its output and gives it
 * to the model with the next message; `!!cmd` has the terminal for itself, and the model is told nothing.
 *
 * @throws SvcError (exit 2) `no_command`
 */
export async function runOwnCommand(typed: string, shell: Shell): Promise<void> {
  const { workspace, conversation, input, output, io } = shell;
  const { paths: { worktree: cwd }, clock } = workspace;
  const kept = !typed.startsWith("!!");
  const command = typed.replace(/^!!?/, "").trim();
  if (command === "") {
    throw usageError("no_command", "There is no command after the !.", "Such as: !git status");
  }
  if (!kept) {
    input.restore();
    const child = new Deno.Command("sh", { args: ["-c", command], cwd, stdin: "inherit" }).spawn();
    const { code } = await child.status;
    if (code !== 0) io.note(`exit ${code}`);
    return;
  }
  const { runProcess } = await import("../../platform/process.ts");
  const request = { command: ["sh", "-c", command], cwd, timeout: DAY, max_output: MOST };
  const { code, output: text, cancelled } = await shell.cancellable((signal) =>
    runProcess(request, signal, clock)
  );
  const shown = stripControl(text).trimEnd();
  if (shown !== "") output.line(shown);
  const end = cancelled ? "cancelled" : `exit ${code}`;
  if (code !== 0) io.note(end);
  const given = `${workspace.mask(text).trimEnd()}\n${end}\n`;
  conversation.give({ name: `$ ${command}`, content: new TextEncoder().encode(given) });
  conversation.log(`!${command}`);
  io.note("The output goes to the model with your next message.");
}
