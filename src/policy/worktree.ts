import type { ToolPaths } from "../plugins/api.ts";
import { CallPaths } from "./call_paths.ts";
import { type Location, type Places, Surroundings } from "./surroundings.ts";

/**
 * Knows which paths are the worktree's and which are protected (specification 5.3). Every answer is
 * about where a path leads at that moment, with all links resolved. Relative paths start at the
 * worktree, and the empty path is the worktree.
 */
export class WorktreeGuard {
  readonly #options: Places;

  constructor(options: Places) {
    this.#options = { ...options, worktree: Deno.realPathSync(options.worktree) };
  }

  /** Whether it guards an agent that may not change svc's own state and settings. */
  get seals(): boolean {
    return this.#options.sealed ?? false;
  }

  /** The same for an immutable agent (specification 5.3.9). */
  sealed(): WorktreeGuard {
    return new WorktreeGuard({ ...this.#options, sealed: true });
  }

  /** @throws SvcError `bad_path` when the path cannot lead anywhere. */
  locate(path: string): Location {
    return new Surroundings(this.#options).locate(path);
  }

  /**
   * File access for one call.
   *
   * @param approved real paths outside the worktree, or protected ones, that a human approved for this
   * call, each with what lies below it.
   */
  callPaths(approved: string[]): ToolPaths {
    return new CallPaths(new Surroundings(this.#options), approved);
  }
}
