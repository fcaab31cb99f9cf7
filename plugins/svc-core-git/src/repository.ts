import { dirname, join, relative, resolve } from "node:path";
import type { ProcessResult, ToolContext } from "../../../src/plugins/api.ts";
import { blankPrograms } from "./programs.ts";
import { complaint, type Limits, runGit, UsageError } from "./run.ts";

/** A repository whose files and history are all inside the folders of the call. */
export interface Repository {
  /** Runs git in it, without the programs that its own configuration names. */
  run(args: string[], limits?: Limits): Promise<ProcessResult>;
  /**
   * Runs a command that records files: those at `paths`, or all when it is empty. For submodules among
   * them, git determines what changed with their own configuration.
   */
  record(args: string[], paths: string[], limits?: Limits): Promise<ProcessResult>;
}

/**
 * Opens the repository of a folder. Its configuration may be hostile: programs that it names are blanked,
 * and a repository with files outside the worktree is not opened.
 *
 * @throws UsageError when there is no repository, or it is not contained in the worktree.
 */
export async function openRepository(cwd: string, context: ToolContext): Promise<Repository> {
  const top = await check(cwd, context);
  const { options, strict } = await blankPrograms(cwd, context);
  return {
    run: (args, limits) => runGit(args, options, cwd, context, limits),
    record: async (args, paths, limits) => {
      const below = await blankSubmodules(top, paths, context);
      return await runGit(args, [...strict, ...below], cwd, context, limits);
    },
  };
}

/** Blanks the programs of submodules, recursively. */
async function blankSubmodules(
  top: string,
  paths: string[],
  context: ToolContext,
): Promise<string[]> {
  const options: string[] = [];
  for (const folder of await submodules(top, paths, context)) {
    const root = await check(folder, context);
    if (root !== Deno.realPathSync(folder)) continue; // the submodule is not checked out
    const { strict } = await blankPrograms(root, context);
    options.push(...strict, ...await blankSubmodules(root, [], context));
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
  // The name of a folder may contain a line break, and forge a line.
  if (lines.length !== 3) {
    throw new UsageError("the name of a folder on the way there has two lines");
  }
  const [top, own, shared] = lines as [string, string, string];
  return { top, own, common: resolve(cwd, shared) };
}

/** Whether `git worktree add` made the folder: the repository elsewhere lists it. */
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

/** The existing folders of submodules at `paths`, or in the whole repository when it is empty. */
export async function submodules(
  top: string,
  paths: string[],
  context: ToolContext,
): Promise<string[]> {
  const asked = ["ls-files", "--stage", "-z", ...paths.length > 0 ? ["--", ...paths] : []];
  const limits = { max_output: 2 * MAX_INDEX, errors: false } as const;
  const { code, output } = await runGit(asked, [], top, context, limits);
  if (code !== 0) {
    const why = complaint(await runGit(asked, [], top, context));
    throw new UsageError(why || "the list of the repository's files cannot be read");
  }
  if (output.length > MAX_INDEX) throw new UsageError("these are too many files; name fewer");
  return output.split("\0")
    .filter((entry) => entry.startsWith(SUBMODULE))
    .map((entry) => join(top, entry.slice(entry.indexOf("\t") + 1)))
    .filter(isThere);
}

/** The mode of a submodule in the index. */
const SUBMODULE = "160000 ";
/** Characters of a list of files: about 300,000 files. */
const MAX_INDEX = 32_000_000;

function isThere(folder: string): boolean {
  try {
    return Deno.statSync(folder).isDirectory;
  } catch {
    return false;
  }
}

/** Whether a path exists and, with links resolved, is inside the folders of the call. */
function contains(path: string, { paths }: ToolContext): boolean {
  try {
    return paths.contains(Deno.realPathSync(path));
  } catch {
    return false;
  }
}

/**
 * Refuses links that lead outside, since git writes through links in its folder (logs, the message of a
 * commit, the index) and reads branches and objects through them. Refuses pipes, at which git would wait
 * for ever. Folders that no command here opens are not checked.
 *
 * @throws UsageError
 */
async function checkLinks(
  folder: string,
  context: ToolContext,
  unused: string[] = UNUSED,
): Promise<void> {
  context.signal.throwIfAborted();
  for await (const { name, isFile, isDirectory, isSymlink } of Deno.readDir(folder)) {
    if (isFile || unused.includes(name)) continue;
    const path = join(folder, name);
    if (isDirectory) await checkLinks(path, context, []);
    if (isSymlink && !leadsInside(path, context)) {
      throw new UsageError(`in this repository ${path} is a link that leads outside the worktree`);
    }
    if (isPipe(path)) throw new UsageError(`in this repository ${path} is no file`);
  }
}

/** Hooks, and the repositories of submodules and of linked worktrees. */
const UNUSED = ["hooks", "annex", "modules", "worktrees"];

function leadsInside(path: string, { paths }: ToolContext): boolean {
  try {
    paths.resolve(path);
    return true;
  } catch {
    return false;
  }
}

/** Whether a path is a pipe or a device. Sockets cannot be opened, and git's own monitor has one. */
function isPipe(path: string): boolean {
  try {
    const { isFifo, isCharDevice, isBlockDevice } = Deno.statSync(path);
    return isFifo === true || isCharDevice === true || isBlockDevice === true;
  } catch {
    return false; // a broken link
  }
}

/**
 * Checks the folders that objects are borrowed from: by a link, or by `info/alternates`, recursively.
 *
 * @throws UsageError
 */
async function checkObjects(folder: string, context: ToolContext, depth = 0): Promise<void> {
  if (!contains(folder, context) || depth > ALTERNATES) {
    throw new UsageError(
      `this repository borrows its history from ${folder}, outside the worktree`,
    );
  }
  if (depth > 0) await checkLinks(folder, context, []);
  for (const line of (await alternates(join(folder, "info", "alternates"))).split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    if (line.startsWith('"')) throw new UsageError("the repository's alternates are quoted");
    await checkObjects(resolve(folder, line), context, depth + 1);
  }
}

/** The depth to which git itself follows alternates. */
const ALTERNATES = 5;
/** Bytes of a list of alternates. */
const MAX_LIST = 100_000;

async function alternates(path: string): Promise<string> {
  try {
    if (Deno.statSync(path).size <= MAX_LIST) return await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "";
  }
  throw new UsageError("the repository's list of alternates cannot be read");
}
