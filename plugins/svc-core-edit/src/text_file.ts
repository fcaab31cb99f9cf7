import { basename, dirname, join } from "node:path";
import type { ToolContext, ToolPaths } from "../../../src/plugins/api.ts";

/** The content of a text file. */
export interface TextFile {
  /** Absolute path, links resolved. */
  path: string;
  info: Deno.FileInfo;
  /** Includes the byte order mark; line ends are not converted. */
  text: string;
}

/** Bytes of the largest file that is edited or compared. */
const MAX_SIZE = 64 * 1024 * 1024;

/**
 * Metadata of the file at `absolute`; undefined when there is none.
 *
 * @param path the path that an error names
 * @throws Error when it is not a regular file
 */
export async function regularFile(
  path: string,
  absolute: string,
): Promise<Deno.FileInfo | undefined> {
  try {
    const info = await Deno.stat(absolute);
    if (info.isDirectory) throw new Error(`${path} is a directory`);
    if (!info.isFile) throw new Error(`${path} is not a regular file`);
    return info;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/**
 * Reads a text file. Undefined when there is none.
 *
 * @throws Error for a file that is too large, or not UTF-8, since writing it back would damage it.
 */
export async function readTextFile(
  path: string,
  context: ToolContext,
): Promise<TextFile | undefined> {
  const absolute = context.paths.resolve(path);
  if (await regularFile(path, absolute) === undefined) return undefined;
  using file = await context.paths.open(path, { read: true });
  const info = await file.stat();
  if (info.size > MAX_SIZE) {
    throw new Error(`${path} has ${info.size} bytes; files over ${MAX_SIZE} bytes are not edited`);
  }
  const bytes = new Uint8Array(await new Response(file.readable).arrayBuffer());
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return { path: absolute, info, text: decoder.decode(bytes) };
  } catch {
    throw new Error(`${path} is not UTF-8 text`);
  }
}

/** Milliseconds that a comparison may take before the preview shows the new text instead. */
const TIMEOUT = 1000;

/** A change of a file as a unified diff, or the whole new text when the comparison takes too long. */
export async function diffPreview(path: string, before: string, after: string): Promise<string> {
  const { createTwoFilesPatch, FILE_HEADERS_ONLY } = await import("diff");
  const options = { timeout: TIMEOUT, headerOptions: FILE_HEADERS_ONLY };
  const patch = createTwoFilesPatch(path, path, before, after, "", "", options);
  return patch ?? `${path} is replaced by:\n${after}`;
}

/**
 * Writes `text` to the file at `path` (absolute, links resolved) and keeps its mode and owner. The file is replaced
 * by a rename, so that a reader sees the old content or the new, and other hard links keep the old content: one of
 * them may be a protected file. Where a rename would change more, the file is overwritten in place.
 *
 * @param before the file's metadata when it was read; undefined for a new file
 * @throws Error when the file has changed since `before`
 */
export async function save(
  path: string,
  text: string,
  before: Deno.FileInfo | undefined,
  context: ToolContext,
): Promise<void> {
  const bytes = new TextEncoder().encode(text);
  if (before === undefined) return await create(path, bytes, { createNew: true }, context);
  if (await replace(path, bytes, before, context)) return;
  assertUnchanged(path, before);
  await write(path, bytes, { write: true, truncate: true }, context);
}

/**
 * Appends `text` to the file at `path`, which need not exist. A file with hard links is replaced, as `save` does.
 *
 * @param before the file's metadata; undefined for a new file
 */
export async function append(
  path: string,
  text: string,
  before: Deno.FileInfo | undefined,
  context: ToolContext,
): Promise<void> {
  if (hasLinks(before)) {
    const file = await readTextFile(path, context);
    return await save(path, `${file?.text ?? ""}${text}`, file?.info, context);
  }
  const bytes = new TextEncoder().encode(text);
  await create(path, bytes, { append: true, create: true }, context);
}

/**
 * Deletes the file at `path` (absolute, links resolved), in two steps where its folder is open to the call: it is
 * renamed, and `finish` deletes it, or `undo` names it as before.
 *
 * @param before the file's metadata when it was read
 * @throws Error when the file has changed since `before`
 */
export function removeFile(
  path: string,
  before: Deno.FileInfo,
  { paths }: ToolContext,
): { undo(): void; finish(): void } {
  const aside = copyOf(path);
  assertUnchanged(path, before);
  assertInPlace(path, paths);
  if (!paths.contains(aside)) {
    Deno.removeSync(path);
    return { undo: () => {}, finish: () => {} };
  }
  Deno.renameSync(path, aside);
  return { undo: () => Deno.renameSync(aside, path), finish: () => Deno.removeSync(aside) };
}

/** A new name next to a file. */
function copyOf(path: string): string {
  const suffix = crypto.randomUUID().slice(0, 8);
  return join(dirname(path), `.${basename(path).slice(0, 200)}.${suffix}.tmp`);
}

/** Writes a file and makes its missing folders. */
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

/** Replaces a file by renaming a finished copy. Returns false, with nothing changed, when that is not possible. */
async function replace(
  path: string,
  bytes: Uint8Array,
  before: Deno.FileInfo,
  context: ToolContext,
): Promise<boolean> {
  const { paths } = context;
  const copy = copyOf(path);
  // A file outside the worktree may be approved without its folder.
  if (!paths.contains(copy)) return false;
  const mode = (before.mode ?? 0o644) & 0o777; // set-id bits do not survive a write anywhere
  // A rename needs no permission to write the file itself: check its mode and the policy by opening it. The policy
  // opens no file with hard links for writing; its folder has the same protection.
  const linked = hasLinks(before);
  (await paths.open(path, linked ? { read: true } : { write: true })).close();
  if (linked && (mode & 0o222) === 0) {
    throw new Deno.errors.PermissionDenied(`${path} is read-only`);
  }
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
    // Nothing waits between these checks and the rename. A program that swaps the folder for a link in between
    // would need a file of the copy's random name there.
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

/** Writes and syncs a file. Returns its metadata. */
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

function hasLinks(info: Deno.FileInfo | undefined): boolean {
  return (info?.nlink ?? 1) > 1;
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
    // it does not exist
  }
  return false;
}

/**
 * Makes the missing parent folders of `path` (absolute, links resolved) and returns them, the topmost first.
 *
 * Deno cannot make a folder relative to an open one, so another program may swap a folder for a link meanwhile.
 * The folders are made one at a time with a check before and after: at worst one empty folder is made elsewhere,
 * and then removed.
 *
 * @throws Error when `path` leads elsewhere meanwhile; the made folders are removed then.
 */
function makeFolders(path: string, paths: ToolPaths): string[] {
  const missing: string[] = [];
  for (let folder = dirname(path); !exists(folder); folder = dirname(folder)) missing.push(folder);
  const made: string[] = [];
  try {
    for (const folder of missing.reverse()) {
      assertInPlace(path, paths);
      if (makeFolder(folder)) made.push(folder);
      assertInPlace(path, paths);
    }
    return made;
  } catch (error) {
    removeFolders(made);
    throw error;
  }
}

/** Removes folders that `makeFolders` made, unless they are no longer empty, or another file is there now. */
function removeFolders(made: string[]): void {
  for (const folder of made.toReversed()) {
    try {
      Deno.removeSync(`${folder}/`); // the slash: never a file or a link
    } catch {
      return; // its parents are not empty either
    }
  }
}

/** @throws Error when a component of `path` has become a link. */
function assertInPlace(path: string, paths: ToolPaths): void {
  if (paths.resolve(path) !== path) {
    throw new Error(`${path} was moved meanwhile; look at it again`);
  }
}

function makeFolder(folder: string): boolean {
  try {
    Deno.mkdirSync(folder);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.AlreadyExists) return false;
    throw error;
  }
}

function exists(folder: string): boolean {
  try {
    Deno.lstatSync(folder);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) {
      return false;
    }
    throw error;
  }
}
