import { dirname, join, resolve } from "node:path";
import { entriesOf, exists } from "./files.ts";
import { programNotFound, programRefused } from "./process.ts";

/** What a confined command may do. All paths are absolute. */
export interface SandboxRules {
  /** The worktree; writable except for `protectedPaths`. */
  worktree: string;
  /** Further writable paths: temporary folders and those of `sandbox.write`. Missing ones are ignored. */
  write: string[];
  /** Files and folders that cannot be read. Missing ones are ignored. */
  deny_read: string[];
  /** Whether the command may use the network, loopback included. */
  network: boolean;
  /** What was found for earlier commands of this workspace. */
  seen: Seen;
}

/** Capabilities that root keeps inside: access to files of other users, but no mounts and no devices. */
const ROOT_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID"];

/** Folders of `/run` that name resolution and some distributions need. The rest holds control sockets. */
const RUN_FOLDERS = [
  "/run/systemd/resolve",
  "/run/resolvconf",
  "/run/NetworkManager",
  "/run/current-system",
  "/run/wrappers",
];

/**
 * The arguments of bubblewrap that run `command` in `cwd`: everything read-only except the worktree and
 * `rules.write`, secrets hidden, no other process visible. It ends with this process, even on SIGKILL.
 */
export function bubblewrapCommand(
  rules: SandboxRules,
  command: string[],
  cwd: string,
  { root }: { root: boolean },
): string[] {
  const { worktree } = rules;
  const lookup = new Lookup(rules.seen);
  const denied = resolved(rules.deny_read, lookup);
  const common = gitFolder(worktree);
  const args = [
    ...["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"],
    // Kernel settings are writable for root without any capability.
    ...["--ro-bind", "/proc/sys", "/proc/sys"],
    ...["--tmpfs", "/run"],
    ...RUN_FOLDERS.flatMap((path) => ["--ro-bind-try", path, path]),
    ...["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"],
  ];
  if (!rules.network) args.push("--unshare-net");
  if (root) {
    args.push("--cap-drop", "ALL");
    for (const name of ROOT_CAPABILITIES) args.push("--cap-add", `CAP_${name}`);
  }
  for (const path of resolved(rules.write, lookup)) args.push("--bind", path, path);
  for (const path of [...denied, ...socketFolders(lookup)]) args.push(...hide(path));
  // After the hidden paths: a worktree may lie inside one of them. A mount point cannot be renamed or replaced.
  args.push("--bind", worktree, worktree);
  if (common !== undefined) args.push("--bind", common, common);
  for (const { path, folder } of protectedPaths(worktree, common)) {
    if (exists(path)) args.push("--ro-bind", path, path);
    else if (folder) args.push("--tmpfs", path, "--remount-ro", path);
    else args.push("--ro-bind", "/dev/null", path);
  }
  for (const path of denied) {
    if (path.startsWith(`${worktree}/`)) args.push(...hide(path));
  }
  return [...args, "--chdir", cwd, "--", ...command];
}

/** The sandbox profile of macOS in its own language; for `sandbox-exec -p`. */
export function sandboxExecCommand(rules: SandboxRules, command: string[]): string[] {
  const list = (paths: string[]) =>
    paths.map((path) => ` (subpath ${JSON.stringify(path)})`).join("");
  const { worktree } = rules;
  const lookup = new Lookup(rules.seen);
  const common = gitFolder(worktree);
  const write = [worktree, ...common ? [common] : [], ...resolved(rules.write, lookup)];
  const kept = protectedPaths(worktree, common).map(({ path }) => path);
  const devices = ["/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper"];
  const profile = [
    "(version 1)",
    "(allow default)",
    "(deny file-write*)",
    `(allow file-write*${list([...write, "/private/tmp", "/private/var/folders"])})`,
    `(allow file-write*${devices.map((path) => ` (literal "${path}")`).join("")})`,
    `(deny file-write*${list(kept)})`,
    ...rules.deny_read.length > 0
      ? [`(deny file-read*${list(resolved(rules.deny_read, lookup))})`]
      : [],
    `(allow file-read* (subpath ${JSON.stringify(worktree)}))`,
    "(deny process-info*)",
    "(allow process-info* (target self) (target children))",
    "(deny signal)",
    "(allow signal (target self) (target children) (target pgrp))",
    ...rules.network ? [] : ["(deny network*)"],
  ].join("\n");
  return ["/usr/bin/sandbox-exec", "-p", profile, ...command];
}

/** The rules of the Landlock helper (landlock.ts), which gets them as JSON. */
export interface LandlockRules {
  /** Files and folders that may be read and executed. */
  read: string[];
  /** Files and folders that may be changed. */
  write: string[];
  /** Environment variables to set for the command. */
  env: Record<string, string>;
}

/**
 * What Landlock can hold of the rules. It only knows what is allowed below a path, so that it protects
 * nothing inside the worktree, and it cannot cut the network. See docs/security.md.
 */
export function landlockRules(rules: SandboxRules): Omit<LandlockRules, "env"> {
  const { worktree } = rules;
  const lookup = new Lookup(rules.seen);
  const common = gitFolder(worktree);
  return {
    // Without disks and terminals. Environment and memory of a process outside are hidden in /proc.
    read: [
      ...without("/", ["/dev", "/run", ...resolved(rules.deny_read, lookup)]),
      ...RUN_FOLDERS,
      ...["/dev/random", "/dev/urandom"],
    ],
    write: [
      worktree,
      ...common ? [common] : [],
      ...resolved(rules.write, lookup),
      ...["/dev/null", "/dev/zero", "/dev/full", "/dev/shm"],
    ],
  };
}

/**
 * What commands cannot change inside a worktree: svc's state, and what Git would execute later.
 *
 * @param common the folder of {@linkcode gitFolder}, which Git writes
 */
function protectedPaths(
  worktree: string,
  common: string | undefined,
): { path: string; folder: boolean }[] {
  const paths = [{ path: join(worktree, ".svc"), folder: true }];
  if (common === undefined) return paths;
  if (common !== join(worktree, ".git")) {
    paths.push({ path: join(worktree, ".git"), folder: false });
  }
  for (const git of [common, ...submodules(common)]) {
    paths.push({ path: join(git, "config"), folder: false });
    paths.push({ path: join(git, "hooks"), folder: true });
    const own = join(git, "config.worktree");
    if (exists(own)) paths.push({ path: own, folder: false });
  }
  return paths;
}

/** The repositories of submodules, which are inside that of the worktree. */
function submodules(common: string): string[] {
  const found: string[] = [];
  const look = (folder: string) => {
    if (found.length >= MAX_SUBMODULES) return;
    for (const { name, isDirectory } of entriesOf(folder)) {
      const path = join(folder, name);
      if (!isDirectory) continue;
      if (!exists(join(path, "HEAD"))) look(path); // a part of a submodule's name
      else {
        found.push(path);
        look(join(path, "modules"));
      }
    }
  };
  look(join(common, "modules"));
  return found;
}

const MAX_SUBMODULES = 200;

/** Folders with sockets of other programs in `/tmp`: agents with keys, terminals, the screen. */
function socketFolders(lookup: Lookup): string[] {
  const known = lookup.found("sockets");
  if (known !== undefined) return known;
  const found = entriesOf("/tmp")
    .filter(({ name, isDirectory }) => isDirectory && SOCKET_FOLDER.test(name))
    .map(({ name }) => `/tmp/${name}`);
  return lookup.note("sockets", found, "/tmp");
}

const SOCKET_FOLDER = /^(ssh-|tmux-|screens?$|uscreens$|dbus-|keyring-|\.X11-unix$|\.ICE-unix$)/;

/**
 * The folder with the configuration of the worktree's repository. A `.git` file names it for a linked
 * worktree; it counts only if the repository names this worktree too, since the file may be hostile.
 */
function gitFolder(worktree: string): string | undefined {
  const git = join(worktree, ".git");
  try {
    if (Deno.lstatSync(git).isDirectory) return git;
    const own = /^gitdir: (.+)/.exec(Deno.readTextFileSync(git))?.[1]?.trim();
    if (own === undefined || !own.startsWith("/")) return undefined;
    const real = Deno.realPathSync(own);
    if (Deno.readTextFileSync(join(real, "gitdir")).trim() !== git) return undefined;
    const common = dirname(dirname(real)); // <repository>/worktrees/<name>
    return real === join(common, "worktrees", real.slice(real.lastIndexOf("/") + 1))
      ? common
      : undefined;
  } catch {
    return undefined;
  }
}

/** The paths that exist, symbolic links resolved. */
function resolved(paths: string[], lookup: Lookup): string[] {
  const existing = paths.flatMap((path) => {
    const missing = lookup.found(path);
    if (missing !== undefined) return missing;
    try {
      return [Deno.realPathSync(path)];
    } catch {
      return lookup.note(path, [], existingFolder(path));
    }
  });
  return [...new Set(existing)];
}

/** The nearest folder in which a path that does not exist would have to appear; the path itself if it is a broken link. */
function existingFolder(path: string): string {
  return path === "/" || exists(path) ? path : existingFolder(dirname(path));
}

/** What was found at a path, and the state of the folder on whose names that depends. */
export type Seen = Map<string, { folder: string; state: string; found: string[] }>;

/** Milliseconds after which a change of a folder gets another time, on every file system. */
const SETTLED = 3000;

/**
 * What one command needs to know of the disk. Most secret places do not exist, and looking for all of them takes as
 * long as starting the command, so what was found holds until a name in the folder changes.
 */
class Lookup {
  readonly #seen: Seen;
  readonly #states = new Map<string, string>();

  constructor(seen: Seen) {
    this.#seen = seen;
  }

  /** What was found before; undefined when that may have changed. */
  found(path: string): string[] | undefined {
    const seen = this.#seen.get(path);
    const known = seen !== undefined && seen.state !== "" &&
      seen.state === this.#state(seen.folder);
    return known ? seen.found : undefined;
  }

  /** @param folder on whose names `found` depends */
  note(path: string, found: string[], folder: string): string[] {
    this.#seen.set(path, { folder, state: this.#state(folder), found });
    return found;
  }

  /** Empty for a folder that was changed just now, since the next change could get the same time. */
  #state(folder: string): string {
    let state = this.#states.get(folder);
    if (state === undefined) this.#states.set(folder, state = folderState(folder));
    return state;
  }
}

function folderState(folder: string): string {
  try {
    const { dev, ino, mtime, ctime } = Deno.statSync(folder);
    const changed = (ctime ?? mtime)!.getTime();
    return Date.now() - changed < SETTLED ? "" : `${dev} ${ino} ${mtime?.getTime()} ${changed}`;
  } catch {
    return "";
  }
}

function hide(path: string): string[] {
  return Deno.statSync(path).isDirectory ? ["--tmpfs", path] : ["--ro-bind", "/dev/null", path];
}

/** Paths that together hold everything below `folder` except the denied paths. */
function without(folder: string, denied: string[]): string[] {
  if (denied.includes(folder)) return [];
  const prefix = folder === "/" ? "/" : `${folder}/`;
  if (!denied.some((path) => path.startsWith(prefix))) return [folder];
  return entriesOf(folder)
    .filter(({ isSymlink }) => !isSymlink) // rules apply to the target of a link
    .flatMap(({ name }) => without(prefix + name, denied));
}

/** A folder for what package managers keep, with the variables that name it; without it when it cannot be made. */
export function commandCaches(home: string): { folder: string; variables: Record<string, string> } {
  const folder = join(home, ".cache", "svc-commands");
  try {
    Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (!Deno.lstatSync(folder).isDirectory) throw new Error("not a folder");
  } catch {
    return { folder: "", variables: {} };
  }
  return {
    folder,
    variables: {
      XDG_CACHE_HOME: folder,
      DENO_DIR: join(folder, "deno"),
      GOCACHE: join(folder, "go-build"),
      GOMODCACHE: join(folder, "go-mod"),
      npm_config_cache: join(folder, "npm"),
    },
  };
}

/**
 * The absolute path of a program, as the system would find it. A launcher could not tell a missing program from a
 * program that fails.
 *
 * @throws SvcError `program_not_found`, `program_refused`
 */
export function findProgram(
  name: string,
  cwd: string,
  path: string,
  seen: Seen = new Map(),
): string {
  const candidates = name.includes("/")
    ? [resolve(cwd, name)]
    : path.split(":").map((folder) => resolve(cwd, folder, name));
  const lookup = new Lookup(seen);
  let refused = false;
  for (const candidate of candidates) {
    if (lookup.found(candidate)) continue;
    try {
      const { isFile, mode } = Deno.statSync(candidate);
      if (isFile && ((mode ?? 0o111) & 0o111) !== 0) return candidate;
      refused ||= isFile;
    } catch {
      lookup.note(candidate, [], existingFolder(candidate));
    }
  }
  throw refused ? programRefused(name) : programNotFound(name);
}
