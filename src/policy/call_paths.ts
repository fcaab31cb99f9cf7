import { SvcError } from "../platform/error.ts";
import type { ToolPaths } from "../plugins/api.ts";
import { within } from "./real_path.ts";
import type { Surroundings } from "./surroundings.ts";

/**
 * The paths of one call. What a path leads to is looked up anew at each use, because the disk may have
 * changed since the call was approved.
 */
export class CallPaths implements ToolPaths {
  readonly #around: Surroundings;
  readonly #approved: string[];

  constructor(around: Surroundings, approved: string[]) {
    this.#around = around;
    this.#approved = approved;
  }

  get worktree(): string {
    return this.#around.worktree;
  }

  contains(path: string): boolean {
    const inside = within(this.worktree, path) || this.#covers(path);
    return inside && this.#around.protection(path) !== "read";
  }

  /** @throws SvcError `bad_path`, or Deno.errors.PermissionDenied for a place that is not this call's. */
  resolve(path: string): string {
    const { real, inside, protected: guarded } = this.#around.locate(path);
    if (guarded === "read") throw holdsKeys(path);
    if (inside || this.#covers(real)) return real;
    throw refused(`${path} leads outside the worktree, to ${real}, and was not approved`);
  }

  /**
   * @throws as {@linkcode resolve} and `Deno.open` do; SvcError `no_regular_file` for a directory, pipe or
   * device; SvcError `path_changed` when something else was there once the file was open. Nothing has
   * been truncated then.
   */
  async open(path: string, options: Deno.OpenOptions): Promise<Deno.FsFile> {
    const real = this.resolve(path);
    const { write, append, create, createNew, truncate } = options;
    if (write || append || create || createNew || truncate) this.#assertWritable(path, real);
    const existing = statIfExists(real);
    // A pipe would block until someone opens its other end, and a device may answer for ever.
    if (existing !== undefined && !existing.isFile) throw notRegular(path);
    // `createNew` follows no link, so what is made here is ours. Truncating waits for the check.
    const fresh = createNew === true || (create === true && existing === undefined);
    const careful = { ...options, create: false, createNew: fresh, truncate: false };
    const file = await Deno.open(real, careful);
    const opened = file.statSync();
    try {
      this.#verify(path, real, opened);
      if (truncate) file.truncateSync(0);
      return file;
    } catch (error) {
      file.close();
      if (fresh) removeStray(real, opened);
      throw error;
    }
  }

  /** Throws unless `path` still leads to `real` and that is the file which was opened. */
  #verify(path: string, real: string, opened: Deno.FileInfo): void {
    if (!opened.isFile) throw notRegular(path);
    if (this.#around.keys.some((each) => isSame(opened, each))) throw holdsKeys(path);
    if (this.resolve(path) === real && isSame(opened, statIfExists(real))) return;
    throw new SvcError("path_changed", `${path} was replaced while it was being opened.`, {
      hint: "Nothing was read or written; look at it again.",
    });
  }

  #covers(real: string): boolean {
    return this.#approved.some((root) => within(root, real));
  }

  /** A protected place needs an approval of its own; that of a folder around it is not enough. */
  #assertWritable(path: string, real: string): void {
    if (this.#around.isSealed(real)) {
      throw refused(`${path} is svc's own, which this agent cannot change`);
    }
    if (this.#around.protection(real) === false) return;
    const approved = this.#approved.some((root) =>
      within(root, real) && this.#around.protection(root) !== false
    );
    if (!approved) throw refused(`${path} is protected, and changing it was not approved`);
  }
}

/** Deno's own class: handlers import nothing of ours and can still tell a refusal from a failure. */
function refused(sentence: string): Error {
  return new Deno.errors.PermissionDenied(sentence);
}

function holdsKeys(path: string): Error {
  return refused(`${path} holds keys, which no tool may touch`);
}

function notRegular(path: string): SvcError {
  return new SvcError("no_regular_file", `${path} is not a regular file.`);
}

function statIfExists(real: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(real);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) {
      return undefined;
    }
    throw error;
  }
}

function isSame(a: Deno.FileInfo, b: Deno.FileInfo | undefined): boolean {
  return b !== undefined && a.ino === b.ino && a.dev === b.dev;
}

/** Takes back the empty file that was made where a swapped folder led. */
function removeStray(real: string, made: Deno.FileInfo): void {
  try {
    if (isSame(made, Deno.statSync(real))) Deno.removeSync(real);
  } catch {
    // it moved on; an empty file is left behind
  }
}
