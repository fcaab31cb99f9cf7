import { bash, fish, nu, pwsh, type ShellCompletion, zsh } from "@optique/core/completion";
import { suggest, type Suggestion } from "@optique/core/parser";
import { text } from "@optique/core/message";
import { type Command, withSubcommand } from "../commands/command.ts";
import type { Io } from "../commands/io.ts";
import { usageError } from "../platform/error.ts";

/** What completion knows of the program's commands. */
export interface Completable {
  summary: string;
  // deno-lint-ignore no-explicit-any
  load(): Promise<Command<any>>;
}

const SHELLS: Record<string, ShellCompletion> = { bash, zsh, fish, nu, pwsh };

const HELP = `Usage: svc completion SHELL

Print a script that completes commands and options: ${Object.keys(SHELLS).join(", ")}.

Examples:
  source <(svc completion bash)
  svc completion zsh > ~/.zfunc/_svc
  svc completion fish > ~/.config/fish/completions/svc.fish
`;

/**
 * `svc completion <shell>`: prints the script by which a shell completes svc's commands and options. The
 * script calls it again with the words of the line, and gets what may stand for the last of them.
 */
export async function completion(
  [name = "", ...words]: string[],
  commands: Record<string, Completable>,
  io: Io,
): Promise<number> {
  if (name === "--help" || name === "-h") {
    io.out(HELP);
    return 0;
  }
  const shell = Object.hasOwn(SHELLS, name) ? SHELLS[name] : undefined;
  if (shell === undefined) {
    throw usageError(
      "usage",
      name === "" ? "Which shell is not said." : `There is no completion for ${name}.`,
      `Pass one of ${Object.keys(SHELLS).join(", ")}: source <(svc completion bash)`,
    );
  }
  if (words.length === 0) io.out(shell.generateScript("svc", ["completion", name]));
  else for (const part of shell.encodeSuggestions(await suggestions(words, commands))) io.out(part);
  return 0;
}

async function suggestions(
  words: string[],
  commands: Record<string, Completable>,
): Promise<Suggestion[]> {
  const [first = "", ...rest] = words;
  const listed = [
    ...Object.entries(commands).map(([name, { summary }]) => [name, summary] as const),
    ["completion", "print a script that completes commands and options in your shell"],
    ["help", "show help of a command"],
  ] as const;
  if (rest.length === 0) {
    return matching(first, first.startsWith("-") ? OPTIONS : listed);
  }
  if (first === "help" && rest.length === 1) return matching(rest[0]!, listed);
  if (first === "completion" && rest.length === 1) {
    return matching(rest[0]!, Object.keys(SHELLS).map((name) => [name, ""]));
  }
  const [command, ...others] = first === "help" ? rest : words;
  if (!Object.hasOwn(commands, command!)) return [];
  const loaded = await commands[command!]!.load();
  const meant = withSubcommand(loaded, [command!, ...others]);
  return [...suggest(loaded.parser, meant as [string, ...string[]])];
}

const OPTIONS = [["--help", "show help"], ["--version", "show the version"]] as const;

function matching(
  begun: string,
  words: readonly (readonly [word: string, summary: string])[],
): Suggestion[] {
  return words.filter(([word]) => word.startsWith(begun)).map(([word, summary]) => ({
    kind: "literal",
    text: word,
    ...(summary !== "" && { description: [text(summary)] }),
  }));
}
