import { join } from "node:path";
import type { Environment } from "../platform/environment.ts";
import { SvcError, usageError } from "../platform/error.ts";
import {
  entriesOf,
  exists,
  type HeldLock,
  jsonOr,
  makeFolder,
  readTextIfExists,
  removeTree,
  tryHold,
  withFileLock,
  writeFileAtomic,
} from "../platform/files.ts";
import { runProcess } from "../platform/process.ts";
import {
  ATTRIBUTES,
  complaint,
  gitCommand,
  gitEnvironment,
  type PluginSource,
  readSource,
} from "../plugins/source.ts";
import type { Job } from "./schema.ts";

/** The repository that a job works in. */
export type JobRepository = NonNullable<Job["git"]>;

/** Seconds that one command of Git may take. */
const LIMIT = 1800;
/** When a clone was used last, and its bytes. */
const SIZE_FILE = "svc.json";

/**
 * Parses the repository of a job: a URL (`https:`, `ssh:`, `file:` or `git@host:path`), with an optional branch, tag or
 * commit after `#`.
 *
 * @throws SvcError `job_git` (exit 2)
 */
export function readRepository(
  given: string,
  { home }: Pick<Environment, "home">,
): Extract<PluginSource, { kind: "git" }> {
  try {
    const source = readSource(given, "/", home);
    if (source.kind === "git" && source.text.includes(":")) return source;
  } catch (error) {
    const { message, hint } = error as SvcError;
    throw usageError(
      "job_git",
      message.replace(/^A plugin cannot be installed from/, "A job cannot work in"),
      hint,
    );
  }
  throw usageError(
    "job_git",
    "A job works in a repository that is named by its URL.",
    "Use https:, ssh: or file:.",
  );
}

/** A clone of a job's repository, for one attempt. */
export interface JobClone {
  /** Its worktree. */
  readonly path: string;
  /**
   * Commits what was changed, and pushes it as a branch.
   *
   * @returns the branch; empty when nothing was changed
   * @throws SvcError `job_git`
   */
  publish(message: string): Promise<string>;
  /** Removes the worktree. */
  close(): Promise<void>;
}

/**
 * Makes a worktree at the ref of a job's repository or, for a later attempt of a run, at the branch of the run. The
 * clones are a cache in `~/.cache/svc/clones`: those that were used least recently are removed when they take more than
 * `size` bytes. Git runs with the protections of an installed plugin, and the user's credentials.
 *
 * @param options.branch where the work is pushed
 * @throws SvcError `job_git`; `cancelled`
 */
export async function openClone(
  { url, ref, push }: JobRepository,
  { branch, environment, size, signal }: {
    branch: string;
    environment: Environment;
    size: number;
    signal: AbortSignal;
  },
): Promise<JobClone> {
  const source = readRepository(ref === "" ? url : `${url}#${ref}`, environment);
  const git = async (
    args: string[],
    accepted = [0],
    more: { stdin?: string; on_output?: (text: string) => void } = {},
  ) => {
    const { code, output, cancelled, timed_out } = await runProcess({
      command: gitCommand(args, { credentials: true }),
      cwd: "/",
      timeout: LIMIT,
      env: gitEnvironment(source.protocol),
      max_output: 20_000,
      ...more,
    }, signal);
    if (cancelled) throw new SvcError("cancelled", "Cancelled.", { exit: 130 });
    if (accepted.includes(code) && !timed_out) return { code, output };
    const reason = timed_out ? `it took longer than ${LIMIT / 60} minutes` : complaint(output);
    throw new SvcError("job_git", `git ${args.find((word) => /^[a-z]/.test(word))}: ${reason}`);
  };
  const cache = join(environment.home, ".cache", "svc", "clones");
  const id = (await digest(source.url)).slice(0, 24);
  const repository = join(cache, id);
  const name = crypto.randomUUID();
  const path = join(cache, `${id}.work`, name);
  const at = [`--git-dir=${repository}`];
  makeFolder(cache, 0o700);
  const lock = tryHold(`${path}.lock`)!;
  try {
    await withFileLock(repository, async () => {
      if (!exists(join(repository, "HEAD"))) await create(repository, git);
      removeLeft(`${repository}.work`);
      await git([...at, "worktree", "prune"]);
      const fetch = (from: string) =>
        git([
          ...at,
          ...["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--force", "--"],
          ...[source.url, `+${from}:refs/svc/${name}`],
        ]);
      // What an earlier attempt of the run has pushed continues.
      const known = push &&
        await git([...at, "ls-remote", "--", source.url, `refs/heads/${branch}`]);
      await fetch(known && known.output.trim() !== "" ? `refs/heads/${branch}` : ref || "HEAD");
      await git([...at, "worktree", "add", "--quiet", "--detach", path, `refs/svc/${name}`]);
      const text = JSON.stringify({ used: Date.now(), size: sizeOf(repository) });
      writeFileAtomic(join(repository, SIZE_FILE), text);
    });
    await evict(cache, size);
  } catch (error) {
    removeTree(path);
    lock.release();
    throw error;
  }
  return {
    path,
    async publish(message) {
      // Not through the file `.git` of the worktree, which an agent without a sandbox can write.
      const own = [`--git-dir=${join(repository, "worktrees", name)}`, `--work-tree=${path}`];
      // In the folder of a submodule Git would run what the configuration there names, which an agent can write.
      const links = new Links();
      await git([...own, "ls-files", "--stage"], [0], { on_output: (text) => links.add(text) });
      if (links.paths !== "") {
        const stdin = links.paths;
        await git([...own, "update-index", "--skip-worktree", "--stdin"], [0], { stdin });
      }
      await git([...own, "add", "--all", "--", path]);
      const { code } = await git([...own, "diff", "--cached", "--quiet"], [0, 1]);
      if (code === 0) return "";
      const { code: unnamed } = await git([...own, "config", "user.email"], [0, 1]);
      const who = unnamed === 0 ? [] : ["-c", "user.name=svc", "-c", "user.email=svc@localhost"];
      const quiet = ["--quiet", "--no-verify", "--no-gpg-sign"];
      await git([...who, ...own, "commit", ...quiet, `--message=${message}`]);
      await git([
        ...own,
        "push",
        "--quiet",
        "--no-verify",
        "--",
        source.url,
        `HEAD:refs/heads/${branch}`,
      ]);
      return branch;
    },
    async close() {
      try {
        await withFileLock(repository, () => {
          removeTree(path);
          removeTree(join(repository, "worktrees", name));
        });
      } finally {
        release(path, lock);
      }
    },
  };
}

/** The submodules in the output of `git ls-files --stage`. */
class Links {
  /** A line for each, as Git quotes it. */
  paths = "";
  #rest = "";

  add(text: string): void {
    const lines = `${this.#rest}${text}`.split("\n");
    this.#rest = lines.pop()!;
    for (const line of lines) {
      if (line.startsWith("160000 ")) this.paths += `${line.slice(line.indexOf("\t") + 1)}\n`;
    }
  }
}

type Git = (args: string[]) => Promise<unknown>;

/** An empty clone whose attributes override those of the repository. */
async function create(repository: string, git: Git): Promise<void> {
  const template = `${repository}.template`;
  try {
    makeFolder(join(template, "info"));
    Deno.writeTextFileSync(join(template, "info/attributes"), ATTRIBUTES);
    await git(["init", "--quiet", "--bare", `--template=${template}`, "--", repository]);
  } finally {
    removeTree(template);
  }
}

/** Removes the worktrees of processes that died. */
function removeLeft(folder: string): void {
  for (const { name } of entriesOf(folder)) {
    if (!name.endsWith(".lock")) continue;
    const path = join(folder, name.slice(0, -".lock".length));
    const lock = tryHold(`${path}.lock`);
    if (lock === undefined) continue;
    removeTree(path);
    release(path, lock);
  }
}

function release(path: string, lock: HeldLock): void {
  removeTree(`${path}.lock`);
  lock.release();
}

/** Removes the clones that were used least recently, until all take at most `size` bytes. One in use stays. */
async function evict(cache: string, size: number): Promise<void> {
  const clones = entriesOf(cache).filter(({ name }) => /^[0-9a-f]{24}$/.test(name)).map(
    ({ name }) => {
      const { used = 0, size = 0 } = jsonOr(
        readTextIfExists(join(cache, name, SIZE_FILE)) ?? "",
        {},
      );
      return { path: join(cache, name), used: Number(used), size: Number(size) };
    },
  ).sort((one, other) => one.used - other.used);
  let total = clones.reduce((sum, { size }) => sum + size, 0);
  for (const { path, size: own } of clones) {
    if (total <= size) return;
    await withFileLock(path, () => {
      removeLeft(`${path}.work`);
      if (entriesOf(`${path}.work`).length > 0) return;
      removeTree(path);
      total -= own;
    });
  }
}

function sizeOf(folder: string): number {
  let bytes = 0;
  for (const { name, isDirectory } of entriesOf(folder)) {
    const path = join(folder, name);
    bytes += isDirectory ? sizeOf(path) : fileSize(path);
  }
  return bytes;
}

function fileSize(path: string): number {
  try {
    return Deno.lstatSync(path).size;
  } catch {
    return 0; // Git removes files meanwhile
  }
}

async function digest(text: string): Promise<string> {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return new Uint8Array(bytes).toHex();
}
