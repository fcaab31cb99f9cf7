import { join } from "node:path";
import { systemClock } from "../platform/clock.ts";
import { SvcError } from "../platform/error.ts";
import { removeTree } from "../platform/files.ts";
import { runProcess } from "../platform/process.ts";
import type { PluginSource } from "./source.ts";

/** Seconds. */
const LIMIT = 600;

/**
 * What holds over any configuration: no hooks, no credential helper, no program beside ssh and Git's own. The
 * user's settings for the network (proxies, certificates) stay.
 */
const SETTINGS = {
  "core.hooksPath": "/dev/null",
  "core.fsmonitor": "false",
  "core.askPass": "",
  "core.autocrlf": "false",
  "core.sshCommand": "ssh -o BatchMode=yes",
  "credential.helper": "",
  "credential.interactive": "false",
  "filter.lfs.process": "",
  "filter.lfs.smudge": "",
  "filter.lfs.required": "false",
  "submodule.recurse": "false",
  "fetch.recurseSubmodules": "false",
  "gc.auto": "0",
  "maintenance.auto": "false",
  "advice.detachedHead": "false",
};

/**
 * Where svc itself was started by Git (a hook, an alias) these name the repository of that, whose files and index
 * a clone would write.
 */
const FOREIGN = [
  "GIT_ALTERNATE_OBJECT_DIRECTORIES",
  "GIT_COMMON_DIR",
  "GIT_CONFIG",
  "GIT_DIR",
  "GIT_INDEX_FILE",
  "GIT_NAMESPACE",
  "GIT_OBJECT_DIRECTORY",
  "GIT_PREFIX",
  "GIT_REPLACE_REF_BASE",
  "GIT_SHALLOW_FILE",
  "GIT_WORK_TREE",
];

/** Over a repository's own `.gitattributes`: files arrive as they are, whatever filters the user has. */
const ATTRIBUTES = "* -filter -text -ident -eol -working-tree-encoding\n";

/** What `env` ends with when there is no such program. */
const NOT_FOUND = 127;

/** Bytes and files of a clone, its pack included. What a plugin may hold is half of it (`tree.ts`). */
const MAX_BYTES = 400_000_000;
const MAX_FILES = 40_000;

/**
 * Clones the newest state of a repository into `folder`, which must not exist, without its history.
 *
 * @throws SvcError `plugin_clone` with what Git said.
 */
export async function clone(
  source: Extract<PluginSource, { kind: "git" }>,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const template = `${folder}.template`;
  const tooLarge = new AbortController();
  const done = new AbortController();
  void watchSize(folder, tooLarge, done.signal);
  try {
    Deno.mkdirSync(join(template, "info"), { recursive: true });
    Deno.writeTextFileSync(join(template, "info/attributes"), ATTRIBUTES);
    const { code, output, cancelled, timed_out } = await runProcess({
      command: cloneCommand(source, folder, template),
      cwd: "/",
      timeout: LIMIT,
      env: {
        GIT_ALLOW_PROTOCOL: source.protocol,
        GIT_ASKPASS: "",
        SSH_ASKPASS: "",
        GIT_TERMINAL_PROMPT: "0",
        GIT_SSH_COMMAND: "ssh -o BatchMode=yes",
        LC_ALL: "C.UTF-8",
      },
      max_output: 20_000,
    }, AbortSignal.any([signal, tooLarge.signal]));
    if (signal.aborted || cancelled && !tooLarge.signal.aborted) {
      throw new SvcError("cancelled", "Cancelled.", { exit: 130 });
    }
    if (code === NOT_FOUND) {
      throw new SvcError("program_not_found", "The program git was not found.", {
        hint: "Install it, or add its folder to PATH.",
      });
    }
    if (code !== 0 || tooLarge.signal.aborted) {
      const said = tooLarge.signal.aborted
        ? `it is larger than ${MAX_BYTES / 1e6} MB or ${MAX_FILES} files`
        : timed_out
        ? `it took longer than ${LIMIT / 60} minutes`
        : complaint(output);
      throw new SvcError("plugin_clone", `${source.text} could not be cloned: ${said}.`);
    }
    removeTree(join(folder, ".git"));
  } finally {
    done.abort();
    removeTree(template);
  }
}

/** Aborts when a folder grows over the limits: a small pack can unfold into more than the disk holds. */
async function watchSize(
  folder: string,
  tooLarge: AbortController,
  done: AbortSignal,
): Promise<void> {
  const paused = () => systemClock.sleep(200, done).then(() => true, () => false);
  while (await paused()) {
    if (isTooLarge(folder)) return tooLarge.abort();
  }
}

function isTooLarge(folder: string): boolean {
  let [bytes, files] = [0, 0];
  const folders = [folder];
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    try {
      for (const { name, isDirectory } of Deno.readDirSync(next)) {
        const path = join(next, name);
        if (isDirectory) folders.push(path);
        else bytes += Deno.lstatSync(path).size;
        if (bytes > MAX_BYTES || ++files > MAX_FILES) return true;
      }
    } catch {
      // not there yet, or not any more: Git is at work
    }
  }
  return false;
}

/** The command line of a clone: whatever the source is called stands behind `--`. */
export function cloneCommand(
  { url, ref }: Extract<PluginSource, { kind: "git" }>,
  folder: string,
  template: string,
): string[] {
  return [
    "env",
    ...FOREIGN.flatMap((name) => ["-u", name]),
    "git",
    ...Object.entries(SETTINGS).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    "clone",
    ...["--quiet", "--depth=1", "--single-branch", "--no-tags", "--no-recurse-submodules"],
    `--template=${template}`,
    ...(ref === "" ? [] : [`--branch=${ref}`]),
    "--",
    url,
    folder,
  ];
}

function complaint(output: string): string {
  const lines = output.split("\n").map((line) => line.trim()).filter(Boolean);
  const line = lines.find((line) => /^(fatal|error):/.test(line)) ?? lines.at(-1) ??
    "no reason given";
  return line.replace(/^(fatal|error): /, "").replace(/\.$/, "");
}
