import { basename, dirname, join } from "node:path";
import type { ToolContext } from "../../../src/plugins/api.ts";

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
  if (before === undefined) {
    await Deno.mkdir(dirname(path), { recursive: true });
    return await write(path, bytes, { write: true, createNew: true }, context);
  }
  const replaced = (before.nlink ?? 1) === 1 && await replace(path, bytes, before, context);
  if (replaced) return;
  await unchanged(path, before);
  await write(path, bytes, { write: true, truncate: true }, context);
}

/** Adds `text` to the end of the file at `path`, which need not exist. */
export async function append(path: string, text: string, context: ToolContext): Promise<void> {
  await Deno.mkdir(dirname(path), { recursive: true });
  const bytes = new TextEncoder().encode(text);
  await write(path, bytes, { append: true, create: true }, context);
}

/** Renames a finished copy into place; false, with nothing changed, when that cannot be done. */
async function replace(
  path: string,
  bytes: Uint8Array,
  before: Deno.FileInfo,
  context: ToolContext,
): Promise<boolean> {
  const suffix = crypto.randomUUID().slice(0, 8);
  const copy = join(dirname(path), `.${basename(path).slice(0, 200)}.${suffix}.tmp`);
  // A file outside the worktree may be approved without its folder.
  if (!context.paths.contains(copy)) return false;
  const mode = (before.mode ?? 0o644) & 0o7777;
  // A rename asks nobody whether the file itself may be written: its mode, or the policy, may say no.
  (await context.paths.open(path, { write: true })).close();
  try {
    await write(copy, bytes, { write: true, createNew: true, mode }, context);
  } catch (error) {
    await remove(copy);
    if (error instanceof Deno.errors.PermissionDenied) return false; // the folder is read-only
    throw error;
  }
  try {
    await Deno.chmod(copy, mode); // the process's umask took bits away
    const { uid, gid } = await Deno.stat(copy);
    if (uid !== before.uid || gid !== before.gid) return await remove(copy);
    await unchanged(path, before);
    await Deno.rename(copy, path);
    return true;
  } catch (error) {
    await remove(copy);
    throw error;
  }
}

async function write(
  path: string,
  bytes: Uint8Array,
  options: Deno.OpenOptions,
  context: ToolContext,
): Promise<void> {
  using file = await context.paths.open(path, options);
  for (let written = 0; written < bytes.length;) {
    written += await file.write(bytes.subarray(written));
  }
  await file.syncData();
}

async function unchanged(path: string, before: Deno.FileInfo): Promise<void> {
  const now = await Deno.stat(path).catch(() => undefined);
  const same = now?.ino === before.ino && now?.size === before.size &&
    now?.mtime?.getTime() === before.mtime?.getTime();
  if (!same) throw new Error(`${path} was changed by someone else meanwhile; read it again`);
}

async function remove(path: string): Promise<false> {
  await Deno.remove(path).catch(() => {});
  return false;
}
