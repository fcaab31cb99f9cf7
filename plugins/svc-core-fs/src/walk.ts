import { join, relative } from "node:path";
import type { ToolContext } from "../../../src/plugins/api.ts";
import type { Glob, GlobState } from "./glob.ts";
import { IgnoreRules } from "./ignore_rules.ts";

/** An entry below a folder that a pattern matched. */
export interface Found {
  /** Relative to the folder, with forward slashes. */
  path: string;
  entry: Deno.DirEntry;
}

interface Folder {
  /** Empty, or with a slash at its end. */
  path: string;
  state: GlobState;
  rules: IgnoreRules | undefined;
}

/** Entries after which a walk gives up. */
export const MAX_ENTRIES = 500_000;
/** Size in bytes of a folder that is read asynchronously. */
const LARGE_FOLDER = 64 * 1024;
/** Entries of one batch. */
const BATCH = 256;
const MAX_IGNORE_FILE = 1024 * 1024;

/**
 * Yields the entries below the real path `folder` that `glob` matches and no `.gitignore` hides, folder
 * by folder; files come in the order of their paths. A name that the pattern spells out is not hidden, nor
 * are the entries below it. Links are listed and never followed, so a walk stays in its folder and has no
 * cycles. Unreadable folders are skipped. The walk stops after `limit` entries, and returns whether it was
 * complete.
 */
export async function* walk(
  folder: string,
  glob: Glob,
  context: ToolContext,
  limit = MAX_ENTRIES,
): AsyncGenerator<Found[], boolean> {
  const pace = new Pace(context.signal);
  const root = rootOf(folder, context);
  const prefix = relative(root, folder) === "" ? "" : `${relative(root, folder)}/`;
  const above = await rulesAbove(root, prefix, context);
  // A stack of the folders that are still to be visited, and the files between them.
  const pending: (Folder | Found)[] = [{ path: "", state: glob.start, rules: above }];
  let files: Found[] = [];
  let seen = 0;
  while (pending.length > 0) {
    const next = pending.pop()!;
    if ("entry" in next) {
      files.push(next);
      if (pending.length === 0 || files.length === BATCH) {
        yield files;
        files = [];
      }
      continue;
    }
    if (seen >= limit) break;
    const { path, state } = next;
    const entries = await list(join(folder, path), pace, limit - seen);
    seen += entries.length;
    const hasRules = entries.some(({ name, isFile }) => isFile && name === ".gitignore");
    const rules = hasRules ? await readRules(root, prefix + path, context, next.rules) : next.rules;
    const children: (Folder | Found)[] = [];
    for (const entry of entries) {
      if (pace.due) await pace.rest();
      const after = glob.step(state, entry.name);
      if (after.length === 0) continue;
      const below = path + entry.name;
      const ignored = rules?.ignores(prefix + below, entry.isDirectory) ?? false;
      if (ignored && !glob.spells(state, entry.name)) continue;
      if (glob.accepts(after) && (entry.isDirectory || !glob.folders_only)) {
        children.push({ path: below, entry });
      }
      if (entry.isDirectory) {
        children.push({ path: `${below}/`, state: after, rules: ignored ? undefined : rules });
      }
    }
    for (const child of await pace.sort(children, (a, b) => a.path > b.path)) pending.push(child);
  }
  if (files.length > 0) yield files;
  return pending.length === 0 && seen < limit;
}

/** The topmost folder whose rules apply: the worktree, or the start itself when it is outside. */
function rootOf(folder: string, { paths: { worktree } }: ToolContext): string {
  return folder === worktree || folder.startsWith(`${worktree}/`) ? worktree : folder;
}

/** The rules of the parent folders of the start; none when they hide the start itself. */
async function rulesAbove(
  root: string,
  prefix: string,
  context: ToolContext,
): Promise<IgnoreRules | undefined> {
  let rules = await readRules(root, "", context, undefined, ".git/info/exclude");
  let path = "";
  for (const name of prefix.split("/").slice(0, -1)) {
    rules = await readRules(root, path, context, rules);
    path += name;
    if (rules?.ignores(path, true)) return undefined;
    path += "/";
  }
  return rules;
}

async function readRules(
  root: string,
  folder: string,
  { paths, signal }: ToolContext,
  above: IgnoreRules | undefined,
  name = ".gitignore",
): Promise<IgnoreRules | undefined> {
  try {
    const path = join(root, folder, name);
    if (!(await Deno.lstat(path)).isFile) return above; // git does not follow links here either
    using file = await paths.open(path, { read: true });
    const bytes = new Uint8Array(Math.min((await file.stat()).size, MAX_IGNORE_FILE));
    for (let at = 0; at < bytes.length;) {
      const length = await file.read(bytes.subarray(at));
      if (length === null) break;
      at += length;
    }
    return new IgnoreRules(new TextDecoder().decode(bytes), folder, above);
  } catch {
    signal.throwIfAborted();
    return above; // the file is missing or cannot be read
  }
}

/** At most `limit` entries of a folder; no entries when it cannot be read. */
async function list(folder: string, pace: Pace, limit: number): Promise<Deno.DirEntry[]> {
  if (pace.due) await pace.rest();
  try {
    // Reading synchronously is several times faster, and a small folder takes microseconds.
    if (Deno.lstatSync(folder).size < LARGE_FOLDER) {
      return [...Deno.readDirSync(folder)].slice(0, limit);
    }
    const entries: Deno.DirEntry[] = [];
    for await (const entry of Deno.readDir(folder)) {
      entries.push(entry);
      if (entries.length === limit) break;
      if (entries.length % 256 === 0 && pace.due) await pace.rest();
    }
    return entries;
  } catch {
    pace.throwIfAborted();
    return []; // the folder is gone or cannot be read
  }
}

/** Milliseconds of work after which the event loop gets a turn, which takes one or two. */
const SLICE = 20;

/**
 * Keeps long work from blocking the event loop: `due` says when to await `rest`. They are separate because
 * awaiting costs more than most steps of the work.
 */
export class Pace {
  readonly #signal: AbortSignal;
  readonly #now: () => number;
  #since: number;

  /** @param now the time in milliseconds. */
  constructor(signal: AbortSignal, now = () => performance.now()) {
    this.#signal = signal;
    this.#now = now;
    this.#since = now();
  }

  get due(): boolean {
    return this.#now() - this.#since >= SLICE;
  }

  /** @throws what the signal was aborted with. */
  async rest(): Promise<void> {
    // Not setImmediate: a chain of those keeps Deno from polling sockets.
    await new Promise<void>((resolve) => setTimeout(resolve, 0));
    this.#signal.throwIfAborted();
    this.#since = this.#now();
  }

  throwIfAborted(): void {
    this.#signal.throwIfAborted();
  }

  /** Sorts short runs and merges them, with rests in between. */
  async sort<T>(items: T[], before: (a: T, b: T) => boolean): Promise<T[]> {
    let runs: T[][] = [];
    for (let i = 0; i < items.length; i += RUN) {
      runs.push(items.slice(i, i + RUN).sort((a, b) => before(a, b) ? -1 : 1));
      if (this.due) await this.rest();
    }
    while (runs.length > 1) {
      const merged: T[][] = [];
      for (let i = 0; i < runs.length; i += 2) {
        merged.push(await this.#merge(runs[i]!, runs[i + 1] ?? [], before));
      }
      runs = merged;
    }
    return runs[0] ?? [];
  }

  async #merge<T>(left: T[], right: T[], before: (a: T, b: T) => boolean): Promise<T[]> {
    const result: T[] = [];
    for (let i = 0, j = 0; i < left.length || j < right.length;) {
      const takeLeft = j === right.length || (i < left.length && !before(right[j]!, left[i]!));
      result.push(takeLeft ? left[i++]! : right[j++]!);
      if (result.length % 1024 === 0 && this.due) await this.rest();
    }
    return result;
  }
}

/** Items that are sorted without a rest. */
const RUN = 2000;
