import { isAbsolute, join, resolve } from "node:path";
import manifest from "../../deno.json" with { type: "json" };
import { SvcError, usageError } from "./error.ts";
import { entriesOf, lstatIfExists, statIfExists } from "./files.ts";

/** The service's version (specification 9.1). */
export const VERSION: string = manifest.version;

/** The environment that the process was started with. Front ends make one and pass it on. */
export interface Environment {
  /** Absolute path of the user's home directory. */
  readonly home: string;
  /** Absolute path of the directory the process was started in. */
  readonly cwd: string;
  /** The value of an environment variable; undefined when it is unset or may not be read. */
  get(name: string): string | undefined;
}

/** The environment of this process. */
export function processEnvironment(): Environment {
  const home = read("HOME") ?? read("USERPROFILE") ?? "";
  if (!isAbsolute(home)) {
    throw new SvcError("no_home", "The home directory is unknown: HOME is not set.", {
      hint: "Set HOME to an absolute path; svc keeps your settings in $HOME/.config/svc.",
      exit: 2,
    });
  }
  return { home, cwd: currentDirectory(), get: read };
}

function currentDirectory(): string {
  try {
    return Deno.cwd();
  } catch {
    throw usageError(
      "no_directory",
      "The current directory is not there any more.",
      "Change to another one.",
    );
  }
}

/** The per-user directory, `~/.config/svc`. */
export function userDirectory(environment: Environment): string {
  return join(environment.home, ".config", "svc");
}

/** The address that `svc serve` listens on unless `--host` names one: `SVC_HOST`, for containers. */
export function serveHost(environment: Environment): string {
  return environment.get("SVC_HOST") || "127.0.0.1";
}

/**
 * The port of `svc serve` unless `--port` names one: `SVC_PORT`, for containers.
 *
 * @throws SvcError `usage` (exit 2)
 */
export function servePort(environment: Environment): number {
  const given = environment.get("SVC_PORT") || "8787";
  if (/^\d{1,5}$/.test(given) && Number(given) <= 65535) return Number(given);
  throw usageError("usage", `SVC_PORT is no port: ${JSON.stringify(given.slice(0, 20))}.`);
}

/** The address of a server that listens on a host and a port, as it is reached from this machine. */
export function serverAddress(host: string, port: number): string {
  const name = host.replace(/^\[(.*)\]$/, "$1");
  const reached = { "0.0.0.0": "127.0.0.1", "::": "::1" }[name] ?? name;
  return `http://${reached.includes(":") ? `[${reached}]` : reached}:${port}`;
}

function read(name: string): string | undefined {
  try {
    return Deno.env.get(name);
  } catch {
    return undefined; // the variable is outside the executable's --allow-env list
  }
}

/** The absolute paths of a worktree, its state and the user's state. */
export interface Paths {
  /** The worktree, with every symbolic link resolved. */
  readonly worktree: string;
  /** `<worktree>/.svc` */
  readonly state: string;
  /** `<worktree>/.svc/sessions` */
  readonly sessions: string;
  /** `~/.config/svc` */
  readonly user: string;
}

/**
 * The paths of the worktree at `path`.
 *
 * @throws SvcError (exit 2) `no_worktree` when `path` is no directory, or its `.svc` is a file; `state_link` when
 * `.svc` is a link out of the worktree, or something in it one out of `.svc`, where an agent may write
 */
export function openPaths(path: string, user: string): Paths {
  let worktree: string;
  try {
    worktree = Deno.realPathSync(path);
    if (!Deno.statSync(worktree).isDirectory) throw new Error("not a directory");
  } catch {
    throw usageError(
      "no_worktree",
      `The worktree ${resolve(path)} is not a directory that can be opened.`,
      "Name an existing directory; --path says which worktree is meant.",
    );
  }
  const state = join(worktree, ".svc");
  if (statIfExists(state)?.isFile) {
    throw usageError(
      "no_worktree",
      `${state} is a file, and svc keeps its state in a directory of that name.`,
      "Move the file away, or work in another directory with --path.",
    );
  }
  checkLink(state, worktree);
  for (const folder of [state, join(state, "memory")]) {
    for (const { name } of entriesOf(folder)) {
      checkLink(join(folder, name), Deno.realPathSync(state));
    }
  }
  return { worktree, state, sessions: join(state, "sessions"), user };
}

function checkLink(path: string, folder: string): void {
  if (!leadsOut(path, folder)) return;
  throw usageError(
    "state_link",
    `${path} is a link that leads out of ${folder}, where svc keeps its state.`,
    "Remove the link, or replace it by what it leads to.",
  );
}

/** Whether a path is a link to something outside a folder, or to nothing that exists. */
function leadsOut(path: string, folder: string): boolean {
  if (lstatIfExists(path)?.isSymlink !== true) return false;
  try {
    return !`${Deno.realPathSync(path)}/`.startsWith(folder === "/" ? folder : `${folder}/`);
  } catch {
    return true;
  }
}
