import { dirname, join, relative, resolve } from "node:path";
import type { ProcessResult, ToolContext } from "../../../src/plugins/api.ts";
import { checkLinks, checkObjects, contains } from "./folders.ts";
import { blankPrograms } from "./programs.ts";
import { complaint, type Limits, runGit } from "./run.ts";
import { submodules } from "./submodules.ts";
import { UsageError } from "./usage_error.ts";

/** A repository whose files and history all lie where this call may read and write. */
export interface Repository {
  /** Runs git in it, without any program that its own configuration names. */
  run(args: string[], limits?: Limits): Promise<ProcessResult>;
  /**
   * The same for a command that takes files into the history, of `places` or of everywhere. Of submodules
   * among them git asks what changed there, with their own configuration.
   */
  record(args: string[], places: string[], limits?: Limits): Promise<ProcessResult>;
}

/**
 * The repository of a folder. Its configuration came with it and may be hostile: programs that it names
 * are blanked, and one whose files lie elsewhere is not opened.
 *
 * @throws UsageError when there is none, or it reaches out of the worktree.
 */
export async function openRepository(cwd: string, context: ToolContext): Promise<Repository> {
  const top = await check(cwd, context);
  const { options, strict } = await blankPrograms(cwd, context);
  return {
    run: (args, limits) => runGit(args, options, cwd, context, limits),
    record: async (args, places, limits) => {
      const below = await blankBelow(top, places, context);
      return await runGit(args, [...strict, ...below], cwd, context, limits);
    },
  };
}

/** Blanks what the configurations of submodules name, and of theirs. */
async function blankBelow(top: string, places: string[], context: ToolContext): Promise<string[]> {
  const options: string[] = [];
  for (const folder of await submodules(top, places, context)) {
    const root = await check(folder, context);
    if (root !== Deno.realPathSync(folder)) continue; // nothing is checked out there
    const { strict } = await blankPrograms(root, context);
    options.push(...strict, ...await blankBelow(root, [], context));
  }
  return options;
}

/** @returns the top folder of the repository */
async function check(cwd: string, context: ToolContext): Promise<string> {
  const { top, own, common } = await find(cwd, context);
  if (!contains(top, context)) {
    throw new UsageError(
      `the repository begins at ${top}, outside the worktree; start svc in that folder to use it`,
    );
  }
  const elsewhere = [common, own].find((folder) => !contains(folder, context));
  if (elsewhere !== undefined && !(await isLinkedTo(own, common, top))) {
    throw new UsageError(
      `the history of this repository lies in ${elsewhere}, outside the worktree`,
    );
  }
  if (elsewhere === undefined) {
    await checkLinks(common, context);
    if (own !== common) await checkLinks(own, context);
    await checkObjects(join(common, "objects"), context);
  }
  return top;
}

async function find(cwd: string, context: ToolContext) {
  const asked = ["rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"];
  const found = await runGit(asked, [], cwd, context, { errors: false });
  if (found.code !== 0) {
    const why = await runGit(asked, [], cwd, context);
    throw new UsageError(complaint(why) || "there is no Git repository here");
  }
  const lines = found.output.replace(/\n$/, "").split("\n");
  // A folder's name may hold the end of a line, and then say anything.
  if (lines.length !== 3) {
    throw new UsageError("the name of a folder on the way there has two lines");
  }
  const [top, own, shared] = lines as [string, string, string];
  return { top, own, common: resolve(cwd, shared) };
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
