import { usageError } from "../../platform/error.ts";
import { oneLine } from "../../platform/terminal.ts";
import type { Shell } from "../shell.ts";
import { slashCommand } from "./command.ts";
import { allCommands, findCommand } from "./table.ts";

export const command = slashCommand({
  summary: "list the commands, or show one with its forms and options",
  usage: ["help", "help <command>", "help tool"],
  aliases: ["h"],
  complete: { "": "commands" },
  async run({ words: [name] }, shell) {
    if (name !== undefined) return await one(name.replace(/^\//, ""), shell);
    const { output, style } = shell;
    for (const [name, { summary, aliases = [] }] of await allCommands()) {
      const also = aliases.length === 0 ? "" : ` (also ${aliases.map((a) => `/${a}`).join(", ")})`;
      output.line(`${style.bold(`/${name}`.padEnd(14))}${summary}${style.dim(also)}`);
    }
    const { EVERYTHING } = await import("../conversation.ts");
    for (const { definition } of (await shell.workspace.load(EVERYTHING)).commands) {
      const said = `${`/${definition.name}`.padEnd(14)}${definition.description}`;
      output.line(oneLine(said));
    }
    output.line("");
    output.line(style.dim(KEYS));
  },
});

const KEYS = 'Tab completes, Ctrl-R searches, ↑ recalls, """ begins and ends several lines, ' +
  "Ctrl-C cancels a turn, Ctrl-D leaves. /help <command> shows its forms.";

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
