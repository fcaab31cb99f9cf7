import { parseCommand } from "../../commands/command.ts";
import { argumentsOf, isLogged, readLine } from "../../commands/slash_line.ts";
import { SESSION_NEEDS } from "../../engine/workspace.ts";
import { nearest, usageError } from "../../platform/error.ts";
import { stripControl } from "../../platform/terminal.ts";
import { SESSION_COMMANDS } from "../../plugins/command_names.ts";
import type { Shell } from "../shell.ts";
import { COMMANDS, findCommand, type SlashCommand } from "./table.ts";

/**
 * Runs the slash command of a name or an alias.
 *
 * @throws SvcError, for an unknown one with the nearest name
 */
export async function runSlash(name: string, rest: string, shell: Shell): Promise<void> {
  const word = name.toLowerCase() === "?" ? "help" : name.toLowerCase();
  if (word === "sessions" && rest.trim() === "" && shell.output.isTerminal) {
    return await runSlash("session", "load", shell); // a list to choose from
  }
  const found = findCommand(word);
  if (found !== undefined) {
    const command = await found.entry.load();
    const args = argumentsOf(command, found.name, readLine(rest));
    const parsed = await parseCommand(command, args, shell.io);
    if (parsed === undefined) return;
    const { values } = parsed;
    let typed = `/${found.name} ${args.slice(1, 2).join(" ")}`;
    try {
      await attended(command, values, shell);
      typed = `/${found.name} ${rest}`;
    } finally {
      if (!isLogged(found.name, values)) log(typed, shell);
    }
    return;
  }
  if (await runPluginCommand(word, rest, shell)) return;
  const names = [...Object.keys(COMMANDS), ...Object.values(SESSION_COMMANDS).flat()];
  const guess = nearest(word, names);
  throw usageError(
    "unknown_command",
    `There is no command /${name}.`,
    guess === undefined ? "See: /help" : `Did you mean /${guess}?`,
  );
}

/** Logs a command as it was typed (specification 2.2). One that failed may have a secret in a wrong place. */
function log(typed: string, { conversation, workspace }: Shell): void {
  conversation.log(workspace.mask(typed.trim()));
}

/** What is typed while the command works waits for the next prompt, unless the command lends the terminal. */
async function attended(command: SlashCommand, values: unknown, shell: Shell): Promise<void> {
  if (command.lends?.(values)) {
    shell.input.restore();
    await command.run(values, shell);
    return;
  }
  const watch = shell.input.watch({ interrupt() {} });
  try {
    await command.run(values, shell);
  } finally {
    watch.stop();
  }
}

/** A command that a plugin has registered (specification 4.9); names of svc itself come first. */
async function runPluginCommand(word: string, rest: string, shell: Shell): Promise<boolean> {
  const { commands } = await shell.workspace.load(SESSION_NEEDS);
  const found = commands.find(({ definition: { name, aliases } }) =>
    name === word || aliases?.includes(word)
  );
  if (found === undefined) return false;
  const { workspace: { config, paths }, conversation } = shell;
  const answer = await shell.cancellable((signal) => {
    const context = { config, worktree: paths.worktree, session: conversation.name ?? "", signal };
    const cancelled = Promise.withResolvers<undefined>();
    signal.addEventListener("abort", () => cancelled.resolve(undefined), { once: true });
    return Promise.race([found.definition.run(rest, context), cancelled.promise]);
  });
  if (typeof answer === "string" && answer !== "") shell.output.line(stripControl(answer));
  log(`/${word} ${rest}`, shell);
  return true;
}
