import { formatDocPage } from "@optique/core/doc";
import { formatMessage, type Message, text as textTerm } from "@optique/core/message";
import { optional, withDefault } from "@optique/core/modifiers";
import type { NonEmptyString } from "@optique/core/nonempty";
import { getDocPage, parse, type Parser, suggest, type Suggestion } from "@optique/core/parser";
import { option } from "@optique/core/primitives";
import { formatUsage, type Usage } from "@optique/core/usage";
import { choice, string, type ValueParser } from "@optique/core/valueparser";
import { nearest, SvcError, usageError } from "../platform/error.ts";
import type { Io } from "./io.ts";
import { pathOf } from "./names.ts";

/** Columns of a help page, and the fewest that it needs. */
const WIDTH = 80;
const NARROW = 40;

/**
 * One command of the program: its arguments, and what it does with them. Parsing, help and completion of
 * every front end derive from it.
 */
export interface Command<T, Context = Io, Result = number> {
  /** Begins with `command("<name>", ...)` of Optique. */
  readonly parser: Parser<"sync", T, unknown>;
  /** Complete command lines, shown in its help. */
  readonly examples: readonly string[];
  /** The subcommand that runs when none is named. */
  readonly bare?: string;
  /** Whether a first word that is not a subcommand is an argument of `bare`. */
  bareTakes?(word: string): boolean;
  /**
   * By subcommand (`""` for none): how many arguments stand before a last one that is a text. In a terminal
   * session the text needs no quotes.
   */
  readonly textAfter?: Readonly<Record<string, number>>;
  /** Whether the command hands the terminal to another program, such as an editor. */
  lends?(values: T): boolean;
  /** @returns the exit code. Throws SvcError for anything a user should read. */
  run(values: T, context: Context): Promise<Result>;
}

/** The part of a command that its arguments concern, whichever front end runs it. */
// deno-lint-ignore no-explicit-any
export type Definition<T = any> = Omit<Command<T>, "run">;

/** Keeps the parsed values' type between `parser` and `run`. */
export function defineCommand<T>(command: Command<T>): Command<T> {
  return command;
}

/** Parses `args` (the command's name first) and runs the command, or prints its help. */
export async function runCommand<T>(command: Command<T>, args: string[], io: Io): Promise<number> {
  let parsed;
  try {
    parsed = parseCommand(command, args, io);
  } catch (error) {
    throw await withSetting(error, io);
  }
  return parsed === undefined ? 0 : await command.run(parsed.values, io);
}

/**
 * Parses `args`, the command's name first.
 *
 * @returns undefined when its help was requested and printed
 * @throws SvcError `usage` (exit 2)
 */
export function parseCommand<T>(
  command: Definition<T>,
  args: string[],
  io: Io,
): { values: T } | undefined {
  const end = args.indexOf("--");
  const flags = end < 0 ? args : args.slice(0, end);
  if (flags.includes("--help") || flags.includes("-h")) {
    io.out(commandHelp(command, args, io));
    return undefined;
  }
  const given = withSubcommand(command, args);
  const parsed = parse(command.parser, given);
  if (parsed.success) return { values: parsed.value };
  const path = given.slice(0, isSubcommand(command, given[1]) ? 2 : 1);
  const message = mistake(parsed.error, command.parser, path);
  const named = args.includes(path[1] ?? "") ? path : path.slice(0, 1);
  throw usageError("usage", message, `Try: ${io.program}${named.join(" ")} --help`);
}

/** The words with the subcommand first: the one that follows options, or the one that is implied. */
function withSubcommand(command: Definition, args: string[]): string[] {
  const [name = "", ...words] = args;
  if (command.bare === undefined) return args;
  const at = words.findIndex((word) => !word.startsWith("-") || word === "--");
  const first = words[at] ?? "--";
  if (isSubcommand(command, first)) return [name, first, ...words.toSpliced(at, 1)];
  return at !== 0 || first === "--" || command.bareTakes?.(first)
    ? [name, command.bare, ...words]
    : args;
}

/** What can complete the last of `args`, the command's name first. */
export function completions(command: Definition, args: string[]): Suggestion[] {
  const [name = "", ...words] = args;
  const word = words.pop() ?? "";
  const offered = (given: string[]) => [
    ...suggest(command.parser, [name, ...given, word] as [string, ...string[]]),
  ];
  const unnamed = command.bare !== undefined && words.every((each) => each.startsWith("-"));
  if (!unnamed) return offered(withSubcommand(command, [name, ...words]).slice(1));
  const named = word.startsWith("-") ? [] : offered([]);
  const implied = word.startsWith("-") || (named.length === 0 && command.bareTakes !== undefined);
  return implied ? offered([command.bare!, ...words]) : named;
}

/** The subcommands of a command, in the order of its help. */
export function subcommands({ parser }: Definition): string[] {
  const named = (usage: Usage): string[] =>
    usage.flatMap((term) => {
      if (term.type !== "exclusive") return [];
      return term.terms.flatMap(([first]) =>
        first?.type === "command" ? [first.name] : named(first === undefined ? [] : [first])
      );
    });
  return named(parser.usage);
}

/** The options of a command or of one of its subcommands, and whether each takes a value. */
export function optionsOf({ parser }: Definition, path: string[]): Map<string, boolean> {
  const found = new Map<string, boolean>();
  const collect = (usage: Usage) => {
    for (const term of usage) {
      if (term.type === "option") {
        for (const name of term.names) found.set(name, term.metavar !== undefined);
      } else if (term.type === "exclusive") term.terms.forEach(collect);
      else if ("terms" in term) collect(term.terms);
    }
  };
  collect(getDocPage(parser, path)?.usage ?? []);
  return found;
}

/** The help page of a command, or of the subcommand that `args` name. */
export function commandHelp(command: Definition, args: string[], io: Io): string {
  const words = [];
  for (const arg of args) {
    if (arg.startsWith("-")) break;
    words.push(arg);
  }
  const page = getDocPage(command.parser, words) ?? getDocPage(command.parser, [args[0]!]);
  const bare = command.bare === undefined || words.length > 1
    ? undefined
    : getDocPage(command.parser, [words[0]!, command.bare]);
  const sections = bare?.sections.map((section) => ({
    ...section,
    title: `Without a subcommand, as ${command.bare}`,
  }));
  const width = Math.max(NARROW, Math.min(WIDTH, io.columns?.() ?? WIDTH));
  const colors = io.isTerminal("out") && io.environment.get("NO_COLOR") === undefined;
  const body = page
    ? `${usageLines(io.program, page.usage ?? [], width)}` +
      formatDocPage(io.program.trim(), {
        ...page,
        usage: undefined,
        sections: [...page.sections, ...sections ?? []],
      }, {
        colors,
        maxWidth: width,
        termWidth: Math.floor(width / 3), // 26, the default, at 80 columns
      })
    : "";
  const examples = command.examples.map((example) =>
    `  ${example.replaceAll("svc ", io.program)}\n`
  ).join("");
  return `${body.replace(/[ \t]+$/gm, "").trimEnd()}\n\nExamples:\n${examples}`;
}

// The formatter of the library breaks lines within an option's brackets.
function usageLines(program: string, usage: Usage, width: number): string {
  const indent = " ".repeat("Usage: ".length);
  const lines: string[] = [];
  let line = "Usage:";
  const usageText = formatUsage("svc", usage.map(shortened)).replace("svc ", program);
  for (const term of usageText.match(/(\[[^\]]*\]|\S)+/g) ?? []) {
    if (line.length + 1 + term.length > width && line.trim() !== "") {
      lines.push(line);
      line = indent.slice(1);
    }
    line += ` ${term}`;
  }
  return [...lines, line].join("\n") + "\n";
}

/** A choice of subcommands by its name alone: they are listed below it, and each has its own usage. */
function shortened(term: Usage[number]): Usage[number] {
  return isChoice(term) ? { type: "argument", metavar: "SUBCOMMAND ..." } : term;
}

function isChoice(term: Usage[number]): boolean {
  return term.type === "exclusive" &&
    term.terms.every(([first]) => first && (first.type === "command" || isChoice(first)));
}

function isSubcommand(command: Definition, word = ""): boolean {
  return subcommands(command).includes(word);
}

/** A plain sentence as Optique's message type, for descriptions. */
export function text(sentence: string): Message {
  return [textTerm(sentence)];
}

/** An argument that can be a negative number, which would be read as an option. */
export function takingNegative<T, S>(argument: Parser<"sync", T, S>): Parser<"sync", T, S> {
  return {
    ...argument,
    parse(context) {
      if (!/^-\d/.test(context.buffer[0] ?? "")) return argument.parse(context);
      const parsed = argument.parse({ ...context, optionsTerminated: true });
      const { optionsTerminated } = context;
      return parsed.success ? { ...parsed, next: { ...parsed.next, optionsTerminated } } : parsed;
    },
  };
}

/** An optional option that takes a value: a text with this metavar, or what a parser accepts. */
export function textOption(
  flag: `--${string}`,
  value: NonEmptyString | ValueParser<"sync", string>,
  description: string,
): Parser<"sync", string | undefined, unknown> {
  const parser = typeof value === "string" ? string({ metavar: value }) : value;
  return optional(option(flag, parser, { description: text(description) }));
}

/** The `--path` option of every command that works in a worktree; empty: the current directory. */
export const pathOption = withDefault(
  option("--path", pathOf("DIR"), {
    description: text("The worktree; default: the current directory."),
  }),
  "",
);

/** `--trust` of commands that run the worktree's agent. */
export const trustOption = option("--trust", {
  description: text("Trust everything that the worktree's .svc opens, for this once."),
});

/** The `--output` option of every command that prints text for people or JSON for programs. */
export const outputOption = withDefault(
  option("--output", choice(["text", "json"]), { description: text("text (default) or json.") }),
  "text",
);

/**
 * The error of a command line as one sentence, or two where a word is nearly an option.
 *
 * @param path the command's name, and the subcommand's where one is named
 */
export function mistake(error: Message, parser: Definition["parser"], path: string[]): string {
  const message = formatMessage(error, { colors: false, quotes: true })
    .replace(/\s*\n\s*/g, " ").trim()
    .replace(/^Expected an? `([^`]+)`, but too few arguments\.$/, "$1 is missing.");
  const [, wrong] = UNEXPECTED.exec(message) ?? [];
  if (wrong === undefined) return message;
  // The library suggests options of the command itself only, and compares the value too.
  const plain = message.replace(/ Did you mean .*$/, "");
  const options = [...optionsOf({ parser, examples: [] }, path).keys()];
  const guess = nearestOption(wrong, options);
  if (guess !== undefined) return `${plain} Did you mean \`${guess}\`?`;
  const [name = "", subcommand] = path;
  const has = subcommands({ parser, examples: [] }).find((each) =>
    subcommand !== undefined && optionsOf({ parser, examples: [] }, [name, each]).has(wrong)
  );
  return has === undefined ? plain : `${plain} \`${name} ${has}\` has it.`;
}

const UNEXPECTED = /^Unexpected option or \w+: ["`](--?[^="`]+)[^"`]*["`]\./;

/** Options by the names that other programs have for them. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  address: "--host",
  bind: "--host",
  continue: "--session-id",
  cwd: "--path",
  dir: "--path",
  directory: "--path",
  every: "--interval",
  format: "--output",
  json: "--output",
  resume: "--session-id",
  schedule: "--cron",
  turns: "--max-rounds",
  "max-turns": "--max-rounds",
};

/** The option that is meant: by its name elsewhere, one with the same words and more, or nearly the same letters. */
function nearestOption(wrong: string, options: string[]): string | undefined {
  const name = wrong.replace(/^-+/, "");
  const known = OTHER_NAMES[name];
  if (known !== undefined && options.includes(known)) return known;
  if (!wrong.startsWith("--")) return undefined;
  const words = name.split("-");
  const longer = options.filter((option) => {
    const its = option.slice(2).split("-");
    return words.every((word) => its.includes(word));
  });
  return longer.find((option) => option.startsWith(wrong)) ?? longer[0] ??
    nearest(wrong, options.filter((option) => option[2] === wrong[2]));
}

/** Adds to the error of an unknown option that a setting has its name. */
async function withSetting(error: unknown, io: Io): Promise<unknown> {
  const [, wrong] = error instanceof SvcError ? UNEXPECTED.exec(error.message) ?? [] : [];
  if (wrong === undefined) return error;
  const { CONFIG_KEYS } = await import("../config/keys.ts");
  const key = wrong.replace(/^-+/, "").replaceAll("-", "_");
  if (!(CONFIG_KEYS as readonly string[]).includes(key)) return error;
  const { code, message } = error as SvcError;
  return usageError(code, message, `\`${key}\` is a setting: ${io.program}config set ${key} VALUE`);
}
