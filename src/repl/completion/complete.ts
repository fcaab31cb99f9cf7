import type { Completion } from "../input/completion.ts";
import { allCommands } from "../commands/table.ts";
import { oneLine } from "../../platform/terminal.ts";
import { EVERYTHING } from "../conversation.ts";
import type { Source } from "../commands/command.ts";
import type { Shell } from "../shell.ts";
import { files } from "./files.ts";
import { names } from "./names.ts";

/** Candidates at most; more would not be read. */
const MOST = 200;

/** What may stand at the cursor: commands and their words behind a slash, files behind `@` and in paths. */
export async function complete(line: string, cursor: number, shell: Shell): Promise<Completion> {
  const before = line.slice(0, cursor);
  const from = before.search(/\S*$/);
  const word = before.slice(from);
  if (/^\/[\w?-]*$/.test(before)) return await commands(word, shell);
  const [, name] = /^\/([\w?-]+)\s/.exec(before) ?? [];
  if (name !== undefined) {
    const sources = await sourcesOf(name, before.slice(0, from), word);
    const found = [];
    for (const source of sources) {
      if (source === "files") return files(word, from, shell);
      found.push(...typeof source === "string" ? await names(source, shell) : source);
    }
    return { from, candidates: starting(found, word) };
  }
  if (word.startsWith("@")) return files(word.slice(1), from + 1, shell);
  if (word.includes("/")) return files(word, from, shell);
  return { from, candidates: [] };
}

async function commands(word: string, { workspace }: Shell): Promise<Completion> {
  const own = (await allCommands()).flatMap(([name, { summary, aliases = [] }]) =>
    [name, ...word.length > 1 ? aliases : []].map((each) => ({
      text: `/${each}`,
      description: summary,
    }))
  );
  const plugins = (await workspace.load(EVERYTHING)).commands.map(({ definition }) => ({
    text: `/${definition.name}`,
    description: oneLine(definition.description),
  }));
  const candidates = [...own, ...plugins];
  return { from: 0, candidates: candidates.filter(({ text }) => text.startsWith(word)) };
}

/** Where the words come from that may follow those before the cursor. */
async function sourcesOf(
  name: string,
  before: string,
  word: string,
): Promise<(Source | readonly string[])[]> {
  const { findCommand } = await import("../commands/table.ts");
  const found = (await findCommand(name))?.command;
  if (found === undefined) return [];
  const { complete = {}, flags = {} } = found;
  const words = before.trim().split(/\s+/).slice(1);
  const value = flags[words.at(-1) ?? ""];
  if (value !== undefined && value !== true) return [value];
  if (word.startsWith("-")) return [Object.keys(flags)];
  const plain = words.filter((each, at) =>
    !each.startsWith("--") && !hasValue(flags[words[at - 1] ?? ""])
  );
  const source = plain.length < 2 ? complete[plain.join(" ")] : undefined;
  return source === undefined ? [] : [source];
}

function hasValue(flag: true | readonly string[] | Source | undefined): boolean {
  return flag !== undefined && flag !== true;
}

function starting(found: readonly string[], word: string): { text: string }[] {
  const wanted = word.toLowerCase();
  return found.filter((text) => text.toLowerCase().startsWith(wanted)).slice(0, MOST)
    .map((text) => ({ text }));
}
