import type { ConfigView, ToolArguments, ToolDefinition, ToolPaths } from "../plugins/api.ts";
import type { Clock } from "../platform/clock.ts";
import { errorMessage } from "../platform/error.ts";
import type { Sandbox } from "../platform/sandbox.ts";
import { configuresPrograms, LISTED_ENVIRONMENT, onlyReads } from "../policy/listed_commands.ts";
import type { WorktreeGuard } from "../policy/paths.ts";
import { changesNothing, pathsOf } from "../policy/policy.ts";
import type { Checkpoints } from "../sessions/checkpoints.ts";
import type { Git } from "../sessions/git_changes.ts";
import type { TurnCheckpoint } from "../sessions/turn_checkpoint.ts";
import { coreTool } from "./tools/core.ts";

/** What the checkpoints of a worktree need of it. */
export interface CheckpointScope {
  config: ConfigView;
  clock: Clock;
  sandbox: Sandbox;
  guard: WorktreeGuard;
  paths: { worktree: string; state: string };
}

/**
 * The checkpoints of a session.
 *
 * @param run runs Git; one that was too slow is not asked again. Default: a new one
 */
export async function openCheckpoints(
  session: string,
  { config, clock, sandbox, guard, paths: { worktree, state } }: CheckpointScope,
  run: Git = gitIn(worktree, sandbox),
): Promise<Checkpoints> {
  const max_size: number = config.get("checkpoints.max_size");
  const { Checkpoints } = await import("../sessions/checkpoints.ts");
  // Git would run the programs before anyone has approved them.
  const git = configuresPrograms(worktree, worktree)
    ? "the configuration of the Git repository names programs or another folder"
    : run;
  const context = guard.context();
  const holdsKeys = (path: string, info: Deno.FileInfo) =>
    context.isClosed(path) || context.holdsKeys(info);
  return new Checkpoints(session, { state, worktree, max_size, clock, git, holdsKeys });
}

/** Seconds for one run of Git. */
const TIMEOUT = 5;
const LATE = `Git took longer than ${TIMEOUT} seconds`;

function gitIn(worktree: string, sandbox: Sandbox): Git {
  let late = false;
  return async (args, { index, input }) => {
    if (late) throw new Error(LATE);
    const env = { ...LISTED_ENVIRONMENT, GIT_INDEX_FILE: index };
    const command = ["git", ...args];
    const child = await sandbox.start({ command, cwd: worktree, env }, { confined: true });
    const timer = setTimeout(() => {
      late = true;
      child.stop();
    }, TIMEOUT * 1000);
    try {
      const errors = new Response(child.errors).text();
      const feed = child.input.getWriter();
      const fed = feed.write(new TextEncoder().encode(input ?? "")).then(() => feed.close());
      fed.catch(() => {}); // the exit code says why
      const output = new Uint8Array(await new Response(child.output).arrayBuffer());
      const code = await child.ended;
      if (code === 0) return output;
      if (late) throw new Error(LATE);
      throw new Error((await errors).trim().split("\n")[0] || `git ended with exit code ${code}`);
    } finally {
      clearTimeout(timer);
    }
  };
}

/** Whether a call may change files by itself; the calls of agents that it starts count on their own. */
export function mayChange(tool: ToolDefinition, args: ToolArguments): boolean {
  if (coreTool(tool) !== undefined || changesNothing(tool, args)) return false;
  return tool.permission !== "bash" || !onlyReads(String(args.command));
}

/**
 * Keeps what the turns of a tree of agents change, for `svc changes` and `svc undo`. The changes of agents that a
 * turn starts are the turn's. Nothing is loaded or written before the first call that may change something.
 */
export class TreeChanges {
  readonly #scope: CheckpointScope;
  readonly #git: Git;
  #turn: { session: string; index: number } | undefined;
  #checkpoint: Promise<TurnCheckpoint | undefined> | undefined;
  /** Why something could not be kept; said once a turn. */
  #failure = "";
  #said = false;

  constructor(scope: CheckpointScope) {
    this.#scope = scope;
    this.#git = gitIn(scope.paths.worktree, scope.sandbox);
  }

  /**
   * Begins a turn, unless it is one within a turn.
   *
   * @returns ends the turn, and notes its changes
   */
  begin(session: string, index: number): () => Promise<void> {
    if (this.#turn !== undefined) return () => Promise.resolve();
    this.#turn = { session, index };
    this.#failure = "";
    this.#said = false;
    return async () => {
      const checkpoint = this.#checkpoint;
      this.#checkpoint = this.#turn = undefined;
      await this.#guarded(async () => await (await checkpoint)?.end());
    };
  }

  /** A warning, when something could not be kept and that was not said yet; else an empty text. */
  warning(): string {
    if (this.#failure === "" || this.#said) return "";
    this.#said = true;
    return `What this turn changes cannot all be taken back: ${this.#failure}`;
  }

  /**
   * Keeps what a call may change, before it runs.
   *
   * @param session the session of the agent that calls
   */
  async before(
    tool: ToolDefinition,
    args: ToolArguments,
    paths: ToolPaths,
    session: string,
  ): Promise<void> {
    if (!mayChange(tool, args)) return;
    await this.#guarded(async () => {
      if (tool.permission !== "edit") return await this.#scan(session);
      for (const path of pathsOf(tool, args)) {
        await this.#keep(paths.resolve(String(path)), session);
      }
    });
  }

  /** Before a command that svc itself runs for a turn. */
  scan(session: string): Promise<void> {
    return this.#guarded(() => this.#scan(session));
  }

  /** File access that keeps what it opens for writing. */
  watched(paths: ToolPaths, session: string): ToolPaths {
    return {
      worktree: paths.worktree,
      resolve: (path) => paths.resolve(path),
      contains: (path) => paths.contains(path),
      open: async (path, options) => {
        const { write, append, create, createNew, truncate } = options;
        if (write || append || create || createNew || truncate) {
          await this.#guarded(() => this.#keep(paths.resolve(path), session));
        }
        return await paths.open(path, options);
      },
    };
  }

  async #keep(path: string, session: string): Promise<void> {
    await (await this.#begun())?.keep(path, this.#agent(session));
  }

  async #scan(session: string): Promise<void> {
    await (await this.#begun())?.scan(this.#agent(session));
  }

  /** The session of a sub-agent; undefined for the agent of the turn. */
  #agent(session: string): string | undefined {
    return session === this.#turn?.session ? undefined : session;
  }

  #begun(): Promise<TurnCheckpoint | undefined> {
    const turn = this.#turn;
    const off = this.#scope.config.get("checkpoints.max_size") === 0;
    if (turn === undefined || off) return Promise.resolve(undefined);
    return this.#checkpoint ??= this.#open(turn);
  }

  async #open({ session, index }: { session: string; index: number }): Promise<TurnCheckpoint> {
    const checkpoints = await openCheckpoints(session, this.#scope, this.#git);
    const { beginCheckpoint } = await import("../sessions/turn_checkpoint.ts");
    return await beginCheckpoint(checkpoints, index);
  }

  /** A turn goes on when its changes cannot be kept, on a full disk for example. */
  async #guarded(keep: () => Promise<unknown>): Promise<void> {
    try {
      await keep();
    } catch (error) {
      this.#failure ||= errorMessage(error);
    }
  }
}
