import { basename, dirname, join } from "node:path";
import type { ToolContext } from "../../../src/plugins/api.ts";
import { assertInPlace, makeFolders, removeFolders } from "./folders.ts";

/**
 * Makes `text` the content of the file at `path` (real and absolute), which stays the same file: its
 * mode, its owner and its other hard links are kept. A reader sees the old content or the new, save
 * where keeping the file what it is only leaves writing into it.
 *
 * @param before the file as it was read; undefined when there was none.
 * @throws Error a sentence, when the file is no longer what `before` says.
 */
export async function save(
  path: string,
  text: string,
  before: Deno.FileInfo | undefined,
  context: ToolContext,
): Promise<void> {
  const bytes = new TextEncoder().encode(text);
  if (before === undefined) return await create(path, bytes, { createNew: true }, context);
  const replaced = (before.nlink ?? 1) === 1 && await replace(path, bytes, before, context);
  if (replaced) return;
  assertUnchanged(path, before);
  await write(path, bytes, { write: true, truncate: true }, context);
}

/** Adds `text` to the end of the file at `path`, which need not exist. */
export async function append(path: string, text: string, context: ToolContext): Promise<void> {
  const bytes = new TextEncoder().encode(text);
  await create(path, bytes, { append: true, create: true }, context);
}

/** Writes a file that may be missing along with its folders. */
async function create(
  path: string,
  bytes: Uint8Array,
  options: Deno.OpenOptions,
  context: ToolContext,
): Promise<void> {
  const made = makeFolders(path, context.paths);
  try {
    await write(path, bytes, { write: true, ...options }, context);
  } catch (error) {
    removeFolders(made);
    throw error;
  }
}

/** Renames a finished copy into place; false, with nothing changed, when that cannot be done. */
async function replace(
  path: string,
  bytes: Uint8Array,
  before: Deno.FileInfo,
  context: ToolContext,
): Promise<boolean> {
  const { paths } = context;
  const suffix = crypto.randomUUID().slice(0, 8);
  const copy = join(dirname(path), `.${basename(path).slice(0, 200)}.${suffix}.tmp`);
  // A file outside the worktree may be approved without its folder.
  if (!paths.contains(copy)) return false;
  const mode = (before.mode ?? 0o644) & 0o777; // set-id bits do not survive a write anywhere
  // A rename asks nobody whether the file itself may be written: its mode, or the policy, may say no.
  (await paths.open(path, { write: true })).close();
  let copied: Deno.FileInfo;
  try {
    copied = await write(copy, bytes, { write: true, createNew: true, mode }, context);
  } catch (error) {
    remove(copy);
    if (error instanceof Deno.errors.PermissionDenied) return false; // the folder is read-only
    throw error;
  }
  try {
    if (copied.uid !== before.uid || copied.gid !== before.gid) return remove(copy);
    // From the last look to the rename nothing waits. Who swaps the folder for a link even so must
    // have a file of the copy's random name there.
    assertInPlace(copy, paths);
    if (((copied.mode ?? mode) & 0o777) !== mode) Deno.chmodSync(copy, mode); // the umask took bits away
    assertUnchanged(path, before);
    assertInPlace(path, paths);
    Deno.renameSync(copy, path);
  } catch (error) {
    remove(copy);
    throw error;
  }
  assertInPlace(path, paths);
  return true;
}

/** Returns what the file is once it is written. */
async function write(
  path: string,
  bytes: Uint8Array,
  options: Deno.OpenOptions,
  context: ToolContext,
): Promise<Deno.FileInfo> {
  using file = await context.paths.open(path, options);
  for (let written = 0; written < bytes.length;) {
    written += await file.write(bytes.subarray(written));
  }
  await file.syncData();
  return file.statSync();
}

function assertUnchanged(path: string, before: Deno.FileInfo): void {
  const now = statIfExists(path);
  const same = now?.ino === before.ino && now?.size === before.size &&
    now?.mtime?.getTime() === before.mtime?.getTime();
  if (!same) throw new Error(`${path} was changed by someone else meanwhile; read it again`);
}

function statIfExists(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch {
    return undefined;
  }
}

function remove(path: string): false {
  try {
    Deno.removeSync(path);
  } catch {
    // never made, or moved on
  }
  return false;
}
