import { subcommands } from "../../commands/command.ts";
import { commandHelp } from "../../commands/help.ts";
import { nameOf } from "../../commands/names.ts";
import { usageError } from "../../platform/error.ts";
import { oneLine } from "../../platform/terminal.ts";
import { SESSION_NEEDS } from "../../engine/workspace.ts";
import { wrapped } from "../../platform/text.ts";
import type { Shell } from "../shell.ts";
import { aliasesOf, COMMANDS, findCommand, type SlashCommand } from "./table.ts";
import { argument, command, multiple } from "../../commands/options.ts";

/** Cells for a command and its subcommands, and those below which a summary has a line of its own. */
const NAMES = 32;
const NARROW = 60;

const KEYS = 'Tab completes, Ctrl-R searches, ↑ recalls, """ begins and ends several lines, ' +
  "Esc cancels a turn, Ctrl-D leaves. /help <command> shows its arguments.";

/** `/help` */
export const help: SlashCommand<{ words: readonly string[] }> = {
  parser: command("help", {
    words: multiple(
      argument(nameOf("commands", "COMMAND"), "A command, and one of its subcommands."),
    ),
  }, "List the commands and the tools of /tool, or show one command."),
  examples: ["/help", "/help jobs", "/help jobs add", "/help tool"],
  async run({ words: [name, ...others] }, shell) {
    if (name !== undefined) return await one(name.replace(/^\//, ""), others, shell);
    await overview(shell);
  },
};

/** All commands with their subcommands, a line each where there is room, and what `/tool` can run. */
async function overview({ workspace, output, style }: Shell): Promise<void> {
  const columns = output.columns();
  const show = (name: string, names: readonly string[], summary: string) => {
    const left = alternatives(names, NAMES - name.length - 3);
    const head = `${style.bold(`/${name}`)} ${style.dim(left)}`;
    const blank = " ".repeat(Math.max(1, NAMES - name.length - left.length - 2));
    const start = columns < NARROW ? 2 : NAMES;
    const lines = wrapped(summary, columns - start).replaceAll("\n", `\n${" ".repeat(start)}`);
    output.line(head + (columns < NARROW ? `\n  ` : blank) + lines);
  };
  for (const [name, { summary, load }] of Object.entries(COMMANDS)) {
    const aliases = aliasesOf(name).map((alias) => `/${alias}`).join(", ");
    const also = aliases === "" ? "" : ` (${aliases})`;
    show(name, subcommands(await load()), summary + also);
  }
  for (const { definition } of (await workspace.load(SESSION_NEEDS)).commands) {
    show(oneLine(definition.name), [], oneLine(definition.description));
  }
  const tools = workspace.tools.list().map(({ name }) => oneLine(name)).join(" ");
  output.line("");
  for (const line of [`/tool runs: ${tools}`, KEYS]) {
    output.print(style.dim(wrapped(line, columns)) + "\n");
  }
}

/** As many of the words as fit, with a bar between. */
function alternatives(words: readonly string[], room: number): string {
  const kept = [...words];
  const joined = () => kept.join("|") + (kept.length < words.length ? "|…" : "");
  while (kept.length > 0 && joined().length > room) kept.pop();
  return kept.length === 0 ? "" : joined();
}

/** The help page of one command; of `tool` also the tools. */
async function one(word: string, others: string[], shell: Shell): Promise<void> {
  const { workspace, output, style, io } = shell;
  const found = findCommand(word);
  if (found !== undefined) {
    io.out(commandHelp(await found.entry.load(), [found.name, ...others], io));
    const aliases = aliasesOf(found.name);
    if (aliases.length > 0) output.line(`Aliases: ${aliases.map((each) => `/${each}`).join(", ")}`);
    if (found.name === "tool") await listTools(shell);
    return;
  }
  const { commands } = await workspace.load(SESSION_NEEDS);
  const theirs = commands.find(({ definition }) => definition.name === word)?.definition;
  if (theirs === undefined) {
    throw usageError("unknown_command", `There is no command /${word}.`, "See: /help");
  }
  output.line(
    `${style.bold(oneLine(`/${theirs.usage ?? theirs.name}`))}: ${oneLine(theirs.description)}`,
  );
}

/** The tools that `/tool` can run, a line each. */
export async function listTools({ workspace, output, style }: Shell): Promise<void> {
  await workspace.load(SESSION_NEEDS);
  const tools = workspace.tools.list();
  const widest = Math.max(...tools.map(({ name }) => name.length)) + 2;
  const columns = output.columns();
  const start = columns < NARROW ? 4 : widest + 2;
  for (const { name, description, short } of tools) {
    const text = wrapped(oneLine(short ?? firstSentence(description)), columns - start);
    const lines = text.replaceAll("\n", `\n${" ".repeat(start)}`);
    output.line(
      `  ${style.bold(name.padEnd(columns < NARROW ? 0 : widest))}${
        columns < NARROW ? "\n    " : ""
      }${lines}`,
    );
  }
}

function firstSentence(description: string): string {
  return description.split(/(?<=\.)\s/, 1)[0]!;
}
