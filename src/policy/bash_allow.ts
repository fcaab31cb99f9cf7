import { resolve } from "node:path";
import type { ToolArguments } from "../plugins/api.ts";
import { configuresPrograms, gitObjection, runsAnything } from "./listed_commands.ts";
import type { PathContext } from "./paths.ts";
import { splitShellLine, type Word } from "./shell.ts";

/** Why `bash_allow` does not cover a command. */
export interface BashListObjection {
  /** The end of a sentence. */
  reason: string;
  /** True for multi-line commands and here-documents, which are denied even with an approval (4.8). */
  final: boolean;
}

/**
 * Why `bash_allow` does not cover a call: because of its command line, or of the directory it runs in.
 * Undefined when the list covers it.
 */
export function callObjection(
  { command, cwd }: ToolArguments,
  allow: string[],
  context: PathContext,
): BashListObjection | undefined {
  const line = typeof command === "string" ? command : "";
  return bashListObjection(line, allow, { moved: cwd !== undefined }) ??
    directoryObjection(line, typeof cwd === "string" && cwd !== "" ? cwd : ".", context);
}

/**
 * A repository that came with the worktree may name programs that a listed git command runs, so each directory
 * that the line works in is checked: the one it starts in, and the one it changes to.
 */
function directoryObjection(
  line: string,
  cwd: string,
  context: PathContext,
): BashListObjection | undefined {
  const objection = (reason: string) => ({ reason, final: false });
  const { parts = [] } = splitShellLine(line) as { parts?: Word[][] };
  const moves = parts.filter(([first]) => MOVES.has(first!.value));
  const [target, more] = moves[0]?.slice(1) ?? [];
  const usesGit = /\bgit\b/.test(line);
  const directories = [cwd];
  if (moves.length > 0) {
    const known = moves.length === 1 && target?.literal && more === undefined &&
      !/^[-+]|^$|(^|\/)\.\.(\/|$)/.test(target.value);
    if (!known) return objection("it is not plain which folder the command changes to");
    directories.push(resolve("/", context.locate(cwd).real, target.value));
  }
  for (const directory of directories) {
    const shown = JSON.stringify(directory.slice(0, 200));
    try {
      const { inside, real } = context.locate(directory);
      // The policy asks about a `cwd` outside the worktree by itself.
      if (!inside && directory !== cwd) return objection(`${shown} is outside the worktree`);
      const configured = context.locate(`${directory}/config`).protected !== false ||
        (usesGit && inside && configuresPrograms(real, context.worktree));
      if (configured) return objection(`a command in ${shown} may run what is configured there`);
    } catch {
      return objection(`the folder ${shown} cannot be resolved`);
    }
  }
  return undefined;
}

/**
 * Why `tool_permission.bash_allow` (specification 2.13) does not cover a command line, or undefined when
 * every command in it begins with an allowed prefix. Prefixes match word by word: `git` covers
 * `git status` and never `gitx`, `/tmp/git` or `env git`.
 *
 * The list names commands, not their effects: with `find` listed, `find -exec rm {} +` is covered. Of git alone,
 * options that write a file or run a program are refused where the entry does not spell them out.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * const allow = ["git status", "ls"];
 * assert.equal(bashListObjection("git status -s && ls src", allow), undefined);
 * assert.ok(bashListObjection("git status; rm -r src", allow));
 * assert.ok(bashListObjection("ls $(rm -r src)", allow));
 * ```
 *
 * @param options.moved the command runs in another directory than the worktree
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

/** The words of a list entry; undefined for an entry that is not the plain beginning of one command. */
export function commandPrefix(entry: string): string[] | undefined {
  const line = splitShellLine(entry);
  if ("problem" in line || line.parts.length !== 1) return undefined;
  const [words] = line.parts;
  const name = words![0]!.value;
  if (NEVER.has(name) || ASSIGNMENT.test(name)) return undefined;
  return words!.every((word) => word.literal) ? words!.map((word) => word.value) : undefined;
}

/**
 * The beginnings of commands that a person may want to approve after a command line: one for each of its commands,
 * without what is particular to this line. Empty when there is none that is worth it: for programs that run whatever
 * they are told to, and for lines of many commands.
 */
export function suggestedPrefixes(command: unknown): string[] {
  const line = splitShellLine(typeof command === "string" ? command : "");
  if ("problem" in line) return [];
  const found = line.parts.map(suggestedPrefix);
  const prefixes = [...new Set(found)];
  return prefixes.includes("") || prefixes.length > MOST_PREFIXES ? [] : prefixes;
}

const MOST_PREFIXES = 3;
/** A word that names a command, and not what it works on. */
const NAME = /^[A-Za-z][\w:-]*$/;

function suggestedPrefix(words: Word[]): string {
  const program = words[0]!.value;
  const length = COMMANDED.has(program) ? (RUNNING.has(words[1]?.value ?? "") ? 3 : 2) : 1;
  const prefix = words.slice(0, length);
  const named = prefix.length === length && prefix.every(({ literal }) => literal) &&
    prefix.slice(1).every(({ value }) => NAME.test(value)) && /^[\w./+-]+$/.test(program);
  const values = prefix.map(({ value }) => value);
  const run = values.at(-1)!;
  const narrow = length === 3 || program === "npx"
    ? !runsAnything([run])
    : NARROW.has(run) || !runsAnything(values);
  if (!named || !narrow) return "";
  const entry = values.join(" ");
  return commandPrefix(entry) === undefined ? "" : entry;
}

/** Programs whose next word is a command of theirs. */
const COMMANDED = new Set(
  ("apt brew bundle bun cargo composer deno dotnet gh git go gradle helm jj mvn nix npm npx pip pip3 pnpm poetry " +
    "rake swift terraform uv yarn zig").split(" "),
);

/** Commands of programs that can run anything which themselves run what belongs to the project. */
const NARROW = new Set(["build", "check", "doc", "fmt", "lint", "list", "test", "vet"]);

/** Commands of those programs whose next word names what is run. */
const RUNNING = new Set(["dlx", "exec", "run", "task", "x"]);

/** `NAME=value` and `NAME+=value` before a command change its meaning. */
const ASSIGNMENT = /^[A-Za-z_][A-Za-z0-9_]*\+?=/;

/**
 * Keywords of sh and bash, and built-in commands that run their arguments or change the meaning of later
 * commands. No entry of the list allows them.
 */
const NEVER = new Set(
  ("! [[ ]] case coproc do done elif else esac fi for function if in select then time until while { } " +
    ". alias bind builtin command compgen complete compopt declare enable eval exec export fc getopts " +
    "hash history jobs let local mapfile read readarray readonly set shopt source trap typeset " +
    "unalias unset wait").split(" "),
);

/** After these, a relative path such as `./build.sh` is another program. */
const MOVES = new Set(["cd", "chdir", "pushd", "popd"]);

/** Their `-v` takes the name of a variable, and bash runs the command in the brackets of `a[$(...)]`. */
const NAMES_VARIABLES = new Set(["printf", "test", "["]);

function partObjection(words: Word[], prefixes: string[][], moves: boolean): string | undefined {
  const name = words[0]!.value;
  const shown = JSON.stringify(words.map((word) => word.value).join(" ").slice(0, 80));
  if (!words[0]!.literal) return `what ${shown} runs is not spelled out`;
  const listed = prefixes.filter((prefix) =>
    prefix.every((word, index) => words[index]?.literal && words[index].value === word)
  );
  if (listed.length === 0) return `${shown} does not begin with an allowed command`;
  if (moves && name.includes("/") && !name.startsWith("/")) {
    return `${shown} may be another program after a change of folder`;
  }
  if (NAMES_VARIABLES.has(name) && !words.every(isInert)) {
    return `${shown} may run what its arguments hold`;
  }
  return gitObjection(words, Math.max(...listed.map(({ length }) => length)));
}

/** In a format of bash's `printf`, `%n` names a variable as well. */
function isInert({ value, literal }: Word): boolean {
  return literal && !value.startsWith("-v") && !/%[-+ #0-9.*'hlLjzt]*n/.test(value);
}
