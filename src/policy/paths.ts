import { basename, dirname } from "node:path";
import { errorMessage, SvcError } from "../platform/error.ts";
import { exists } from "../platform/files.ts";
import type { ToolPaths } from "../plugins/api.ts";
import { keptFolder } from "../sessions/files.ts";
import { PASSWORDS } from "../store/link.ts";

/** The real path of a tool's path argument, and how the policy protects it. */
export interface Location {
  /** Absolute, without links. */
  real: string;
  /** True for the worktree and every path in it. */
  inside: boolean;
  /**
   * `read`: a file with keys, or one that another session keeps, closed to every tool. `write`: svc's state and settings and git's own files
   * under any name. They decide what an agent may do or run code later, so a change needs an approval.
   */
  protected: false | "write" | "read";
  /** Whether it is protected as `read`. */
  closed: boolean;
  /**
   * True for what sessions keep of results, and for svc's own state and settings when the agent is immutable: no
   * approval opens them for writing.
   */
  sealed: boolean;
  /** Whether it belongs to a skill outside of the worktree, which may be read. */
  skill: boolean;
  /** Whether it is what a session keeps of results, which the agent's own tools gave it. */
  kept: boolean;
}

/** The directories that {@linkcode WorktreeGuard} protects. */
export interface GuardOptions {
  worktree: string;
  /** `<worktree>/.svc` */
  state: string;
  /** `~/.config/svc` */
  user: string;
  /** Further files that hold keys. Default: none. */
  secrets?: string[];
  /** Whether the agent is immutable (specification 5.3.9). Default: no. */
  sealed?: boolean;
  /** Folders of skills. Default: none. */
  skills?: readonly string[];
  /** The agent's session and its ancestors: what they keep of results can be read. Default: none. */
  lineage?: readonly string[];
}

/** The file in `~/.config/svc` that holds the tokens of the HTTP API. */
export const TOKENS = "serve.tokens";
/** The file in `~/.config/svc` that holds the secrets of hooks. */
export const HOOKS = "serve.hooks";
/** The file in `~/.config/svc` that holds the key with which accepted runs are signed. */
export const RUNS_KEY = "serve.runs";

/** The file in `~/.config/svc` that holds the logins to MCP servers. */
export const LOGINS = "mcp-logins.json";

/** Protected wherever they are: each may belong to another agent or repository. */
const PROTECTED_NAMES = new Set([".svc", ".git"]);
/** Files of the user's directory that no approval opens: keys, tokens, and what is trusted. */
const SECRETS = ["providers.json", LOGINS, "trust.json", PASSWORDS, TOKENS, HOOKS, RUNS_KEY];

/**
 * Decides which paths belong to the worktree and which are protected (specification 5.3). Links are
 * resolved at the moment of each call. Relative paths start at the worktree, and the empty path is the
 * worktree.
 */
export class WorktreeGuard {
  readonly #options: GuardOptions;
  #sealed: WorktreeGuard | undefined;

  constructor(options: GuardOptions) {
    this.#options = { ...options, worktree: Deno.realPathSync(options.worktree) };
  }

  /** Real path of the worktree. */
  get worktree(): string {
    return this.#options.worktree;
  }

  /** Whether the agent may not change svc's own state and settings. */
  get seals(): boolean {
    return this.#options.sealed ?? false;
  }

  /** The same guard for an immutable agent (specification 5.3.9). */
  sealed(): WorktreeGuard {
    return this.#sealed ??= new WorktreeGuard({ ...this.#options, sealed: true });
  }

  /** The same guard for an agent of the last of these sessions, which descends from the others. */
  of(lineage: readonly string[]): WorktreeGuard {
    return new WorktreeGuard({ ...this.#options, lineage });
  }

  /** The protected paths as they are now, for the checks of one call. */
  context(): PathContext {
    return new PathContext(this.#options);
  }

  /** As {@linkcode PathContext.locate}, with the protected paths as they are now. */
  locate(path: string): Location {
    return this.context().locate(path);
  }

  /** As {@linkcode PathContext.callPaths}, with the protected paths as they are now. */
  callPaths(approved: string[]): ToolPaths {
    return this.context().callPaths(approved);
  }
}

/** The paths of one call. Each use resolves its path anew, since the disk may change after the approval. */
class CallPaths implements ToolPaths {
  readonly #context: PathContext;
  readonly #approved: string[];

  constructor(context: PathContext, approved: string[]) {
    this.#context = context;
    this.#approved = approved;
  }

  get worktree(): string {
    return this.#context.worktree;
  }

  contains(path: string): boolean {
    const inside = within(this.worktree, path) || this.#isApproved(path) ||
      this.#context.isSkill(path);
    return inside && !this.#context.isClosed(path);
  }

  /** @throws SvcError `bad_path`, or Deno.errors.PermissionDenied for a path that this call may not use. */
  resolve(path: string): string {
    const { real, inside, closed } = this.#context.locate(path);
    if (closed) throw refused(`${path} ${this.#context.closedBecause(real)}`);
    if (inside || this.#isApproved(real) || this.#context.isSkill(real)) return real;
    throw refused(`${path} leads outside the worktree, to ${real}, and was not approved`);
  }

  /**
   * @throws as {@linkcode resolve} and `Deno.open` do; Deno.errors.PermissionDenied for writing to a file that has
   * hard links, since one of its names may be protected; SvcError `no_regular_file` for a directory, pipe or
   * device; SvcError `path_changed` when the path led to another file once it was open. Nothing has been
   * truncated then.
   */
  async open(path: string, options: Deno.OpenOptions): Promise<Deno.FsFile> {
    const real = this.resolve(path);
    const { write, append, create, createNew, truncate } = options;
    const changes = write || append || create || createNew || truncate;
    if (changes) this.#assertWritable(path, real);
    const existing = lstatIfExists(real);
    // Opening a pipe blocks until its other end is opened, and a device may never end.
    if (existing !== undefined && !existing.isFile) throw notRegular(path);
    // `createNew` follows no link, so the created file is the requested one. Truncation waits for the check.
    const fresh = createNew === true || (create === true && existing === undefined);
    const careful = { ...options, create: false, createNew: fresh, truncate: false };
    const file = await Deno.open(real, careful);
    const opened = file.statSync();
    try {
      this.#verify(path, real, opened);
      if (changes && (opened.nlink ?? 1) > 1 && this.#context.protection(real) === false) {
        throw refused(`${path} has other names (hard links), and one of them may be protected`);
      }
      if (truncate) file.truncateSync(0);
      return file;
    } catch (error) {
      file.close();
      if (fresh) removeCreated(real, opened);
      throw error;
    }
  }

  /** Throws unless `path` still leads to `real` and that is the opened file. */
  #verify(path: string, real: string, opened: Deno.FileInfo): void {
    if (!opened.isFile) throw notRegular(path);
    if (this.#context.holdsKeys(opened)) throw refused(`${path} ${HOLDS_KEYS}`);
    const checks = dirname(real) === this.worktree ? 1 : CHECKS;
    if (this.resolve(path) === real && isStillAt(real, opened, checks)) return;
    throw new SvcError("path_changed", `${path} was replaced while it was being opened.`, {
      hint: "Nothing was read or written; look at it again.",
    });
  }

  #isApproved(real: string): boolean {
    return this.#approved.some((root) => within(root, real));
  }

  /** A protected path needs an approval of its own; the approval of a parent directory is not enough. */
  #assertWritable(path: string, real: string): void {
    if (this.#context.isSealed(real)) {
      throw refused(`${path} is svc's own, which this agent cannot change`);
    }
    if (this.#context.protection(real) === false && !this.#context.isSkill(real)) return;
    const approved = this.#approved.some((root) =>
      within(root, real) &&
      (this.#context.protection(root) !== false || this.#context.isSkill(root))
    );
    if (!approved) throw refused(`${path} is protected, and changing it was not approved`);
  }
}

/**
 * The real paths of the protected directories, for the checks of one call: a search opens thousands of files. Any
 * tool call and any other program may change them, so a later call needs a new context, and so does a call that
 * has waited for an operator.
 */
export class PathContext {
  readonly worktree: string;
  readonly #user: string;
  readonly #secrets: string[];
  readonly #own: string[];
  readonly #sealed: boolean;
  readonly #state: string;
  readonly #lineage: readonly string[];
  readonly #skills: readonly string[];
  readonly #heads = new Map<string, boolean>();
  readonly #keyFiles: string[];
  #keys: Deno.FileInfo[] | undefined;
  #git: string | undefined;

  constructor(
    { worktree, state, user, secrets: further = [], sealed = false, skills = [], lineage = [] }:
      GuardOptions,
  ) {
    this.worktree = worktree;
    this.#skills = skills;
    this.#state = state;
    this.#lineage = lineage;
    const realUser = realFolder(worktree, user);
    const inWorktree = (path: string) => fold(realPathOrName(worktree, path));
    const links = linksIn(realUser);
    const inUser = SECRETS.map((name) => {
      const path = `${realUser}/${name}`;
      return (links === undefined || links.get(name)) ? realPathOrName(realUser, path) : path;
    });
    this.#user = fold(realUser);
    this.#keyFiles = [...inUser.filter((_, i) => links?.has(SECRETS[i]!) ?? true), ...further];
    this.#secrets = [...inUser.map(fold), ...further.map(inWorktree)];
    this.#own = [this.#user, inWorktree(state)];
    this.#sealed = sealed;
  }

  /** @throws SvcError `bad_path` when the path cannot be resolved. */
  locate(path: string): Location {
    const real = realPath(this.worktree, path);
    const inside = within(this.worktree, real);
    const kept = this.#keptBy(real) === "own";
    const protection = () => this.protection(real);
    return {
      real,
      inside,
      closed: this.isClosed(real),
      get protected() {
        return protection();
      },
      sealed: this.isSealed(real),
      skill: this.isSkill(real),
      kept,
    };
  }

  /**
   * File access for one call.
   *
   * @param approved real paths that the operator approved for this call, each with everything in it:
   * outside the worktree, or protected.
   */
  callPaths(approved: string[]): ToolPaths {
    return new CallPaths(this, approved);
  }

  /** Whether a file holds keys. It may have been opened under another name: a hard link, a second mount. */
  holdsKeys(opened: Deno.FileInfo): boolean {
    this.#keys ??= this.#keyFiles.flatMap((path) => statIfReadable(path) ?? []);
    return this.#keys.some((each) => isSameFile(opened, each));
  }

  /** See {@linkcode Location.protected}. */
  protection(real: string): Location["protected"] {
    if (this.isClosed(real)) return "read";
    const path = fold(real);
    const named = this.#names(real).some((name) => PROTECTED_NAMES.has(name));
    if (named || this.#own.some((root) => within(root, path))) return "write";
    this.#git ??= fold(realPathOrName(this.worktree, `${this.worktree}/.git`));
    if (within(this.#git, path)) return "write";
    return this.#isInRepository(real) ? "write" : false;
  }

  /** Whether {@linkcode Location.protected} is `read`. Takes less time, since git's files are not looked for. */
  isClosed(real: string): boolean {
    const path = fold(real);
    // Backups, locks and temporary copies of a keys file are in the same directory, under longer names.
    const holdsKeys = dirname(path) === this.#user &&
      SECRETS.some((name) => basename(path).includes(name));
    return holdsKeys || this.#secrets.includes(path) || this.#keptBy(real) === "other";
  }

  /** Why no tool may touch a path that is protected as `read`. */
  closedBecause(real: string): string {
    return this.#keptBy(real) === undefined
      ? HOLDS_KEYS
      : "is what another session keeps of its results";
  }

  /** Whose session keeps a path; undefined for all others. */
  #keptBy(real: string): "own" | "other" | undefined {
    if (!KEPT.test(real)) return undefined;
    const folder = KEPT.exec(real)![0];
    const state = realPathOrName(this.worktree, this.#state);
    const own = this.#lineage.some((name) => folder === `${state}/sessions/${keptFolder(name)}`);
    if (own) return "own";
    const path = fold(real);
    const isState = this.#names(real).includes(".svc") ||
      this.#own.some((root) => within(root, path));
    return isState ? "other" : undefined;
  }

  /** See {@linkcode Location.skill}. */
  isSkill(real: string): boolean {
    if (within(this.worktree, real)) return false;
    return this.#skills.some((folder) => within(realPathOrName(this.worktree, folder), real));
  }

  /** See {@linkcode Location.sealed}. */
  isSealed(real: string): boolean {
    if (this.#keptBy(real) !== undefined) return true;
    if (!this.#sealed) return false;
    const path = fold(real);
    return this.#names(real).includes(".svc") || this.#own.some((root) => within(root, path));
  }

  /** Whether a path in the worktree is, or would become, part of a git repository not named `.git`. */
  #isInRepository(real: string): boolean {
    if (!within(this.worktree, real)) return false;
    for (let at = real; at !== this.worktree; at = dirname(at)) {
      if (isRepositoryWith(dirname(at), basename(at), this.#heads)) return true;
    }
    return false;
  }

  /** The names in a path; of a path in the worktree, those after the worktree. */
  #names(real: string): string[] {
    const own = within(this.worktree, real) ? real.slice(this.worktree.length) : real;
    return fold(own).split("/");
  }
}

/** A path that a session keeps, up to its folder (`keptFolder`). */
const KEPT = /^.*\/sessions\/\.[^/]+\.kept(?=\/|$)/i;

/** Links followed before a path counts as a loop, as on Linux. */
const MAX_LINKS = 40;

/**
 * The absolute path without links that the system would arrive at for `path`, read from the real
 * directory `base`. Components that do not exist are kept as written, so a file that does not exist yet
 * has the path where it would be created. A dangling link leads to its target.
 *
 * Unlike `Deno.realPath`, `..` after a link goes up from the link's target, and `..` is not folded before
 * links are resolved. `~` is an ordinary name.
 *
 * @throws SvcError `bad_path` for a NUL byte, a loop of links or a path that the process may not read.
 */
function realPath(base: string, path: string): string {
  if (path.includes("\0")) throw badPath(path, "it contains a NUL byte");
  let [current, rest] = start(base, path);
  const pending = rest.split("/").reverse();
  let missing: string | undefined; // no component under it exists
  for (let links = 0; pending.length > 0;) {
    const name = pending.pop()!;
    if (name === "" || name === ".") continue;
    if (name === "..") {
      current = dirname(current);
      if (missing !== undefined && !within(missing, current)) missing = undefined;
      continue;
    }
    const next = current === "/" ? `/${name}` : `${current}/${name}`;
    const target = missing === undefined ? linkTarget(next, path) : undefined;
    if (target === undefined) missing ??= next;
    if (!target) {
      current = next;
      continue;
    }
    if (++links > MAX_LINKS) throw badPath(path, "its links form a loop");
    if (target.startsWith("/")) current = "/";
    pending.push(...target.split("/").reverse());
  }
  return current;
}

/** True when `path` is `root` or a path in it; both absolute and without links. */
export function within(root: string, path: string): boolean {
  return path === root || path.startsWith(root === "/" ? root : `${root}/`);
}

/** The directory to start at and the path from there. `base` holds no links, so it is not resolved again. */
function start(base: string, path: string): [string, string] {
  if (!path.startsWith("/")) return [base, path];
  return within(base, path) ? [base, path.slice(base.length)] : ["/", path];
}

/** The target of the link at `entry`; empty for anything but a link, undefined when it does not exist. */
function linkTarget(entry: string, path: string): string | undefined {
  try {
    return Deno.lstatSync(entry).isSymlink ? Deno.readLinkSync(entry) : "";
  } catch (error) {
    if (isMissing(error)) return undefined;
    const closed = error instanceof Deno.errors.NotCapable;
    throw badPath(path, closed ? "this process may not look there" : errorMessage(error));
  }
}

/** The real path, or the path itself when the process may not read it: it is protected by its name then. */
function realPathOrName(base: string, path: string): string {
  try {
    return realPath(base, path);
  } catch {
    return path;
  }
}

/** As {@linkcode realPathOrName}, in one system call for a path that exists. It has no `..`. */
function realFolder(base: string, path: string): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    return realPathOrName(base, path);
  }
}

/** The entries of a folder, and whether each is a link; undefined when the folder cannot be listed. */
function linksIn(folder: string): Map<string, boolean> | undefined {
  try {
    const links = new Map<string, boolean>();
    for (const { name, isSymlink } of Deno.readDirSync(folder)) {
      links.set(fold(name), isSymlink || links.get(fold(name)) === true);
    }
    return links;
  } catch (error) {
    return error instanceof Deno.errors.NotFound ? new Map() : undefined;
  }
}

/**
 * Whether git would take a directory for a repository once it holds an entry of this name. Git takes a
 * directory of any name for a "bare" repository and runs programs that its configuration names.
 *
 * @param heads which directories hold a `HEAD`; a search asks about thousands of files
 */
function isRepositoryWith(directory: string, name: string, heads: Map<string, boolean>): boolean {
  const added = name.toLowerCase(); // a file system may ignore case
  if (added !== "head") {
    if (!heads.has(directory)) heads.set(directory, exists(`${directory}/HEAD`));
    if (!heads.get(directory)) return false;
  }
  const has = (entry: string) => added === entry || exists(`${directory}/${entry}`);
  return has("commondir") || (has("objects") && has("refs"));
}

/**
 * Some file systems take `.SVC` for `.svc`, and ignore characters when they compare names; a path is protected under
 * all of its spellings.
 */
function fold(path: string): string {
  if (/^[\x20-\x7e]*$/.test(path)) return path.toLowerCase(); // no table of Unicode is loaded
  return path.normalize("NFKC").replace(/\p{Default_Ignorable_Code_Point}/gu, "").toLowerCase();
}

function statIfReadable(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch {
    return undefined; // missing, or closed to this process and so to its tools
  }
}

function lstatIfExists(real: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(real);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/**
 * A program that swaps a directory for a link and back passes one check by luck, but not all of them. Between the
 * worktree and a file right in it there is no directory to swap, so that one check is a proof.
 */
const CHECKS = 8;

/** Whether the opened file is at `real`, which holds no links. Deno has no way to ask a file for its path. */
function isStillAt(real: string, opened: Deno.FileInfo, checks: number): boolean {
  try {
    for (let check = 0; check < checks; check++) {
      if (!isSameFile(opened, Deno.lstatSync(real)) || Deno.realPathSync(real) !== real) {
        return false;
      }
    }
    return true;
  } catch {
    return false;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory;
}

function isSameFile(a: Deno.FileInfo, b: Deno.FileInfo | undefined): boolean {
  return b !== undefined && a.ino === b.ino && a.dev === b.dev;
}

/** Removes the empty file that was created after a directory of its path was replaced. */
function removeCreated(real: string, created: Deno.FileInfo): void {
  try {
    if (isSameFile(created, Deno.statSync(real))) Deno.removeSync(real);
  } catch {
    // It was moved again; the empty file stays.
  }
}

const HOLDS_KEYS = "holds keys, which no tool may touch";

/** Deno's own class: handlers import nothing of svc and can still tell a refusal from a failure. */
function refused(sentence: string): Error {
  return new Deno.errors.PermissionDenied(sentence);
}

function notRegular(path: string): SvcError {
  return new SvcError("no_regular_file", `${path} is not a regular file.`);
}

function badPath(path: string, problem: string): SvcError {
  const shown = JSON.stringify(path.slice(0, 200));
  return new SvcError("bad_path", `The path ${shown} cannot be used: ${problem}.`);
}
