import { usageError } from "../platform/error.ts";
import type { Io } from "./io.ts";
import { pathOf } from "./names.ts";
import {
  choice,
  descend,
  option,
  optional,
  type Parser,
  parseWords,
  string,
  type Term,
  termsOf,
  UnexpectedWord,
  type Value,
  withDefault,
} from "./options.ts";

/**
 * One command of the program: its arguments, and what it does with them. Parsing, help and completion of
 * every front end derive from it.
 */
export interface Command<T, Context = Io, Result = number> {
  readonly parser: Parser<T>;
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
  const parsed = await parseCommand(command, args, io);
  return parsed === undefined ? 0 : await command.run(parsed.values, io);
}

/**
 * Parses `args`, the command's name first.
 *
 * @param hint that of its errors; default: where its help is
 * @returns undefined when its help was requested and printed
 * @throws SvcError `usage` (exit 2)
 */
export async function parseCommand<T>(
  command: Definition<T>,
  args: string[],
  io: Io,
  hint?: string,
): Promise<{ values: T } | undefined> {
  const end = args.indexOf("--");
  const flags = end < 0 ? args : args.slice(0, end);
  if (flags.includes("--help") || flags.includes("-h")) {
    io.out((await import("./help.ts")).commandHelp(command, args, io));
    return undefined;
  }
  const given = withSubcommand(command, args);
  try {
    return { values: parseWords(command.parser, given.slice(1)) };
  } catch (error) {
    const path = given.slice(0, isSubcommand(command, given[1]) ? 2 : 1);
    const named = args.includes(path[1] ?? "") ? path : path.slice(0, 1);
    const help = hint ?? `Try: ${io.program}${named.join(" ")} --help`;
    const { message } = error as Error;
    if (!(error instanceof UnexpectedWord)) throw usageError("usage", message, help);
    const { settingHint, suggestion } = await import("./mistakes.ts");
    const setting = await settingHint(error.word, io.program);
    throw usageError("usage", message + suggestion(command, path, error), setting ?? help);
  }
}

/** The words with the subcommand first: the one that follows options, or the one that is implied. */
export function withSubcommand(command: Definition, args: string[]): string[] {
  const [name = "", ...words] = args;
  if (command.bare === undefined) return args;
  const at = words.findIndex((word) => !word.startsWith("-") || word === "--");
  const first = words[at] ?? "--";
  if (isSubcommand(command, first)) return [name, first, ...words.toSpliced(at, 1)];
  return at !== 0 || first === "--" || command.bareTakes?.(first)
    ? [name, command.bare, ...words]
    : args;
}

/** The subcommands of a command, in the order of its help. */
export function subcommands({ parser }: Definition): string[] {
  return parser.commands.map(({ name }) => name);
}

function isSubcommand(command: Definition, word = ""): boolean {
  return subcommands(command).includes(word);
}

/** The options of a subcommand, or of the command without one, and whether each takes a value. */
export function optionsOf(
  { parser, bare = "" }: Definition,
  [, subcommand = bare]: string[],
): Map<string, boolean> {
  const terms = termsOf(descend(parser, [subcommand])[0]);
  return new Map(
    terms.flatMap(({ names, value }) => names.map((name) => [name, value !== undefined] as const)),
  );
}

/** An optional option that takes a value: a text with this metavar, or what a parser accepts. */
export function textOption(
  flag: `--${string}`,
  value: string | Value<string>,
  description: string,
): Term<string | undefined> {
  return optional(option(flag, typeof value === "string" ? string(value) : value, description));
}

/** The `--path` option of every command that works in a worktree; empty: the current directory. */
export const pathOption = withDefault(
  option("--path", pathOf("DIR"), "The worktree; default: the current directory."),
  "",
);

/** `--trust` of commands that run the worktree's agent. */
export const trustOption = option(
  "--trust",
  "Trust everything that the worktree's .svc opens, for this once.",
);

/** The `--output` option of every command that prints text for people or JSON for programs. */
export const outputOption = withDefault(
  option("--output", choice(["text", "json"]), "text (default) or json."),
  "text",
);
