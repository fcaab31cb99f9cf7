import { dirname, join } from "node:path";
import { exists } from "./files.ts";

/** The operating-system mechanism that confines a command. */
export type SandboxKind = "bubblewrap" | "landlock" | "sandbox-exec";

/** What a confined command may do. All paths are absolute. */
export interface SandboxRules {
  /** The worktree; writable except for `protectedPaths`. */
  worktree: string;
  /** The user's home directory. */
  home: string;
  /** Further writable paths: temporary folders and those of `sandbox.write`. Missing ones are ignored. */
  write: string[];
  /** Files and folders that cannot be read. Missing ones are ignored. */
  deny_read: string[];
  /** Whether the command may use the network, loopback included. */
  network: boolean;
}

/** Places with secrets in a home directory: the default of `sandbox.deny_read`. */
export const SECRET_PLACES = [
  "~/.config/svc",
  "~/.ssh",
  "~/.aws",
  "~/.azure",
  "~/.config/gcloud",
  "~/.config/gh",
  "~/.docker/config.json",
  "~/.gnupg",
  "~/.kube",
  "~/.netrc",
  "~/.npmrc",
  "~/.pypirc",
  "~/.git-credentials",
  "~/.config/git/credentials",
  "~/.password-store",
  "~/.local/share/keyrings",
  "~/.mozilla",
  "~/.config/chromium",
  "~/.config/google-chrome",
];

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
 * The command line that runs `command` under bubblewrap: everything read-only except the worktree and
 * `rules.write`, secrets hidden, no other process visible. It ends with this process, even on SIGKILL.
 */
export function bubblewrapCommand(
  rules: SandboxRules,
  command: string[],
  { root }: { root: boolean },
): string[] {
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
  for (const path of resolved(rules.write)) args.push("--bind", path, path);
  for (const path of resolved(rules.deny_read)) args.push(...hide(path));
  // After the hidden paths: a worktree may lie inside one of them.
  args.push("--bind", rules.worktree, rules.worktree);
  for (const path of repositoryPaths(rules.worktree)) args.push("--bind", path, path);
  for (const path of protectedPaths(rules.worktree)) {
    args.push(
      ...exists(path) ? ["--ro-bind", path, path] : ["--tmpfs", path, "--remount-ro", path],
    );
  }
  for (const path of resolved(rules.deny_read)) {
    if (path.startsWith(`${rules.worktree}/`)) args.push(...hide(path));
  }
  return ["bwrap", ...args, "--", ...command];
}

/** The sandbox profile of macOS in its own language; for `sandbox-exec -p`. */
export function sandboxExecCommand(rules: SandboxRules, command: string[]): string[] {
  const list = (paths: string[]) =>
    paths.map((path) => ` (subpath ${JSON.stringify(path)})`).join("");
  const write = [rules.worktree, ...repositoryPaths(rules.worktree), ...resolved(rules.write)];
  const devices = ["/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper"];
  const profile = [
    "(version 1)",
    "(allow default)",
    "(deny file-write*)",
    `(allow file-write*${list([...write, "/private/tmp", "/private/var/folders"])})`,
    `(allow file-write*${devices.map((path) => ` (literal "${path}")`).join("")})`,
    `(deny file-write*${list(protectedPaths(rules.worktree))})`,
    ...rules.deny_read.length > 0 ? [`(deny file-read*${list(resolved(rules.deny_read))})`] : [],
    `(allow file-read* (subpath ${JSON.stringify(rules.worktree)}))`,
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
}

/**
 * What Landlock can hold of the rules. It only knows what is allowed below a path, so that it protects
 * nothing inside the worktree, and it cannot cut the network. See docs/security.md.
 */
export function landlockRules(rules: SandboxRules): LandlockRules {
  return {
    // Without the folders of processes: they show the environment of every process of this user.
    read: [...without("/", ["/proc", ...resolved(rules.deny_read)]), ...kernelFiles()],
    write: [
      rules.worktree,
      ...repositoryPaths(rules.worktree),
      ...resolved(rules.write),
      ...["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm"],
    ],
  };
}

/** What commands cannot change inside a worktree: svc's state, and what Git would execute later. */
export function protectedPaths(worktree: string): string[] {
  const common = gitFolder(worktree);
  return [
    join(worktree, ".svc"),
    ...common === undefined ? [] : [join(common, "config"), join(common, "hooks")],
  ];
}

/** Folders outside the worktree that Git writes: those of the repository of a linked worktree. */
function repositoryPaths(worktree: string): string[] {
  const common = gitFolder(worktree);
  return common === undefined || common.startsWith(`${worktree}/`) ? [] : [common];
}

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
function resolved(paths: string[]): string[] {
  return [
    ...new Set(paths.flatMap((path) => {
      try {
        return [Deno.realPathSync(path)];
      } catch {
        return [];
      }
    })),
  ];
}

function hide(path: string): string[] {
  return Deno.statSync(path).isDirectory ? ["--tmpfs", path] : ["--ro-bind", "/dev/null", path];
}

/** The entries of `/proc` that belong to no process. */
function kernelFiles(): string[] {
  return [...Deno.readDirSync("/proc")]
    .filter(({ name, isSymlink }) => !isSymlink && !/^\d+$/.test(name))
    .map(({ name }) => `/proc/${name}`);
}

/** Paths that together hold everything below `folder` except the denied paths. */
function without(folder: string, denied: string[]): string[] {
  if (denied.includes(folder)) return [];
  const prefix = folder === "/" ? "/" : `${folder}/`;
  if (!denied.some((path) => path.startsWith(prefix))) return [folder];
  return [...Deno.readDirSync(folder)]
    .filter(({ isSymlink }) => !isSymlink) // rules apply to the target of a link
    .flatMap(({ name }) => without(prefix + name, denied));
}
