import { isAbsolute, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { systemClock } from "../platform/clock.ts";
import { SvcError, usageError } from "../platform/error.ts";
import { exists, removeTree } from "../platform/files.ts";
import { runProcess } from "../platform/process.ts";

/** The source of an installation: a Git repository, a folder or a single module. */
export type PluginSource =
  & { /** The source as the manifest records it. */ readonly text: string }
  & (
    | {
      readonly kind: "git";
      readonly url: string;
      readonly protocol: string;
      readonly ref: string;
    }
    | { readonly kind: "folder" | "module"; readonly path: string }
  );

const PROTOCOLS = ["https", "ssh", "file", "http"];
const HOST = /^[A-Za-z0-9[][\w.:\]-]*$/;
const SCP = /^(?:([\w.-]+)@)?([A-Za-z0-9][\w.-]*):(?!\/\/)([^\s-][^\s]*)$/;
/** An SCP-like address with a password in it: `https:me:secret@host/p`, `me:secret@host:p`. */
const SCP_PASSWORD = /^[^/@]*:[^/]*@/;
const REF = /^[A-Za-z0-9][\w./+-]{0,199}$/;

/**
 * Parses the source that `plugins install` is given: a path, or a URL (`https:`, `ssh:`, `file:`, or
 * `git@host:path`) with an optional branch or tag after `#`. Refuses anything that Git could read as an option, a
 * command or another transport.
 *
 * @param base folder that a relative path starts at.
 * @throws SvcError `plugin_source` (exit 2)
 */
export function readSource(given: string, base: string, home: string): PluginSource {
  // deno-lint-ignore no-control-regex
  if (given === "" || /[\x00-\x1f\x7f]/.test(given)) {
    throw refused(given, "it is no URL and no path");
  }
  if (given.startsWith("-")) {
    throw refused(given, "it begins with a dash", "Write a path as ./-name.");
  }
  const path = given.startsWith("~/") ? join(home, given.slice(2)) : resolve(base, given);
  const looksLocal = isAbsolute(given) || /^(\.{1,2}|~)(\/|$)/.test(given);
  if (looksLocal || (!/^[\w+.-]*:/.test(given) && !SCP.test(given))) {
    return localSource(given, path);
  }
  if (/^[\w+.-]*::/.test(given)) throw refused(given, "transports that run programs are not used");
  const [address = "", ref = ""] = split(given);
  if (ref !== "" && (!REF.test(ref) || ref.includes(".."))) {
    throw refused(given, `"${ref}" is no name of a branch or tag`);
  }
  if (/^[a-z][\w+.-]*:\/\//i.test(address)) return urlSource(given, address, ref);
  if (!SCP.test(address)) throw refused(given, "it is no URL and no path");
  if (SCP_PASSWORD.test(address)) throw credentials(given);
  return { kind: "git", text: given, url: address, protocol: "ssh", ref };
}

function urlSource(given: string, address: string, ref: string): PluginSource {
  // Git parses these characters differently and would connect to another host.
  if (/[\s\\"<>^`{|}]/.test(address)) throw refused(given, "it is no URL");
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const protocol = url?.protocol.slice(0, -1) ?? "";
  if (url === undefined) throw refused(given, "it is no URL");
  if (!PROTOCOLS.includes(protocol)) {
    throw refused(given, `${protocol}: is not used`, "Use https:, ssh: or a path.");
  }
  if (protocol !== "file" && !HOST.test(url.hostname)) throw refused(given, "it names no host");
  // The fetched code is run, so the transport has to protect it from changes.
  if (protocol === "http" && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname)) {
    throw refused(given, "http: is not safe against changes on the way", "Use https:.");
  }
  if (url.password !== "" || (url.username !== "" && protocol !== "ssh")) {
    throw credentials(given);
  }
  if (url.search !== "") throw credentials(given, "has a query, which may hold");
  if (!/^[\w.@-]*$/.test(url.username) || url.username.startsWith("-")) {
    throw refused(given, "its user name is no plain name");
  }
  return { kind: "git", text: given, url: address, protocol, ref };
}

function localSource(given: string, path: string): PluginSource {
  let stat: Deno.FileInfo;
  try {
    path = Deno.realPathSync(path);
    stat = Deno.statSync(path);
  } catch {
    throw refused(given, "there is no such file or folder");
  }
  if (stat.isDirectory) {
    if (exists(join(path, "manifest.json"))) return { kind: "folder", text: path, path };
    if (!exists(join(path, "HEAD")) || !exists(join(path, "objects"))) {
      throw refused(given, "it has no manifest.json", "A plugin is a folder with a manifest.json.");
    }
    return { kind: "git", text: path, url: pathToFileURL(path).href, protocol: "file", ref: "" };
  }
  if (stat.isFile && /\.(ts|js|mjs)$/.test(path) && !path.endsWith(".d.ts")) {
    return { kind: "module", text: path, path };
  }
  throw refused(given, "it is no folder and no module", "Archives have to be unpacked first.");
}

/** The address, and the branch or tag after `#`. */
function split(given: string): string[] {
  const at = given.indexOf("#");
  return at < 0 ? [given] : [given.slice(0, at), given.slice(at + 1)];
}

function credentials(given: string, why = "holds"): Error {
  return refused(
    given,
    `it ${why} credentials, which would be kept in a readable file`,
    "Use ssh: with a key, or clone it yourself and install the folder.",
  );
}

function refused(given: string, reason: string, hint = ""): Error {
  // The message must not repeat a password or a token.
  const what = /:.*[@?]/.test(given) ? "the URL" : JSON.stringify(given.slice(0, 200));
  return usageError("plugin_source", `A plugin cannot be installed from ${what}: ${reason}.`, hint);
}

/** Seconds that a clone may take. */
const LIMIT = 600;

/**
 * Settings that override every configuration: no hooks, no credential helper, no programs except ssh and Git's
 * own. The user's network settings (proxies, certificates) stay in force.
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
 * Variables that Git sets for a program that it starts, such as a hook that runs svc. They name another
 * repository, whose files and index a clone would overwrite.
 */
const GIT_VARIABLES = [
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

/** Override the repository's `.gitattributes`: no filter of the user changes a file. */
export const ATTRIBUTES = "* -filter -text -ident -eol -working-tree-encoding\n";

/** Exit code of `env` for a program that does not exist. */
const NOT_FOUND = 127;

/** Limits of a clone, its pack included: twice the limits of a plugin's folder (`install.ts`). */
const MAX_BYTES = 400_000_000;
const MAX_FILES = 40_000;

/**
 * Clones the latest commit of a repository, without its history, into `folder`, which must not exist.
 *
 * @throws SvcError `plugin_clone` with Git's message.
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
      env: gitEnvironment(source.protocol),
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
      const reason = tooLarge.signal.aborted
        ? `it is larger than ${MAX_BYTES / 1e6} MB or ${MAX_FILES} files`
        : timed_out
        ? `it took longer than ${LIMIT / 60} minutes`
        : complaint(output);
      throw new SvcError("plugin_clone", `${source.text} could not be cloned: ${reason}.`);
    }
    removeTree(join(folder, ".git"));
  } finally {
    done.abort();
    removeTree(template);
  }
}

/** Aborts when a folder exceeds the limits. A small pack can unpack to more than the disk holds. */
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
      // Git creates and removes folders meanwhile
    }
  }
  return false;
}

/** The command line of a clone. The source follows `--`, so that it is never read as an option. */
export function cloneCommand(
  { url, ref }: Extract<PluginSource, { kind: "git" }>,
  folder: string,
  template: string,
): string[] {
  return gitCommand([
    "clone",
    ...["--quiet", "--depth=1", "--single-branch", "--no-tags", "--no-recurse-submodules"],
    `--template=${template}`,
    ...(ref === "" ? [] : [`--branch=${ref}`]),
    "--",
    url,
    folder,
  ]);
}

/**
 * The command line of Git with settings that override every configuration.
 *
 * @param options.credentials uses the user's credential helper. Default: no
 */
export function gitCommand(
  args: string[],
  { credentials = false }: { credentials?: boolean } = {},
): string[] {
  const settings = Object.entries(SETTINGS)
    .filter(([name]) => !credentials || name !== "credential.helper");
  return [
    "env",
    ...GIT_VARIABLES.flatMap((name) => ["-u", name]),
    "git",
    ...settings.flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    ...args,
  ];
}

/** The environment of Git: without questions to the user, and with one protocol. */
export function gitEnvironment(protocol: string): Record<string, string> {
  return {
    GIT_ALLOW_PROTOCOL: protocol,
    GIT_ASKPASS: "",
    SSH_ASKPASS: "",
    GIT_TERMINAL_PROMPT: "0",
    GIT_SSH_COMMAND: "ssh -o BatchMode=yes",
    LC_ALL: "C.UTF-8",
  };
}

/** The reason for which Git has failed, from its output. */
export function complaint(output: string): string {
  const lines = output.split("\n").map((line) => line.trim()).filter(Boolean);
  const line = lines.find((line) => /^(fatal|error):/.test(line)) ?? lines.at(-1) ?? "";
  return line.replace(/^(fatal|error): /, "").replace(/\.$/, "") || "no reason given";
}
