import { join, resolve } from "node:path";
import type { ToolContext } from "../../../src/plugins/api.ts";
import { UsageError } from "./usage_error.ts";

/** Whether a place is there and, without links, is this call's. */
export function contains(path: string, { paths }: ToolContext): boolean {
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
export async function checkLinks(
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
export async function checkObjects(folder: string, context: ToolContext, depth = 0): Promise<void> {
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
