import { join } from "node:path";
import type { Workspace } from "../engine/workspace.ts";
import type { JobContext } from "../jobs/context.ts";
import { makeFolder, readTextIfExists } from "../platform/files.ts";
import { digest, isLoopback, type Tokens } from "./admission.ts";
import type { JobRuns } from "./routes/jobs.ts";
import type { Runs } from "./runs.ts";
import type { Turns } from "./turns.ts";

/** What the pages of the console show and change. */
export interface ConsoleContext {
  workspace: Workspace;
  turns: Turns;
  runs: Runs;
  jobs: JobContext;
  jobRuns: JobRuns;
  /** The tokens that sign in. Left out: there are none. */
  tokens?: Tokens;
  /** Aborts when the server stops: event streams end then. */
  stopping: AbortSignal;
}

/** Whether a server that listens on `host` serves the console (setting `serve.console`). */
export function servesConsole(config: Workspace["config"], host: string): boolean {
  const setting = config.get("serve.console");
  return setting === "on" || setting === "loopback" && isLoopback(host);
}

export function isConsolePath(path: string): boolean {
  return path === "/console" || path.startsWith("/console/");
}

/**
 * The folder of the console's sign-ins, and of the address at which `svc console` finds the server. It is one of the
 * user's, since an archive of another user can hold any file of a worktree; where the user's settings are read-only,
 * as in a container, it is in the worktree.
 */
export function consoleFolder({ paths }: Pick<Workspace, "paths">): string {
  const own = join(paths.user, "console", digest(paths.worktree).toHex().slice(0, 16));
  try {
    makeFolder(own, 0o700);
    return own;
  } catch {
    return join(paths.state, "console");
  }
}

/** Writes the address of a server to a file, where `svc console` finds it. */
export function noteAddress(workspace: Workspace, address: string): void {
  const folder = consoleFolder(workspace);
  try {
    makeFolder(folder, 0o700);
    Deno.writeTextFileSync(join(folder, "address"), address, { mode: 0o600 });
  } catch {
    // `svc console --url` names the address.
  }
}

/** The address of the last server on the worktree that serves the console; undefined for none. */
export function notedAddress(workspace: Workspace): string | undefined {
  return readTextIfExists(join(consoleFolder(workspace), "address"))?.trim();
}

/** The console of one server. It is loaded with the first request, since most servers get none. */
export class ConsoleMount {
  readonly #context: Omit<ConsoleContext, "stopping">;
  readonly #stop = new AbortController();
  #handler: Promise<(request: Request) => Response | Promise<Response>> | undefined;

  constructor(context: Omit<ConsoleContext, "stopping">) {
    this.#context = context;
  }

  /** Answers a request whose host and origin are allowed. */
  async handle(request: Request): Promise<Response> {
    this.#handler ??= import("./console/main.tsx").then(({ consoleHandler }) =>
      consoleHandler({ ...this.#context, stopping: this.#stop.signal })
    );
    await this.#context.jobs.register.refresh();
    return await (await this.#handler)(request);
  }

  /** Ends the event streams. */
  close(): void {
    this.#stop.abort();
  }
}
