import { optionsOf, parseCommand, subcommands } from "../../commands/command.ts";
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

/** Whether a command appends to the log by itself. */
function isLogged(name: string, values: { action?: string }): boolean {
  return ["compact", "redo", "tool", "undo"].includes(name) ||
    (name === "teams" && values.action === "run");
}

/** Logs a command as it was typed (specification 2.2). One that failed may have a secret in a wrong place. */
function log(typed: string, { conversation, workspace }: Shell): void {
  conversation.log(workspace.mask(typed.trim()));
}

/**
 * The arguments of a line, the command's name first. A text that is the last argument is taken as it was
 * typed; options may stand before it and at the end of the line.
 */
export function argumentsOf(command: SlashCommand, name: string, line: Line): string[] {
  const { words } = line;
  const first = words.findIndex((word) => !word.startsWith("-"));
  const named = subcommands(command).includes(words[first] ?? "");
  const before = command.textAfter?.[named ? words[first]! : ""];
  if (before === undefined || words.includes("--")) return [name, ...words];
  const options = optionsOf(command, named ? [name, words[first]!] : [name]);
  /** How many words the option at an index takes; 0 where there is none. */
  const taken = (at: number) => {
    const [option = "", value] = /^(--?[\w-]+)(=.*)?$/s.exec(words[at]!)?.slice(1) ?? [];
    if (option === "--help" || option === "-h") return 1;
    const valued = options.get(option);
    return valued === undefined ? 0 : valued && value === undefined ? 2 : 1;
  };
  let start = named ? first + 1 : 0;
  for (let passed = 0; start < words.length; start++) {
    const size = taken(start);
    if (size > 0) start += size - 1;
    else if (passed++ === before) break;
  }
  if (start >= words.length) return [name, ...words];
  let end = words.length;
  while (end > start + 1) {
    if (taken(end - 1) === 1) end -= 1;
    else if (end > start + 2 && taken(end - 2) === 2) end -= 2;
    else break;
  }
  return [name, ...words.slice(0, start), ...words.slice(end), "--", line.rest(start, end)];
}

/** The text that follows the name of a slash command. */
export interface Line {
  /** The words, without their quotes. */
  readonly words: readonly string[];
  /**
   * The text from one word up to another (default: the end) as it was typed; of a single quoted word, the
   * text between the quotes.
   */
  rest(from: number, until?: number): string;
}

interface Word {
  text: string;
  start: number;
  end: number;
}

/** Splits a line at blanks; '…' and "…" hold blanks together, and a backslash keeps a quote or itself. */
export function readLine(text: string): Line {
  const found = wordsOf(text);
  return {
    words: found.map((word) => word.text),
    rest(from, until = found.length) {
      const first = found[from];
      if (first === undefined) return "";
      const raw = text.slice(first.start, found[until]?.start).trimEnd();
      return from === until - 1 && /^["'].*["']$/s.test(raw) ? first.text : raw;
    },
  };
}

function wordsOf(text: string): Word[] {
  const words: Word[] = [];
  let word: Word | undefined;
  let quote = "";
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (quote === "" && /\s/.test(character)) {
      word = undefined;
      continue;
    }
    if (word === undefined) words.push(word = { text: "", start: at, end: at });
    word.end = at + 1;
    const next = text[at + 1];
    if (character === "\\" && quote !== "'" && (next === '"' || next === "'" || next === "\\")) {
      word.text += next;
      word.end = ++at + 1;
    } else if (character === quote) quote = "";
    else if (quote === "" && (character === '"' || character === "'")) quote = character;
    else word.text += character;
  }
  return words;
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
  if (typeof answer === "string" && answer !== "") shell.output.line(stripControl(answer));
  log(`/${word} ${rest}`, shell);
  return true;
}
