import { dirname, join, resolve } from "node:path";
import { errorMessage } from "../platform/error.ts";
import { jsonOr, lstatIfExists, readTextIfExists, tryRemove } from "../platform/files.ts";
import { writePrivate } from "./files.ts";
import { baselineFiles, type Change, type Checkpoints, type Kept } from "./checkpoints.ts";

/**
 * Runs Git in the worktree and returns what it prints.
 *
 * @param index path of the index that it uses
 * @throws Error when it fails
 */
export type Git = (
  args: string[],
  request: { index: string; input?: string },
) => Promise<Uint8Array<ArrayBuffer>>;

/** The files that Git finds to differ from an index, and those that it does not know. */
type Status = Map<string, Tracked | undefined>;

/** A file of the index. */
interface Tracked {
  /** The id of its content. */
  id: string;
  mode: number;
}

/** The most files that are compared. */
const MAX_FILES = 2000;
/** The mode of a symbolic link in an index. */
const LINK = 0o120000;
/** Paths in one command line. */
const MAX_PATHS = 500;

/**
 * What a Git worktree contains before the first command of a turn: a copy of the index, and the contents of the files
 * that differ from it or that it does not have. The contents of all others are objects of the repository.
 */
export class Baseline {
  /** Files that differ from the index, or are not in it. */
  readonly files: ReadonlyMap<string, Kept | null>;
  readonly #checkpoints: Checkpoints;
  readonly #turn: number;

  private constructor(
    checkpoints: Checkpoints,
    turn: number,
    files: ReadonlyMap<string, Kept | null>,
  ) {
    this.#checkpoints = checkpoints;
    this.#turn = turn;
    this.files = files;
  }

  /** @returns why the changes of commands cannot be known, where they cannot */
  static async take(checkpoints: Checkpoints, turn: number, git: Git): Promise<Baseline | string> {
    const { worktree, max_size } = checkpoints.options;
    const found = repository(worktree);
    if (found === undefined) return "the worktree is not in a Git repository";
    const index = indexCopy(checkpoints, turn);
    copyIndex(found.index, index);
    // A folder of a home that is a repository, for example.
    const ignored = found.prefix !== "" &&
      await git(["check-ignore", "-q", "."], { index }).then(() => true, () => false);
    if (ignored) return "Git ignores the worktree";
    let status: Status;
    try {
      status = await statusOf(git, index, found.prefix);
    } catch (error) {
      return failed(error);
    }
    if (status.size > MAX_FILES) {
      tryRemove(index);
      return `more than ${MAX_FILES} files are not committed`;
    }
    const files = new Map<string, Kept | null>();
    let left = max_size / 2;
    for (const path of status.keys()) {
      const kept = await checkpoints.capture(
        checkpoints.path(path),
        Math.min(checkpoints.largest, left),
      );
      if (kept === undefined) continue;
      files.set(path, kept);
      if (kept?.sha256 !== undefined) left -= kept.size;
    }
    const text = JSON.stringify([...files]);
    writePrivate(listFile(checkpoints, turn), text);
    return new Baseline(checkpoints, turn, files);
  }

  /** The baseline of a turn whose process has ended; undefined when it was not finished. */
  static read(checkpoints: Checkpoints, turn: number): Baseline | undefined {
    const text = readTextIfExists(listFile(checkpoints, turn));
    const { data } = baselineFiles.safeParse(jsonOr(text ?? "", undefined));
    return data && new Baseline(checkpoints, turn, new Map(data));
  }

  /** @returns why the changes of commands cannot be known, where they cannot */
  async compare(): Promise<Change[] | string> {
    const checkpoints = this.#checkpoints;
    const { worktree, git, max_size } = checkpoints.options;
    const found = repository(worktree);
    if (found === undefined || typeof git === "string") return "the Git repository is gone";
    const index = indexCopy(checkpoints, this.#turn);
    // By the clock of the file system, as the times of the files.
    const since = lstatIfExists(listFile(checkpoints, this.#turn))?.ctime?.getTime() ?? 0;
    try {
      const status = await statusOf(git, index, found.prefix);
      const paths = new Set([...this.files.keys(), ...status.keys()]);
      if (paths.size > MAX_FILES) return `commands changed more than ${MAX_FILES} files`;
      const objects = new Map(
        [...status].flatMap(([path, tracked]) =>
          tracked === undefined || this.files.has(path) ? [] : [[path, tracked]]
        ),
      );
      const committed = await this.#committed(objects, git, index);
      const changes: Change[] = [];
      let left = max_size / 2;
      for (const path of paths) {
        // A list that came with the worktree may name any file.
        if (!checkpoints.isInside(path)) continue;
        const absolute = checkpoints.path(path);
        let before = this.files.get(path) ?? committed.get(path) ?? null;
        // A file that Git had ignored until now.
        const old = before === null && !this.files.has(path) &&
          (lstatIfExists(absolute)?.ctime?.getTime() ?? since) < since;
        if (old) continue;
        const most = Math.min(checkpoints.largest, left);
        const after = await checkpoints.capture(absolute, most) ?? null;
        if (after?.sha256 !== undefined) left -= after.size;
        const runs = before !== null && (before.mode & 0o111) !== 0;
        // Of the permission bits, the index has only the right to execute.
        if (before !== null && after !== null && committed.has(path)) {
          const mode = (after.mode & ~0o111) | (runs ? (after.mode & 0o444) >> 2 : 0);
          before = { ...before, mode };
        }
        changes.push({ path, before, after });
      }
      return changes;
    } catch (error) {
      return failed(error);
    }
  }

  /** Keeps the contents of files of the index. */
  async #committed(
    tracked: Map<string, Tracked>,
    git: Git,
    index: string,
  ): Promise<Map<string, Kept>> {
    const checkpoints = this.#checkpoints;
    const sizes = await sizesOf([...tracked.keys()], git, index);
    let left = checkpoints.options.max_size / 2; // all of them are in memory at once
    const wanted = [...tracked].filter(([path]) => {
      const size = sizes.get(path) ?? Infinity;
      if (size > Math.min(checkpoints.largest, left)) return false;
      left -= size;
      return true;
    });
    const ids = new Set(wanted.map(([, { id }]) => id));
    const objects = await contentsOf(ids, git, index);
    const result = new Map<string, Kept>();
    for (const [path, { id, mode }] of tracked) {
      const size = sizes.get(path) ?? 0;
      const content = objects.get(id);
      const bits = (mode & 0o111) !== 0 || mode === LINK ? 0o777 : 0o666;
      // A filter, or a conversion of line ends, made the file from the object.
      const missing = size > checkpoints.largest || !ids.has(id)
        ? "it is too large"
        : content === undefined
        ? "Git does not have it"
        : content.length !== size
        ? "Git converts it"
        : undefined;
      result.set(
        path,
        missing === undefined
          ? await checkpoints.keep(content!, bits, mode === LINK ? true : undefined)
          : { missing, size, mode: bits },
      );
    }
    return result;
  }

  /** Removes the files of a turn's baseline. */
  static remove(checkpoints: Checkpoints, turn: number): void {
    tryRemove(indexCopy(checkpoints, turn));
    tryRemove(listFile(checkpoints, turn));
  }
}

function failed(error: unknown): string {
  return `comparing failed: ${errorMessage(error).replace(/\.$/, "")}`;
}

function indexCopy({ folder }: Checkpoints, turn: number): string {
  return join(folder, `${turn}.index`);
}

function listFile({ folder }: Checkpoints, turn: number): string {
  return join(folder, `${turn}.files`);
}

/** The index of the repository that a folder is in, and the path of the folder in it; ends with a slash, or is empty. */
function repository(folder: string): { index: string; prefix: string } | undefined {
  for (let at = folder;; at = dirname(at)) {
    const git = join(at, ".git");
    const info = lstatOrNone(git);
    if (info?.isDirectory) return { index: join(git, "index"), prefix: prefixIn(at, folder) };
    if (info?.isFile) {
      const [, elsewhere] = /^gitdir:\s*(.*?)\s*$/m.exec(readTextIfExists(git) ?? "") ?? [];
      return elsewhere === undefined
        ? undefined
        : { index: join(resolve(at, elsewhere), "index"), prefix: prefixIn(at, folder) };
    }
    if (at === dirname(at)) return undefined;
  }
}

function prefixIn(root: string, folder: string): string {
  return root === folder ? "" : `${folder.slice(root === "/" ? 1 : root.length + 1)}/`;
}

function lstatOrNone(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(path);
  } catch {
    return undefined; // not there, or closed to this process
  }
}

/**
 * Copies an index with its time, rounded down: Git compares the content of files that are not older than that. A
 * repository without commits and added files has none.
 */
function copyIndex(from: string, to: string): void {
  const mtime = lstatOrNone(from)?.mtime;
  if (!mtime) return;
  writePrivate(to, Deno.readFileSync(from));
  const seconds = Math.floor(mtime.getTime() / 1000);
  Deno.utimeSync(to, seconds, seconds);
}

/** One record of `git status --porcelain=v2 -z`: a file that differs from the index, an unmerged or an unknown one. */
const RECORD =
  /^(?:1 .(\S) (\S)\S* \d+ (\d+) \d+ [0-9a-f]+ ([0-9a-f]+) |u \S+ \S+ (?:\d+ ){4}(?:[0-9a-f]+ ){3}|\? )([^]+)$/;

async function statusOf(git: Git, index: string, prefix: string): Promise<Status> {
  const options = ["--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"];
  const args = ["status", ...options, "--ignore-submodules=all", "--", "."];
  const text = new TextDecoder().decode(await git(args, { index }));
  const status: Status = new Map();
  for (const record of text.split("\0")) {
    const [, differs, submodule, mode = "", id = "", path = ""] = RECORD.exec(record) ?? [];
    const name = path.startsWith(prefix) ? path.slice(prefix.length) : "";
    // A folder is another repository. A name that is not UTF-8 cannot be opened.
    const other = name === "" || name.endsWith("/") || name.includes("\ufffd");
    if (other || differs === "." || submodule === "S" || /^\.svc(\/|$)/.test(name)) continue;
    status.set(name, /[1-9a-f]/.test(id) ? { id, mode: parseInt(mode, 8) } : undefined);
  }
  return status;
}

/** The sizes of files as Git last saw them, by their paths. */
async function sizesOf(paths: string[], git: Git, index: string): Promise<Map<string, number>> {
  const sizes = new Map<string, number>();
  for (let at = 0; at < paths.length; at += MAX_PATHS) {
    const args = [
      "--literal-pathspecs",
      "ls-files",
      "--debug",
      "-z",
      "--",
      ...paths.slice(at, at + MAX_PATHS),
    ];
    const text = new TextDecoder().decode(await git(args, { index }));
    for (
      const [, path, size] of text.matchAll(/([^\0]+)\0(?: {2}\w+: .*\n){4} {2}size: (\d+)\t.*\n/g)
    ) {
      sizes.set(path!, Number(size));
    }
  }
  return sizes;
}

/** The contents of objects, by their ids. */
async function contentsOf(
  ids: ReadonlySet<string>,
  git: Git,
  index: string,
): Promise<Map<string, Uint8Array<ArrayBuffer>>> {
  const found = new Map<string, Uint8Array<ArrayBuffer>>();
  if (ids.size === 0) return found;
  const input = [...ids].map((id) => `${id}\n`).join("");
  const bytes = await git(["cat-file", "--batch"], { index, input });
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf(10, at);
    if (end < 0) break;
    const [id = "", , size] = new TextDecoder().decode(bytes.subarray(at, end)).split(" ");
    at = end + 1;
    if (size === undefined) continue; // `<id> missing`
    found.set(id, bytes.slice(at, at + Number(size)));
    at += Number(size) + 1;
  }
  return found;
}
