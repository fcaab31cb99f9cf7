import { basename, dirname, extname, isAbsolute, join, normalize, sep } from "node:path";
import { errorMessage, SvcError, usageError } from "../platform/error.ts";
import {
  exists,
  mintId,
  readJson,
  removeTree,
  withFileLock,
  writeFileAtomic,
} from "../platform/files.ts";
import { installPackages } from "./dependencies.ts";
import { inspectPlugin, type PluginInfo, REPLACED } from "./discovery.ts";
import { clone, type PluginSource } from "./source.ts";

/** A folder that plugins are installed into. */
export interface InstallRoot {
  origin: "global" | "local";
  /** `~/.config/svc/plugins` or `.svc/plugins`. */
  path: string;
  /** The folder that must contain the root: the worktree, for a local root. */
  within?: string;
}

export interface InstallRequest {
  source: PluginSource;
  root: InstallRoot;
  /** The service's version. */
  version: string;
  /** Whether to install the packages that the manifest requires. */
  deps: boolean;
  signal: AbortSignal;
  /** For an update: the name of the plugin that is replaced. */
  replaces?: string;
}

/**
 * Fetches a plugin and installs it into a root (specification 4.9). The plugin is prepared in a hidden folder of
 * the root and then renamed: a failure leaves the installed plugins unchanged, and a killed process leaves at
 * most a hidden folder, which the next installation removes.
 *
 * @throws SvcError; nothing has changed then.
 */
export function installPlugin(request: InstallRequest): Promise<PluginInfo> {
  const { root, source, version, deps, signal, replaces } = request;
  return inRoot(root, async () => {
    const staged = join(root.path, `${STAGED}${mintId()}`);
    try {
      await fetchSource(source, staged, signal);
      const info = await accepted(staged, root, version);
      const { name } = info.manifest;
      if (replaces === undefined) checkFree(name, root);
      else if (name !== replaces) {
        throw usageError(
          "plugin_name",
          `${source.text} is the plugin ${name} now, not ${replaces}.`,
        );
      }
      record(staged, source.text);
      if (deps) await installPackages(staged, info.manifest.requires, signal);
      if (signal.aborted) throw new SvcError("cancelled", "Cancelled.", { exit: 130 });
      moveInto(staged, join(root.path, name));
      return (await inspectPlugin(join(root.path, name), root.origin, version))!;
    } finally {
      removeTree(staged);
    }
  });
}

/** Removes a plugin's folder, or its file for a single-file plugin. */
export function removePlugin(path: string, root: InstallRoot): Promise<void> {
  return inRoot(root, () => {
    const aside = join(root.path, `${STAGED}${mintId()}`);
    Deno.renameSync(path, aside); // atomic, unlike removing file by file
    removeTree(aside);
  });
}

/** Installs the packages that an installed plugin requires. */
export function addPackages(
  path: string,
  requires: readonly string[],
  root: InstallRoot,
  signal: AbortSignal,
): Promise<void> {
  return inRoot(root, () => installPackages(path, requires, signal));
}

const STAGED = ".staged-";

/** Runs a change under the root's lock, after removing the leftovers of a killed one. */
async function inRoot<T>(root: InstallRoot, change: () => T | Promise<T>): Promise<T> {
  try {
    Deno.mkdirSync(root.path, { recursive: true });
    checkInside(root);
    return await withFileLock(root.path, async () => {
      for (const { name } of Deno.readDirSync(root.path)) {
        const path = join(root.path, name);
        if (name.startsWith(STAGED)) removeTree(path);
        if (!name.startsWith(REPLACED)) continue;
        const former = join(root.path, name.slice(REPLACED.length));
        if (exists(former)) removeTree(path);
        else Deno.renameSync(path, former);
      }
      return await change();
    });
  } catch (error) {
    if (error instanceof SvcError) throw error;
    const reason = errorMessage(error).replace(/ \(os error \d+\).*$/s, "");
    throw new SvcError("plugin_write", `${root.path} could not be changed: ${reason}.`, {
      hint: "Nothing was installed, and what was there is as it was.",
      cause: error,
    });
  }
}

function checkInside({ path, within }: InstallRoot): void {
  if (within === undefined) return;
  const [real, base] = [Deno.realPathSync(path), Deno.realPathSync(within)];
  if (real.startsWith(base.endsWith(sep) ? base : base + sep)) return;
  throw usageError(
    "plugin_root",
    `${path} is a link that leads out of the worktree, so nothing is installed there.`,
    "Put a folder in its place, or install with --global.",
  );
}

async function fetchSource(source: PluginSource, to: string, signal: AbortSignal): Promise<void> {
  if (source.kind === "git") {
    await clone(source, to, signal);
    checkTree(to);
  } else if (source.kind === "folder") copyTree(source.path, to);
  else {
    const file = basename(source.path);
    Deno.mkdirSync(to);
    Deno.copyFileSync(source.path, join(to, file));
    const manifest = { name: basename(file, extname(file)), entry: file };
    Deno.writeTextFileSync(join(to, "manifest.json"), JSON.stringify(manifest, null, 2) + "\n");
  }
}

/** Checks that the fetched folder is a plugin that can be loaded. */
async function accepted(
  staged: string,
  { origin }: InstallRoot,
  version: string,
): Promise<PluginInfo> {
  const info = await inspectPlugin(staged, origin, version);
  const reason = info === undefined ? "it has no manifest.json" : info.reason;
  if (info?.status === "loaded") return info;
  throw usageError("plugin_invalid", `Nothing was installed: ${reason}.`);
}

function checkFree(name: string, root: InstallRoot): void {
  if (!exists(join(root.path, name))) return;
  throw usageError(
    "plugin_exists",
    `The plugin ${name} is installed already, in ${root.path}.`,
    `Fetch it anew with: svc plugins update ${name}, or uninstall it first.`,
  );
}

/** Records the source in the plugin's manifest. */
function record(folder: string, source: string): void {
  const file = join(folder, "manifest.json");
  const manifest = readJson(file) as Record<string, unknown>;
  writeFileAtomic(file, JSON.stringify({ ...manifest, source }, null, 2) + "\n");
}

/** Renames the prepared folder to its target. A former plugin is renamed away first, and back if that fails. */
function moveInto(staged: string, target: string): void {
  if (!exists(target)) return Deno.renameSync(staged, target);
  const former = join(target, "..", `${REPLACED}${basename(target)}`);
  removeTree(former);
  Deno.renameSync(target, former);
  try {
    Deno.renameSync(staged, target);
  } catch (error) {
    Deno.renameSync(former, target);
    throw error;
  }
  removeTree(former);
}

/** Limits of a plugin's folder. */
const MAX_ENTRIES = 20_000;
const MAX_BYTES = 200_000_000;
const MAX_DEPTH = 32;

/** Folders of a working copy that are not part of the plugin. */
const SKIPPED = [".git", ".svc", "node_modules"];

interface Entry {
  /** Path relative to the folder. */
  path: string;
  kind: "folder" | "file" | "link";
  /** Target of a link. */
  target: string;
}

/**
 * Checks that a folder holds only regular files, folders and links to its own entries, within the limits.
 *
 * @throws SvcError `plugin_files` (exit 2) that names the first entry that is not allowed.
 */
function checkTree(folder: string): void {
  readTree(folder, []);
}

/** Copies a plugin's files to `to`, which must not exist. Checks them as `checkTree` does. */
function copyTree(from: string, to: string): void {
  const entries = readTree(from, SKIPPED);
  Deno.mkdirSync(to);
  for (const { path, kind, target } of entries) {
    const copy = join(to, path);
    if (kind === "folder") Deno.mkdirSync(copy);
    else if (kind === "link") Deno.symlinkSync(target, copy);
    else Deno.copyFileSync(join(from, path), copy);
  }
}

function readTree(folder: string, skipped: string[]): Entry[] {
  const entries: Entry[] = [];
  let bytes = 0;
  const walk = (subfolder: string, depth: number) => {
    if (depth > MAX_DEPTH) throw refused(subfolder, `lies more than ${MAX_DEPTH} folders deep`);
    for (const { name } of Deno.readDirSync(join(folder, subfolder))) {
      if (skipped.includes(name)) continue;
      const path = join(subfolder, name);
      // deno-lint-ignore no-control-regex
      if (/[\x00-\x1f\x7f]/.test(name)) throw refused(path, "has control characters in its name");
      const { isFile, isDirectory, isSymlink, size } = Deno.lstatSync(join(folder, path));
      bytes += size;
      if (bytes > MAX_BYTES) throw refused(path, `makes it larger than ${MAX_BYTES / 1e6} MB`);
      if (entries.length >= MAX_ENTRIES) throw refused(path, `is one of over ${MAX_ENTRIES} files`);
      if (isSymlink) entries.push({ path, kind: "link", target: checkedLink(folder, path) });
      else if (isFile) entries.push({ path, kind: "file", target: "" });
      else if (isDirectory) {
        entries.push({ path, kind: "folder", target: "" });
        walk(path, depth + 1);
      } else throw refused(path, "is neither a file nor a folder nor a link");
    }
  };
  walk("", 1);
  return entries;
}

/** The target of a link. It has to be relative and inside the folder, so that the folder can be moved. */
function checkedLink(folder: string, path: string): string {
  const target = Deno.readLinkSync(join(folder, path));
  const inside = normalize(join(dirname(path), target));
  const outside = refused(path, "is a link that leads out of the plugin's folder");
  if (isAbsolute(target) || inside === ".." || inside.startsWith(`..${sep}`)) throw outside;
  let real: string;
  try {
    real = Deno.realPathSync(join(folder, path));
  } catch {
    throw refused(path, "is a link that leads nowhere");
  }
  const root = Deno.realPathSync(folder);
  if (real !== root && !real.startsWith(root + sep)) throw outside;
  return target;
}

function refused(path: string, reason: string): Error {
  return usageError("plugin_files", `Nothing was installed: ${JSON.stringify(path)} ${reason}.`);
}
