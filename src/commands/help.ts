import type { Definition } from "./command.ts";
import type { Io } from "./io.ts";
import { withSubcommand } from "./command.ts";
import type { NameKind } from "./names.ts";
import { descend, type Parser, readWords, type Term, termsOf, type Value } from "./options.ts";

/** Columns of a help page, and the fewest that it needs. */
const WIDTH = 80;
const NARROW = 40;

/** The help page of a command, or of the subcommand that `args` name. */
export function commandHelp(command: Definition, args: string[], io: Io): string {
  const width = Math.max(NARROW, Math.min(WIDTH, io.columns?.() ?? WIDTH));
  const colors = io.isTerminal("out") && io.environment.get("NO_COLOR") === undefined;
  const [name = "", first = ""] = args;
  const parser = descend(command.parser, [first])[0];
  const section = (title: string, entries: readonly (readonly [string, string])[]) => {
    const column = Math.floor(width / 3) + 4; // 30 at 80 columns
    const lines = entries.map(([head, description]) => {
      const start = `  ${head}`.padEnd(column - 2) + "  ";
      const filled = fill(start, description.split(" "), width, column);
      return colors ? filled.replace(head, `\x1b[1m${head}\x1b[0m`) : filled;
    });
    return lines.length === 0 ? "" : `\n${title}${lines.join("")}`;
  };
  const path = parser === command.parser ? [name] : [name, first];
  const bare = path.length === 1 ? descend(command.parser, [command.bare ?? ""])[0] : parser;
  const implied = bare === parser ? "" : section(
    `Without a subcommand, as ${command.bare}:\n`,
    termEntries(bare),
  );
  const examples = command.examples.map((example) =>
    `  ${example.replaceAll("svc ", io.program)}\n`
  ).join("");
  return fill(`Usage: ${io.program}${path.join(" ")}`, usage(parser), width, "Usage: ".length) +
    "\n" + fill("", parser.description.split(" "), width, 0) +
    section("", [
      ...parser.commands.map(({ name, description }) => [name, description] as const),
      ...termEntries(parser),
    ]) + implied + `\nExamples:\n${examples}`;
}

/** The terms in the order of a help page: options first. */
function ordered(parser: Parser<unknown>): Term<unknown>[] {
  const terms = termsOf(parser);
  const isOption = ({ names }: Term<unknown>) => names.length > 0;
  return [...terms.filter(isOption), ...terms.filter((term) => !isOption(term))];
}

function termEntries(parser: Parser<unknown>) {
  return ordered(parser).map((term) => [headOf(term, ", "), term.description] as const);
}

function headOf({ names, value }: Term<unknown>, separator: string): string {
  return [names.join(separator), value?.metavar ?? ""].filter((part) => part !== "").join(" ");
}

function usage(parser: Parser<unknown>): string[] {
  const terms = ordered(parser).map((term) => {
    const head = headOf(term, "/") + (term.many ? "..." : "");
    return term.absent === undefined ? head : `[${head}]`;
  });
  if (parser.commands.length === 0) return terms;
  return parser.fields === undefined
    ? ["SUBCOMMAND", "..."]
    : [...parser.commands.map(({ name }) => name), ...terms].flatMap((each, at) =>
      at === 0 ? [each] : ["|", each]
    );
}

/** Words after `start`, in lines of at most `width` columns; each further line begins with `indent` blanks. */
function fill(start: string, words: readonly string[], width: number, indent: number): string {
  const lines = [];
  let line = start;
  for (const word of words) {
    const longer = /(^|\s)$/.test(line) ? line + word : `${line} ${word}`;
    if (longer.length > width && line.trim() !== "") {
      lines.push(line);
      line = " ".repeat(indent) + word;
    } else line = longer;
  }
  return [...lines, line].map((each) => `${each.trimEnd()}\n`).join("");
}

/** What can complete a word. `before` stands in front of each name, as in `--role=`. */
export type Suggestion =
  | { readonly text: string; readonly description?: string }
  | { readonly names: NameKind; readonly before: string }
  | { readonly files: "file" | "directory" | "any" };

/** What can complete the last of `args`, the command's name first. */
export function completions(command: Definition, args: string[]): Suggestion[] {
  const words = args.slice(1, -1);
  const word = args.at(-1) ?? "";
  if (command.bare === undefined || words.some((each) => !each.startsWith("-"))) {
    return offered(command.parser, withSubcommand(command, args.slice(0, -1)).slice(1), word);
  }
  const named = word.startsWith("-") ? [] : offered(command.parser, [], word);
  const implied = word.startsWith("-") || (named.length === 0 && command.bareTakes !== undefined);
  return implied ? offered(command.parser, [command.bare, ...words], word) : named;
}

function offered(parser: Parser<unknown>, given: readonly string[], word: string): Suggestion[] {
  const [found, words] = descend(parser, given);
  const commands = words.length > 0 ? [] : found.commands
    .filter(({ name }) => name.startsWith(word))
    .map(({ name, description }) => ({ text: name, description }));
  let read: ReturnType<typeof readWords>;
  try {
    read = readWords(found, words);
  } catch {
    return []; // the line is wrong before this word
  }
  if (read.open !== undefined) return valuesOf(read.open.term.value!, word);
  const terms = termsOf(found).filter((term) => term.many || !read.given.has(term));
  if (!word.startsWith("-") || read.ended) {
    const [next] = terms.filter(({ names }) => names.length === 0);
    return next === undefined ? commands : [...commands, ...valuesOf(next.value!, word)];
  }
  const at = word.indexOf("=") + 1;
  return terms.flatMap(({ names, value, description }) =>
    at === 0
      ? names.filter((name) => name.startsWith(word)).map((text) => ({ text, description }))
      : value !== undefined && names.includes(word.slice(0, at - 1))
      ? valuesOf(value, word, at)
      : []
  );
}

/** What can complete a value, which begins at an index of the word. */
function valuesOf({ choices = [], names, files }: Value<unknown>, word: string, at = 0) {
  const before = word.slice(0, at);
  const found: Suggestion[] = choices.map((each) => before + each)
    .filter((text) => text.startsWith(word)).map((text) => ({ text }));
  if (names !== undefined) found.push({ names, before });
  if (files !== undefined && at === 0) found.push({ files });
  return found;
}
