import { nearest, usageError } from "../../platform/error.ts";
import type { Shell } from "../shell.ts";
import { type Line, readLine } from "../words.ts";
import type { SlashCommand } from "./command.ts";
import { allCommands, COMMANDS, findCommand } from "./table.ts";

/**
 * Runs the slash command of a name or an alias.
 *
 * @throws SvcError, for one that does not exist with the nearest that does
 */
export async function runSlash(name: string, rest: string, shell: Shell): Promise<void> {
  const word = name.toLowerCase() === "?" ? "help" : name.toLowerCase();
  const found = await findCommand(word);
  if (found !== undefined) {
    const line = readLine(rest);
    const asked = line.words.includes("--help") && !Object.hasOwn(TWINS, found.name);
    if (!asked) return await attended(found.command, line, shell);
    return await (await COMMANDS.help!()).command.run(readLine(found.name), shell);
  }
  if (await runPluginCommand(word, rest, shell)) return;
  const aliases = (await allCommands()).flatMap(([, command]) => command.aliases ?? []);
  const guess = nearest(word, [...Object.keys(COMMANDS), ...aliases]);
  throw usageError(
    "unknown_command",
    `There is no command /${name}.`,
    guess === undefined ? "See: /help" : `Did you mean /${guess}?`,
  );
}

/** What is typed while the command works waits for the next prompt, unless the command lends the terminal. */
async function attended(command: SlashCommand, line: Line, shell: Shell): Promise<void> {
  if (command.lends?.(line)) {
    shell.input.restore();
    return await command.run(line, shell);
  }
  const watch = shell.input.watch({ interrupt() {} });
  try {
    await command.run(line, shell);
  } finally {
    watch.stop();
  }
}

/** Those that the command line has too say themselves what `--help` shows. */
const TWINS = {
  asks: 1,
  config: 1,
  jobs: 1,
  memory: 1,
  connect: 1,
  model: 1,
  models: 1,
  permissions: 1,
  plugins: 1,
  provider: 1,
  roles: 1,
  skills: 1,
  teams: 1,
};

/** A command that a plugin has registered (specification 4.9); the core's own names come first. */
async function runPluginCommand(word: string, rest: string, shell: Shell): Promise<boolean> {
  const { EVERYTHING } = await import("../conversation.ts");
  const { commands } = await shell.workspace.load(EVERYTHING);
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
  if (typeof answer === "string" && answer !== "") {
    const { stripControl } = await import("../../platform/terminal.ts");
    shell.output.line(stripControl(answer));
  }
  return true;
}
