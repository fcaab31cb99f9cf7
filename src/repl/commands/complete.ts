import { join, resolve } from "node:path";
import { completions } from "../../commands/help.ts";
import { lookUp, type NameKind, namesOf } from "../../commands/names.ts";
import { entriesOf } from "../../platform/files.ts";
import { oneLine } from "../../platform/terminal.ts";
import { SESSION_NEEDS } from "../../engine/workspace.ts";
import { STEPS } from "../focus.ts";
import type { Completion } from "../input/completion.ts";
import type { Shell } from "../shell.ts";
import { readLine } from "../../commands/slash_line.ts";
import { aliasesOf, COMMANDS, findCommand } from "./table.ts";

/** Files that are offered at most. */
const MOST = 200;

/** What can complete the word at the cursor: commands and their arguments, files after `@` and in paths. */
export async function complete(line: string, cursor: number, shell: Shell): Promise<Completion> {
  const before = line.slice(0, cursor);
  let from = before.search(/\S*$/);
  let word = before.slice(from);
  if (/^\/[\w?-]*$/.test(before)) return await commandNames(word, shell);
  const [, name] = /^\/([\w?-]+)\s/.exec(before) ?? [];
  if (name !== undefined) {
    const found = findCommand(name);
    if (found === undefined) return { from, candidates: [] };
    const words = [...readLine(before.slice(name.length + 1, from)).words];
    const [, option] = /^(--[\w-]+)=/.exec(word) ?? [];
    if (option !== undefined) { // completed like an option whose value is the next word
      words.push(option);
      from += option.length + 1;
      word = word.slice(option.length + 1);
    }
    const command = await found.entry.load();
    const suggestions = completions(command, [found.name, ...words, word]);
    const offered = await lookUp(suggestions, word, (kind) => names(kind, shell));
    const path = !word.startsWith("-") && offered.some((each) => "files" in each);
    if (path) return files(word, from, shell);
    return { from, candidates: offered.flatMap((each) => "text" in each ? [each] : []) };
  }
  if (word.startsWith("@")) return files(word.slice(1), from + 1, shell);
  if (word.includes("/")) return files(word, from, shell);
  return { from, candidates: [] };
}

async function commandNames(word: string, { workspace }: Shell): Promise<Completion> {
  const own = Object.entries(COMMANDS).flatMap(([name, { summary }]) =>
    [name, ...word.length > 1 ? aliasesOf(name) : []].map((each) => ({
      text: `/${each}`,
      description: summary,
    }))
  );
  const plugins = (await workspace.load(SESSION_NEEDS)).commands.map(({ definition }) => ({
    text: `/${definition.name}`,
    description: oneLine(definition.description),
  }));
  const candidates = [...own, ...plugins];
  return { from: 0, candidates: candidates.filter(({ text }) => text.startsWith(word)) };
}

/** The names of a kind in this session. */
async function names(kind: NameKind, shell: Shell): Promise<readonly string[]> {
  const { workspace, conversation } = shell;
  const runs = conversation.runs.list();
  const handles = runs.flatMap(({ id, session_id }) => [
    `#${id}`,
    ...session_id === "" ? [] : [`#${session_id}`],
  ]);
  switch (kind) {
    case "commands":
      return Object.keys(COMMANDS);
    case "runs":
      return [...handles, ...STEPS];
    case "targets":
      return [
        ...handles,
        ...new Set(runs.map(({ role }) => role).filter((role) => role !== "")),
        ...await namesOf("sessions", workspace),
      ];
    default:
      return await namesOf(kind, workspace);
  }
}

/** The files and folders that begin with a path; relative ones start at the worktree. */
function files(typed: string, at: number, { workspace }: Shell): Completion {
  const slash = typed.lastIndexOf("/") + 1;
  const [folder, start] = [typed.slice(0, slash), typed.slice(slash)];
  const { paths: { worktree }, environment: { home } } = workspace;
  const path = folder.startsWith("~/") ? join(home, folder.slice(2)) : resolve(worktree, folder);
  return { from: at + slash, candidates: entries(path, start).map((text) => ({ text })) };
}

function entries(path: string, start: string): string[] {
  const found = entriesOf(path).filter(({ name }) => {
    const hidden = name.startsWith(".") && !start.startsWith(".");
    // Names with blanks or control characters would need quoting.
    return !hidden && name.startsWith(start) && !/[\s\p{Cc}]/u.test(name);
  });
  return found.map(({ name, isDirectory }) => isDirectory ? `${name}/` : name).sort().slice(
    0,
    MOST,
  );
}
