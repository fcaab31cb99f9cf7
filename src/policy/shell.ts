import { splitShellLine, type Word } from "./shell_words.ts";

/** Why a command is not covered by the list. */
export interface BashListObjection {
  /** The end of a sentence. */
  reason: string;
  /** True for multi-line commands and here-documents, which no approval lets through (4.8). */
  final: boolean;
}

/**
 * Whether every command that `command` runs begins with an allowed prefix (specification 2.13,
 * `tool_permission.bash_allow`). Prefixes match word by word: `git` covers `git status` and never
 * `gitx`, `/tmp/git` or `env git`.
 *
 * The list says what is run, not what that does: with `find` listed, `find -exec rm {} +` is covered.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * assert(allowedByBashList("git status -s && ls src", ["git status", "ls"]));
 * assert(!allowedByBashList("git status; rm -r src", ["git status", "ls"]));
 * assert(!allowedByBashList("ls $(rm -r src)", ["git status", "ls"]));
 * ```
 */
export function allowedByBashList(command: string, allow: string[]): boolean {
  return bashListObjection(command, allow) === undefined;
}

/**
 * What keeps a command off the list, or undefined when {@linkcode allowedByBashList} holds.
 *
 * @param options.moved the command runs in another folder than the worktree.
 */
export function bashListObjection(
  command: string,
  allow: string[],
  { moved = false } = {},
): BashListObjection | undefined {
  const line = splitShellLine(command);
  if ("problem" in line) {
    return { reason: `the command is refused: ${line.problem}`, final: line.lines };
  }
  const prefixes = allow.map(commandPrefix).filter((prefix) => prefix !== undefined);
  const moves = moved || line.parts.some(([first]) => MOVES.has(first!.value));
  for (const words of line.parts) {
    const reason = partObjection(words, prefixes, moves);
    if (reason !== undefined) return { reason, final: false };
  }
  return undefined;
}

/** The words of a list entry; undefined when it is not the plain beginning of one command. */
export function commandPrefix(entry: string): string[] | undefined {
  const line = splitShellLine(entry);
  if ("problem" in line || line.parts.length !== 1) return undefined;
  const [words] = line.parts;
  const name = words![0]!.value;
  if (NEVER.has(name) || ASSIGNMENT.test(name)) return undefined;
  return words!.every((word) => word.literal) ? words!.map((word) => word.value) : undefined;
}

/** `NAME=value` and `NAME+=value` before a command change what the command does. */
const ASSIGNMENT = /^[A-Za-z_][A-Za-z0-9_]*\+?=/;

/**
 * Keywords of sh and bash, and the built-in commands that run their arguments or change what later
 * commands mean. A list cannot allow them.
 */
const NEVER = new Set(
  ("! [[ ]] case coproc do done elif else esac fi for function if in select then time until while { } " +
    ". alias bind builtin command compgen complete compopt declare enable eval exec export fc getopts " +
    "hash history jobs let local mapfile read readarray readonly set shopt source trap typeset " +
    "unalias unset wait").split(" "),
);

/** After these, a relative path such as `./build.sh` is another program. */
const MOVES = new Set(["cd", "chdir", "pushd", "popd"]);

/** Their `-v` takes the name of a variable, and bash runs what the brackets of `a[$(...)]` hold. */
const NAMES_VARIABLES = new Set(["printf", "test", "["]);

function partObjection(words: Word[], prefixes: string[][], moves: boolean): string | undefined {
  const name = words[0]!.value;
  const shown = JSON.stringify(words.map((word) => word.value).join(" ").slice(0, 80));
  if (!words[0]!.literal) return `what ${shown} runs is not spelled out`;
  const listed = prefixes.some((prefix) =>
    prefix.every((word, index) => words[index]?.literal && words[index].value === word)
  );
  if (!listed) return `${shown} does not begin with an allowed command`;
  if (moves && name.includes("/") && !name.startsWith("/")) {
    return `${shown} may be another program after a change of folder`;
  }
  if (NAMES_VARIABLES.has(name) && !words.every(isInert)) {
    return `${shown} may run what its arguments hold`;
  }
  return undefined;
}

function isInert({ value, literal }: Word): boolean {
  return literal && !value.startsWith("-v");
}
