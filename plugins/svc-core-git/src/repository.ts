import { dirname, join, relative, resolve } from "node:path";
import type { ProcessResult, ToolContext } from "../../../src/plugins/api.ts";
import { blankPrograms } from "./programs.ts";
import { complaint, type Limits, runGit, UsageError } from "./run.ts";

/** A repository whose files and history all lie where this call may read and write. */
interface Repository {
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

/** The folders of submodules that are there, among `places` or anywhere in a repository. */
export async function submodules(
  top: string,
  places: string[],
  context: ToolContext,
): Promise<string[]> {
  const asked = ["ls-files", "--stage", "-z", ...places.length > 0 ? ["--", ...places] : []];
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

/** The mode of its entry. */
const SUBMODULE = "160000 ";
/** Characters of a list of files: some 300,000 of them. */
const MAX_INDEX = 32_000_000;

function isThere(folder: string): boolean {
  try {
    return Deno.statSync(folder).isDirectory;
  } catch {
    return false;
  }
}

/** Whether a place is there and, without links, is this call's. */
function contains(path: string, { paths }: ToolContext): boolean {
  try {
    return paths.contains(Deno.realPathSync(path));
  } catch {
    return false;
  }
}

/**
 * Git writes through links in its folder (logs, the message of a commit, the index), and reads branches
 * and objects through them: none may lead elsewhere. It would wait for ever at a pipe. Not looked at is
 * what no command here opens.
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

/** Hooks, and the repositories of submodules and of other linked worktrees. */
const UNUSED = ["hooks", "annex", "modules", "worktrees"];

function leadsInside(path: string, { paths }: ToolContext): boolean {
  try {
    paths.resolve(path);
    return true;
  } catch {
    return false;
  }
}

/** Or a device. A socket is that of git's own monitor, and cannot be opened. */
function isPipe(path: string): boolean {
  try {
    const { isFifo, isCharDevice, isBlockDevice } = Deno.statSync(path);
    return isFifo === true || isCharDevice === true || isBlockDevice === true;
  } catch {
    return false; // a link to nothing
  }
}

/**
 * Objects may be borrowed: by a link, or from the folders that `info/alternates` lists, and those from
 * others.
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

/** Git itself follows alternates of alternates no further. */
const ALTERNATES = 5;
/** Bytes of a list of them. */
const MAX_LIST = 100_000;

async function alternates(path: string): Promise<string> {
  try {
    if (Deno.statSync(path).size <= MAX_LIST) return await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "";
  }
  throw new UsageError("the repository's list of alternates cannot be read");
}
