import { getDocPage, parse, type Parser } from "@optique/core/parser";
import { formatDocPage } from "@optique/core/doc";
import { formatUsage, type Usage } from "@optique/core/usage";
import { type Message, text } from "@optique/core/message";
import { usageError } from "../platform/error.ts";
import type { Io } from "./io.ts";
import { mistake } from "./mistake.ts";

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
export function says(sentence: string): Message {
  return [text(sentence)];
}
