import { formatDocPage } from "@optique/core/doc";
import { formatMessage, type Message, text as textTerm } from "@optique/core/message";
import { withDefault } from "@optique/core/modifiers";
import { getDocPage, parse, type Parser } from "@optique/core/parser";
import { option } from "@optique/core/primitives";
import { formatUsage, type Usage } from "@optique/core/usage";
import { choice, string } from "@optique/core/valueparser";
import { nearest, usageError } from "../platform/error.ts";
import type { Io } from "./io.ts";

/** Columns of a help page: what every terminal has. */
const WIDTH = 80;

/** One command of the program: how its arguments read, and what it does with them. */
export interface Command<T> {
  /** Begins with `command("<name>", ...)` of Optique. */
  readonly parser: Parser<"sync", T, unknown>;
  /** Complete command lines, shown in its help. */
  readonly examples: readonly string[];
  /** The subcommand that is meant when none is named. */
  readonly bare?: string;
  /** @returns the exit code. Throws SvcError for anything a user should read. */
  run(values: T, io: Io): Promise<number>;
}

/** Keeps the parsed values' type between `parser` and `run`. */
export function defineCommand<T>(command: Command<T>): Command<T> {
  return command;
}

/** Parses `args` (the command's name first) and runs the command, or prints its help. */
export function runCommand<T>(command: Command<T>, args: string[], io: Io): Promise<number> {
  const end = args.indexOf("--");
  const flags = end < 0 ? args : args.slice(0, end);
  if (flags.includes("--help") || flags.includes("-h")) {
    io.out(commandHelp(command, args, io));
    return Promise.resolve(0);
  }
  const given = withSubcommand(command, args);
  const parsed = parse(command.parser, given);
  if (!parsed.success) {
    const place = given.slice(0, namesSubcommand(command, given) ? 2 : 1);
    const said = mistake(parsed.error, command.parser, place);
    throw usageError("usage", said, `Try: ${io.program}${place.join(" ")} --help`);
  }
  return command.run(parsed.value, io);
}

/** The words with the subcommand first, as Optique wants it: the one named behind flags, or the one that is meant. */
export function withSubcommand<T>(command: Command<T>, args: string[]): string[] {
  const [name = "", ...words] = args;
  if (command.bare === undefined || !(words[0] ?? "-").startsWith("-")) return args;
  const place = words.findIndex((word) => !word.startsWith("-") || word === "--");
  const named = place < 0 ? undefined : words[place]!;
  return named !== undefined && namesSubcommand(command, [name, named])
    ? [name, named, ...words.toSpliced(place, 1)]
    : [name, command.bare, ...words];
}

function commandHelp<T>(command: Command<T>, args: string[], io: Io): string {
  const words = [];
  for (const arg of args) {
    if (arg.startsWith("-")) break;
    words.push(arg);
  }
  const page = getDocPage(command.parser, words) ?? getDocPage(command.parser, [args[0]!]);
  const colors = io.isTerminal("out") && io.environment.get("NO_COLOR") === undefined;
  const body = page
    ? `${usageLines(io.program.trim(), page.usage ?? [])}` +
      formatDocPage(io.program.trim(), { ...page, usage: undefined }, { colors, maxWidth: WIDTH })
    : "";
  const examples = command.examples.map((example) =>
    `  ${example.replaceAll("svc ", io.program)}\n`
  ).join("");
  return `${body.replace(/[ \t]+$/gm, "").trimEnd()}\n\nExamples:\n${examples}`;
}

// The formatter of the library breaks lines within an option's brackets.
function usageLines(program: string, usage: Usage): string {
  const indent = " ".repeat("Usage: ".length);
  const lines: string[] = [];
  let line = "Usage:";
  for (const term of formatUsage(program, usage.map(shortened)).match(/(\[[^\]]*\]|\S)+/g) ?? []) {
    if (line.length + 1 + term.length > WIDTH && line.trim() !== "") {
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

/** Whether the second word is a subcommand, and thus has a help of its own. */
function namesSubcommand<T>({ parser }: Command<T>, [name = "", second = "-"]: string[]): boolean {
  return !second.startsWith("-") &&
    getDocPage(parser, [name, second])?.usage?.some((term) =>
        term.type === "command" && term.name === second
      ) === true;
}

/** A plain sentence as Optique's message type, for descriptions. */
export function text(sentence: string): Message {
  return [textTerm(sentence)];
}

/** An argument that takes a negative number for what it is, and not for an option. */
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

/** The `--path` option of every command that works in a worktree; empty: the current directory. */
export const pathOption = withDefault(
  option("--path", string({ metavar: "DIR" }), {
    description: text("The worktree; default: the current directory."),
  }),
  "",
);

/** The `--output` option of every command that prints text for people or JSON for programs. */
export const outputOption = withDefault(
  option("--output", choice(["text", "json"]), { description: text("text (default) or json.") }),
  "text",
);

/**
 * What is wrong with a command line, as one sentence, or two where a word is nearly an option.
 *
 * @param place the words that lead to the command or subcommand that is meant
 */
export function mistake(
  error: Message,
  // deno-lint-ignore no-explicit-any
  parser: Parser<"sync", any, any>,
  place: string[],
): string {
  const said = formatMessage(error, { colors: false, quotes: true })
    .replace(/\s*\n\s*/g, " ").trim()
    .replace(/^Expected an? `([^`]+)`, but too few arguments\.$/, "$1 is missing.");
  const [, wrong] = /^Unexpected option or \w+: ["`](--?[^="`]+)[^"`]*["`]\.$/.exec(said) ?? [];
  if (wrong === undefined) return said;
  // The library looks no further than the command itself, and takes the value along.
  const guess = nearest(wrong, optionNames(getDocPage(parser, place)?.usage ?? []));
  return guess === undefined ? said : `${said} Did you mean \`${guess}\`?`;
}

function optionNames(usage: Usage): string[] {
  return usage.flatMap((term) => {
    if (term.type === "option") return [...term.names];
    if (term.type === "exclusive") return term.terms.flatMap(optionNames);
    return "terms" in term ? optionNames(term.terms) : [];
  });
}
