import { type Command, runCommand } from "../../commands/command.ts";
import type { Shell } from "../shell.ts";

/** Runs the command that the command line has too, in the worktree that is open. */
export async function runTwin(
  // deno-lint-ignore no-explicit-any
  command: Command<any>,
  args: readonly string[],
  shell: Shell,
): Promise<void> {
  await runCommand(command, [...args], shell.io);
}
