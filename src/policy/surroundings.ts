import { basename, dirname } from "node:path";
import { realPath, within } from "./real_path.ts";
import { isRepositoryWith } from "./repository.ts";

/** Where a path leads, and what that place is to the policy. */
export interface Location {
  /** Absolute, without links. */
  real: string;
  /** In the worktree, or the worktree itself. */
  inside: boolean;
  /**
   * `read`: keys, closed to every tool. `write`: what decides over the agent or runs code later (svc's
   * state and settings, git's own files under any name), never changed unasked.
   */
  protected: false | "write" | "read";
  /** svc's own state and settings, for an agent that may not change them whoever approves it. */
  sealed: boolean;
}

/** What the special places are found by. */
export interface Places {
  worktree: string;
  /** `<worktree>/.svc` */
  state: string;
  /** `~/.config/svc` */
  user: string;
  /** Further files that hold keys, wherever they lie. Default: none. */
  secrets?: string[];
  /** Whether the agent is immutable (specification 5.3.9). Default: no. */
  sealed?: boolean;
}

/** Folders that are protected wherever they lie, since each may belong to another agent or repository. */
const PROTECTED_NAMES = new Set([".svc", ".git"]);
/** Where `svc serve token` puts the tokens of the HTTP API. */
export const TOKENS = "serve.tokens";
const SECRETS = ["providers.json", TOKENS];

/** The special places as they lie now. Looked up once a call: a search opens thousands of files. */
export class Surroundings {
  readonly worktree: string;
  readonly #user: string;
  readonly #secrets: string[];
  readonly #roots: string[];
  readonly #own: string[];
  readonly #sealed: boolean;
  readonly #heads = new Map<string, boolean>();
  /** The files that hold keys, to be known under another name: a hard link, a second mount. */
  readonly keys: Deno.FileInfo[];

  constructor({ worktree, state, user, secrets: further = [], sealed = false }: Places) {
    this.worktree = worktree;
    const lies = (path: string) => fold(realPathOrName(worktree, path));
    this.#user = lies(user);
    const secrets = [...SECRETS.map((name) => `${user}/${name}`), ...further];
    this.#secrets = secrets.map(lies);
    this.keys = secrets.flatMap((path) => statIfOpen(path) ?? []);
    this.#own = [this.#user, lies(state)];
    this.#roots = [...this.#own, lies(`${worktree}/.git`)];
    this.#sealed = sealed;
  }

  locate(path: string): Location {
    const real = realPath(this.worktree, path);
    const inside = within(this.worktree, real);
    return { real, inside, protected: this.protection(real), sealed: this.isSealed(real) };
  }

  /** What a real path is; see {@linkcode Location.protected}. */
  protection(real: string): Location["protected"] {
    const path = fold(real);
    // Backups, locks and half-written copies of the keys' file lie beside it under longer names.
    const holdsKeys = dirname(path) === this.#user &&
      SECRETS.some((name) => basename(path).includes(name));
    if (holdsKeys || this.#secrets.includes(path)) return "read";
    const named = this.#names(real).some((name) => PROTECTED_NAMES.has(name));
    if (named || this.#roots.some((root) => within(root, path))) return "write";
    return this.#isInRepository(real) ? "write" : false;
  }

  /** See {@linkcode Location.sealed}. */
  isSealed(real: string): boolean {
    if (!this.#sealed) return false;
    const path = fold(real);
    return this.#names(real).includes(".svc") || this.#own.some((root) => within(root, path));
  }

  /** Whether a place of the worktree is git's own under a name that is not `.git`, or would come to be. */
  #isInRepository(real: string): boolean {
    if (!within(this.worktree, real)) return false;
    for (let at = real; at !== this.worktree; at = dirname(at)) {
      if (isRepositoryWith(dirname(at), basename(at), this.#heads)) return true;
    }
    return false;
  }

  /** The names on the way to a place, of the worktree's those below it. */
  #names(real: string): string[] {
    const own = within(this.worktree, real) ? real.slice(this.worktree.length) : real;
    return fold(own).split("/");
  }
}

function statIfOpen(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch {
    return undefined; // no keys, or closed to this process and so to its tools
  }
}

/** A place that is closed to this process is protected under its name. */
function realPathOrName(base: string, path: string): string {
  try {
    return realPath(base, path);
  } catch {
    return path;
  }
}

/** Characters that some file systems leave out when they compare names. */
const IGNORED = /\p{Default_Ignorable_Code_Point}/gu;

/** Some file systems take `.SVC` for `.svc`; a place is protected under all of its spellings. */
function fold(path: string): string {
  return path.normalize("NFKC").replace(IGNORED, "").toLowerCase();
}
