import { dirname, join, relative, resolve } from "node:path";
import type { ProcessResult, ToolContext } from "../../../src/plugins/api.ts";
import { type Limits, runGit } from "./run.ts";
import { UsageError } from "./usage_error.ts";

/** A repository whose files and history all lie where this call may read. */
export interface Repository {
  /** Runs git in it, without any program that its own configuration names. */
  run(args: string[], limits?: Limits): Promise<ProcessResult>;
}

/**
 * The repository of a folder. Its configuration came with it and may be hostile: programs that it names
 * are blanked, and one whose files lie elsewhere is not opened.
 *
 * @throws UsageError when there is none, or it reaches out of the worktree.
 */
export async function openRepository(cwd: string, context: ToolContext): Promise<Repository> {
  const asked = ["rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"];
  const found = await runGit(asked, [], cwd, context);
  if (found.code !== 0) throw new UsageError(firstLine(found) || "there is no Git repository here");
  const [top = "", own = "", shared = ""] = found.output.trimEnd().split("\n");
  const common = resolve(cwd, shared);
  if (!contains(top, context)) {
    throw new UsageError(
      `the repository begins at ${top}, outside the worktree; start svc in that folder to use it`,
    );
  }
  if (!contains(common, context) && !(await isLinkedTo(own, common, top))) {
    throw new UsageError(`the history of this repository lies in ${common}, outside the worktree`);
  }
  if (contains(common, context)) await checkObjects(join(common, "objects"), context);
  const blanked = await programSettings(cwd, context);
  return { run: (args, limits) => runGit(args, blanked, cwd, context, limits) };
}

function contains(path: string, context: ToolContext): boolean {
  try {
    return context.paths.contains(Deno.realPathSync(path));
  } catch {
    return false;
  }
}

/** What `git worktree add` made: the repository elsewhere knows this folder as one of its own. */
async function isLinkedTo(own: string, common: string, top: string): Promise<boolean> {
  const name = relative(join(common, "worktrees"), own);
  if (name === "" || name.startsWith("..") || name.includes("/")) return false;
  try {
    const back = (await Deno.readTextFile(join(own, "gitdir"))).trim();
    return Deno.realPathSync(dirname(back)) === Deno.realPathSync(top);
  } catch {
    return false;
  }
}

/** Objects may be borrowed: by a link, or from the folders that `info/alternates` lists, and those from others. */
async function checkObjects(folder: string, context: ToolContext, depth = 0): Promise<void> {
  if (!contains(folder, context) || depth > ALTERNATES) {
    throw new UsageError(
      `this repository borrows its history from ${folder}, outside the worktree`,
    );
  }
  const list = await Deno.readTextFile(join(folder, "info", "alternates")).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return "";
    throw new UsageError("the repository's list of alternates cannot be read");
  });
  for (const line of list.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    if (line.startsWith('"')) throw new UsageError("the repository's alternates are quoted");
    await checkObjects(resolve(folder, line), context, depth + 1);
  }
}

/** Git itself follows alternates of alternates no further. */
const ALTERNATES = 5;

/** Settings whose value git runs as a program, of the kinds that carry a name of the repository's choice. */
const PROGRAM = new RegExp(
  "^(filter\\..*\\.(clean|smudge|process)|diff\\..*\\.(command|textconv)|merge\\..*\\.driver" +
    "|trailer\\..*\\.(command|cmd)|credential\\..*\\.helper)$",
  "is",
);

/** Options that blank what the repository's own files set of those. The user's own settings stay. */
async function programSettings(cwd: string, context: ToolContext): Promise<string[]> {
  const asked = ["config", "--list", "--name-only", "--show-scope", "--includes", "-z"];
  const { code, output } = await runGit(asked, [], cwd, context, { max_output: 4_000_000 });
  if (code !== 0) throw new UsageError("the repository's configuration cannot be read");
  const fields = output.split("\0");
  const options: string[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [scope, name] = [fields[at]!, fields[at + 1]!];
    if ((scope !== "local" && scope !== "worktree") || !PROGRAM.test(name)) continue;
    if (name.includes("=") || name.includes("\n")) {
      throw new UsageError(
        "the repository's configuration names a program in a way no tool accepts",
      );
    }
    options.push("-c", `${name}=`);
    const driver = /^(filter\..*)\.[^.]*$/is.exec(name)?.[1];
    if (driver !== undefined) options.push("-c", `${driver}.required=false`);
  }
  return options;
}

function firstLine({ output }: ProcessResult): string {
  return output.trim().split("\n")[0]!.replace(/^fatal: /, "");
}
