import { join } from "node:path";
import { concat, lstatIfExists, removeIfExists, writeAllSync } from "../platform/files.ts";

/** The mode of new files: what tools returned may have secrets in it. */
export const PRIVATE = 0o600;

/** The files of one session. While no process has the session open, only the document exists. */
export interface LogPaths {
  document: string;
  journal: string;
  /** The lock file of the running turn. */
  turn: string;
  /** The lock file of a copy of a shared session; see `shared.ts`. */
  copy: string;
  /** Tool results that the log leaves out. */
  results: string;
  /** The folder of what was attached to prompts. */
  attached: string;
  /** The folder of what tools gave and the log has only a part of. */
  kept: string;
  /** The temporary file that replaces the document. */
  replacement: string;
}

export function logPaths(directory: string, name: string): LogPaths {
  const hidden = (suffix: string) => join(directory, `.${name}.${suffix}`);
  return {
    document: join(directory, `${name}.json`),
    journal: hidden("journal"),
    turn: hidden("turn"),
    copy: hidden("copy"),
    results: hidden("results"),
    attached: hidden("attached"),
    kept: join(directory, keptFolder(name)),
    replacement: hidden("json.tmp"),
  };
}

/** The name of the folder {@linkcode LogPaths.kept}. */
export function keptFolder(session: string): string {
  return `.${session}.kept`;
}

/** An open file and its identity on disk. */
export interface HeldFile {
  file: Deno.FsFile;
  ino: number | null;
  dev: number;
}

/**
 * Opens the regular file at `path` and never follows a symbolic link there.
 *
 * @returns undefined when it does not exist
 * @throws Error when it is not a regular file
 */
export function openRegular(path: string, options: Deno.OpenOptions): HeldFile | undefined {
  while (true) {
    const info = lstatIfExists(path);
    if (info === undefined) return undefined;
    if (!info.isFile) throw new Error(`${path} is not a regular file`);
    let held: HeldFile;
    try {
      held = hold(Deno.openSync(path, options));
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) continue;
      throw error;
    }
    // Otherwise the path was replaced after the check, maybe by a link.
    if (infoIfSame(held, path) !== undefined) return held;
    held.file.close();
  }
}

/**
 * Opens the regular file at `path` for appending, and creates one that its owner alone can read when there is none.
 *
 * @throws Error when something else is there, such as a symbolic link
 */
export function openToAppend(path: string): Deno.FsFile {
  return openRegular(path, { append: true })?.file ??
    Deno.openSync(path, { append: true, createNew: true, mode: PRIVATE });
}

export function hold(file: Deno.FsFile): HeldFile {
  const { ino, dev } = file.statSync();
  return { file, ino, dev };
}

/** The information about `path`; undefined when it is no longer the held file. */
export function infoIfSame(held: HeldFile, path: string): Deno.FileInfo | undefined {
  const info = lstatIfExists(path);
  return info?.ino === held.ino && info.dev === held.dev ? info : undefined;
}

/** Bytes up to which chunks are written at once. */
const AT_ONCE = 1024 * 1024;

/** Writes chunks one after the other: in a single write, which other programs see as a whole, unless they are large. */
export function writeChunks(file: Deno.FsFile, chunks: Uint8Array[]): void {
  const joined = lengthOf(chunks) <= AT_ONCE ? [concat(chunks)] : chunks;
  for (const chunk of joined) writeAllSync(file, chunk);
}

export function lengthOf(chunks: Uint8Array[]): number {
  return chunks.reduce((sum, { length }) => sum + length, 0);
}

/** Writes a new file that its owner alone can read, in place of what is there. */
export function writePrivate(path: string, content: string | Uint8Array<ArrayBuffer>): void {
  removeIfExists(path);
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  Deno.writeFileSync(path, bytes, { createNew: true, mode: PRIVATE });
}

/** Creates a temporary file and replaces one that a crash left. */
export function createTemporary(path: string, options: Deno.OpenOptions): HeldFile {
  const fresh = { read: true, write: true, createNew: true, ...options };
  try {
    return hold(Deno.openSync(path, fresh));
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    removeIfExists(path);
    return hold(Deno.openSync(path, fresh));
  }
}

/** Where what the turns of a session changed is kept. */
export function checkpointFolder(state: string, session: string): string {
  return join(state, "checkpoints", "sessions", session);
}

/**
 * Removes a content that a session keeps.
 *
 * @returns whether no other session keeps it, so that its space is free
 */
export function dropContent(folder: string, name: string): boolean {
  const own = join(folder, name);
  removeIfExists(own);
  const shared = join(folder, "..", "..", "contents", name);
  const info = lstatIfExists(shared);
  if ((info?.nlink ?? 1) > 1) return false;
  removeIfExists(shared);
  return true;
}

/** Whether a folder of the checkpoints of a session is a link, which may lead anywhere. */
export function isLinked(state: string, session: string): boolean {
  const root = join(state, "checkpoints");
  const folders = [root, join(root, "contents"), join(root, "sessions")];
  return [...folders, checkpointFolder(state, session)]
    .some((folder) => lstatIfExists(folder)?.isSymlink);
}

/** Removes what the turns of a session changed. */
export function removeCheckpoints(state: string, session: string): void {
  const folder = checkpointFolder(state, session);
  if (lstatIfExists(folder) === undefined || isLinked(state, session)) return;
  for (const { name } of Deno.readDirSync(folder)) dropContent(folder, name);
  Deno.removeSync(folder, { recursive: true });
}
