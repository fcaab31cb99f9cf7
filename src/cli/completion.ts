import { bash, fish, nu, pwsh, type ShellCompletion, zsh } from "@optique/core/completion";
import { completions, type Suggestion } from "../commands/help.ts";
import type { Io } from "../commands/io.ts";
import { lookUp, type NameKind, namesOf, type SessionNameKind } from "../commands/names.ts";
import { sessionOptions } from "../commands/session_options.ts";
import type { CommandEntry } from "../commands/table.ts";
import { openWorkspace } from "../commands/workspace.ts";
import { usageError } from "../platform/error.ts";

const SHELLS: Record<string, ShellCompletion> = { bash, zsh, fish, nu, pwsh };

const HELP = `Usage: svc completion SHELL

Print a script that completes commands, options and names: ${Object.keys(SHELLS).join(", ")}.

Examples:
  source <(svc completion bash)
  svc completion zsh > ~/.zfunc/_svc
  svc completion fish > ~/.config/fish/completions/svc.fish
`;

/**
 * `svc completion <shell>`: prints the script by which a shell completes commands, options and names. The
 * script calls it again with the words of the line, and reads the suggestions for the last of them.
 */
export async function completion(
  [name = "", ...words]: string[],
  commands: Readonly<Record<string, CommandEntry>>,
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
      name === "" ? "No shell is named." : `There is no completion for ${name}.`,
      `Pass one of ${Object.keys(SHELLS).join(", ")}: source <(svc completion bash)`,
    );
  }
  if (words.length === 0) io.out(shell.generateScript("svc", ["completion", name]));
  else for (const part of shell.encodeSuggestions(await offered(words, commands, io))) io.out(part);
  return 0;
}

async function offered(
  words: string[],
  commands: Readonly<Record<string, CommandEntry>>,
  io: Io,
): Promise<Parameters<ShellCompletion["encodeSuggestions"]>[0]> {
  const suggestions = await suggestionsFor(words, commands);
  const path = words.find((_, at) => words[at - 1] === "--path") ?? "";
  const pattern = words.at(-1)!;
  return (await lookUp(suggestions, pattern, (kind) => names(kind, path, io))).map((each) =>
    "files" in each ? { kind: "file", type: each.files, pattern } : {
      kind: "literal",
      text: each.text,
      ...each.description !== undefined &&
        { description: [{ type: "text", text: each.description }] },
    }
  );
}

async function suggestionsFor(
  words: string[],
  commands: Readonly<Record<string, CommandEntry>>,
): Promise<Suggestion[]> {
  const [first = "", ...rest] = words;
  const listed = [
    ...Object.entries(commands).map(([name, { summary }]) => [name, summary] as const),
    ["completion", "print a script that completes commands, options and names in your shell"],
    ["help", "show help of a command"],
  ] as const;
  if (first.startsWith("-")) {
    const options = completions(sessionOptions, ["", ...words]);
    return [...rest.length === 0 ? matching(first, OPTIONS) : [], ...options];
  }
  if (rest.length === 0) return matching(first, listed);
  if (first === "help" && rest.length === 1) return matching(rest[0]!, listed);
  if (first === "completion" && rest.length === 1) {
    return matching(rest[0]!, Object.keys(SHELLS).map((name) => [name, ""]));
  }
  const [command, ...others] = first === "help" ? rest : words;
  if (!Object.hasOwn(commands, command!)) return [];
  return completions(await commands[command!]!.load(), [command!, ...others]);
}

const OPTIONS = [["--help", "show help"], ["--version", "show the version"]] as const;

/** A name that a shell takes for one word. It puts names on the command line, and on the terminal, as they are. */
const PLAIN = /^[\p{L}\p{M}\p{N}_.,:@%+=/#^-]+$/u;

/** The plain names of a kind in the worktree of the command line; none where it cannot be read. */
async function names(kind: NameKind, path: string, io: Io): Promise<readonly string[]> {
  try {
    const quiet = { ...io, environment: io.environment, note() {} };
    const workspace = openWorkspace(path, quiet);
    try {
      const all = await namesOf(kind as Exclude<NameKind, SessionNameKind>, workspace);
      return all.filter((name) => PLAIN.test(name));
    } finally {
      await workspace.close();
    }
  } catch {
    return [];
  }
}

function matching(
  begun: string,
  words: readonly (readonly [word: string, summary: string])[],
): Suggestion[] {
  return words.filter(([word]) => word.startsWith(begun)).map(([word, summary]) => ({
    text: word,
    ...(summary !== "" && { description: summary }),
  }));
}
