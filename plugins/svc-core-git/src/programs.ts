import type { ToolContext } from "../../../src/plugins/api.ts";
import { runGit, UsageError } from "./run.ts";

/** The options that keep git from running programs that the files of a repository name. */
interface Blanked {
  options: string[];
  /** The same for commands that record files: a file with a blanked filter is refused. */
  strict: string[];
}

/**
 * The settings that name a program under a key that the repository chooses, and the folder in which Git
 * LFS, which may be a filter of the user, stores copies.
 */
const PROGRAM = new RegExp(
  "^(filter\\..*\\.(clean|smudge|process)|diff\\..*\\.(command|textconv)|merge\\..*\\.driver" +
    "|trailer\\..*\\.(command|cmd)|credential\\..*\\.helper" +
    "|lfs\\.extension\\..*\\.(clean|smudge)|lfs\\.customtransfer\\..*\\.path|lfs\\.storage)$",
  "is",
);
const FILTER = /^(filter\..*)\.([^.]*)$/is;
const HOOK = /^(hook\..*)\.[^.]*$/is;

/** Characters of a configuration. */
const MAX_CONFIGURATION = 4_000_000;

/**
 * Reads the configuration of a folder. Settings of the user stay in effect, except hooks.
 *
 * @throws UsageError when it is too long, or contains a program that cannot be blanked.
 */
export async function blankPrograms(cwd: string, context: ToolContext): Promise<Blanked> {
  const asked = ["config", "--list", "--show-scope", "--includes", "-z"];
  const fields = await listed(asked, cwd, context);
  const options: string[] = [];
  const required: string[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [scope, [name, value]] = [fields[at]!, divided(fields[at + 1]!)];
    const hook = HOOK.exec(name)?.[1];
    if (hook !== undefined) options.push(...set(`${hook}.event`, ""));
    // Settings of the user and of the command line.
    if (["system", "global", "command"].includes(scope)) continue;
    if (/^extensions\.refstorage$/i.test(name) && value.includes(":")) {
      throw new UsageError("this repository keeps its branches in a folder elsewhere");
    }
    if (!PROGRAM.test(name)) continue;
    options.push(...set(name, ""));
    const [, filter, what] = FILTER.exec(name) ?? [];
    if (filter === undefined) continue;
    options.push(...set(`${filter}.required`, "false"));
    if (what !== "smudge") required.push(...set(`${filter}.required`, "true"));
  }
  return { options, strict: [...options, ...required] };
}

async function listed(asked: string[], cwd: string, context: ToolContext): Promise<string[]> {
  const limits = { max_output: 2 * MAX_CONFIGURATION, errors: false } as const;
  const { code, output } = await runGit(asked, [], cwd, context, limits);
  if (code !== 0) throw new UsageError("the repository's configuration cannot be read");
  // A longer output is cut in the middle.
  if (output.length > MAX_CONFIGURATION) {
    throw new UsageError("the repository's configuration is too long to be looked through");
  }
  return output.split("\0");
}

function divided(field: string): [name: string, value: string] {
  const at = field.indexOf("\n");
  return at < 0 ? [field, ""] : [field.slice(0, at), field.slice(at + 1)];
}

/** @throws UsageError for a name that git's option cannot carry */
function set(name: string, value: string): string[] {
  if (name.includes("=")) {
    throw new UsageError(
      "the repository's configuration names a program in a way no tool accepts",
    );
  }
  return ["-c", `${name}=${value}`];
}
