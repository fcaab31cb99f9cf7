import { usageError } from "../../platform/error.ts";
import { oneLine } from "../../platform/terminal.ts";
import { fit, wrapped } from "../render/text.ts";
import type { Shell } from "../shell.ts";
import { slashCommand } from "./command.ts";
import { allCommands, findCommand } from "./table.ts";

export const command = slashCommand({
  summary: "list the commands, or show one",
  usage: ["help", "help <command>", "help tool"],
  aliases: ["h"],
  complete: { "": "commands" },
  async run({ words: [name] }, shell) {
    if (name !== undefined) return await one(name.replace(/^\//, ""), shell);
    await overview(shell);
  },
});

/** Cells for a command and its subcommands, and those below which a summary has a line of its own. */
const NAMES = 32;
const NARROW = 60;

const KEYS = 'Tab completes, Ctrl-R searches, ↑ recalls, """ begins and ends several lines, ' +
  "Ctrl-C cancels a turn, Ctrl-D leaves. /help <command> shows its forms.";

/** All commands with their subcommands, a line each where there is room, and what `/tool` can run. */
async function overview({ workspace, output, style }: Shell): Promise<void> {
  const { EVERYTHING } = await import("../conversation.ts");
  const columns = output.columns();
  const show = (name: string, subcommands: readonly string[], summary: string) => {
    const left = alternatives(subcommands, NAMES - name.length - 3);
    const head = `${style.bold(`/${name}`)} ${style.dim(left)}`;
    const blank = " ".repeat(Math.max(1, NAMES - name.length - left.length - 2));
    const said = columns < NARROW ? `\n  ${summary}` : `${blank}${fit(summary, columns - NAMES)}`;
    output.line(head + said);
  };
  for (const [name, { summary, aliases = [], complete = {} }] of await allCommands()) {
    const first = complete[""] ?? [];
    const also = aliases.length === 0 ? "" : ` (${aliases.map((a) => `/${a}`).join(", ")})`;
    show(name, typeof first === "string" ? [] : first, summary + also);
  }
  for (const { definition } of (await workspace.load(EVERYTHING)).commands) {
    show(oneLine(definition.name), [], oneLine(definition.description));
  }
  const tools = workspace.tools.list().map(({ name }) => oneLine(name)).join(" ");
  output.line("");
  for (const text of [`/tool runs: ${tools}`, KEYS]) {
    output.print(style.dim(wrapped(text, columns)) + "\n");
  }
}

/** As many of the words as fit, with a bar between. */
function alternatives(words: readonly string[], room: number): string {
  const kept = [...words];
  const text = () => kept.join("|") + (kept.length < words.length ? "|…" : "");
  while (kept.length > 0 && text().length > room) kept.pop();
  return kept.length === 0 ? "" : text();
}

async function one(name: string, shell: Shell): Promise<void> {
  const { output, style } = shell;
  const found = await findCommand(name);
  if (found === undefined) {
    const { EVERYTHING } = await import("../conversation.ts");
    const { commands } = await shell.workspace.load(EVERYTHING);
    const theirs = commands.find(({ definition }) => definition.name === name)?.definition;
    if (theirs !== undefined) {
      output.line(oneLine(`/${theirs.usage ?? theirs.name}: ${theirs.description}`));
      return;
    }
    throw usageError("unknown_command", `There is no command /${name}.`, "See: /help");
  }
  const { usage, summary, aliases = [], flags = {} } = found.command;
  output.line(`${style.bold(`/${found.name}`)}: ${summary}`);
  for (const form of usage) output.line(`  /${form}`);
  if (aliases.length > 0) {
    output.line(style.dim(`  also: ${aliases.map((a) => `/${a}`).join(", ")}`));
  }
  const options = Object.keys(flags);
  if (options.length > 0) output.line(style.dim(`  options: ${options.join(" ")}`));
  if (found.name === "tool") await tools(shell);
}

/** What `/tool` can run. */
async function tools({ workspace, output, style }: Shell): Promise<void> {
  const { EVERYTHING } = await import("../conversation.ts");
  await workspace.load(EVERYTHING);
  for (const { name, description, short } of workspace.tools.list()) {
    output.line(`  ${style.bold(name.padEnd(14))}${oneLine(short ?? firstSentence(description))}`);
  }
}

function firstSentence(text: string): string {
  return text.split(/(?<=\.)\s/, 1)[0]!;
}
