import { basename, extname, join, sep } from "node:path";
import { errorMessage, SvcError, usageError } from "../platform/error.ts";
import {
  exists,
  mintId,
  readJson,
  removeTree,
  withFileLock,
  writeFileAtomic,
} from "../platform/files.ts";
import { clone } from "./clone.ts";
import { installPackages } from "./dependencies.ts";
import { inspectPlugin, type PluginInfo, REPLACED } from "./discovery.ts";
import type { PluginSource } from "./source.ts";
import { checkTree, copyTree } from "./tree.ts";

/** A root that plugins are installed into. */
export interface InstallRoot {
  origin: "global" | "local";
  /** `~/.config/svc/plugins` or `.svc/plugins`. */
  path: string;
  /** The folder that the root may not lead out of: the worktree, of a local one. */
  within?: string;
}

export interface InstallRequest {
  source: PluginSource;
  root: InstallRoot;
  /** The service's version. */
  version: string;
  /** Whether the manifest's packages are installed too. */
  deps: boolean;
  signal: AbortSignal;
  /** The plugin that is to be replaced by what is fetched, for an update. */
  replaces?: string;
}

/**
 * Fetches a plugin and puts it into a root (specification 4.9). It is made ready beside its place and renamed:
 * whatever fails, what was there stays, and a process that is killed leaves at most a hidden folder that
 * the next installation removes.
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
      place(staged, join(root.path, name));
      return (await inspectPlugin(join(root.path, name), root.origin, version))!;
    } finally {
      removeTree(staged);
    }
  });
}

/** Removes a plugin's folder, or its file when it is a bare one. */
export function removePlugin(path: string, root: InstallRoot): Promise<void> {
  return inRoot(root, () => {
    const aside = join(root.path, `${STAGED}${mintId()}`);
    Deno.renameSync(path, aside); // at once, and not file by file
    removeTree(aside);
  });
}

/** Installs the packages that a plugin requires, where it stands. */
export function addPackages(
  path: string,
  requires: readonly string[],
  root: InstallRoot,
  signal: AbortSignal,
): Promise<void> {
  return inRoot(root, () => installPackages(path, requires, signal));
}

const STAGED = ".staged-";

/** Runs a change while nobody else changes the root, and tidies up what a killed one has left. */
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

/** What was fetched, when it is a plugin that could be loaded. */
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

/** Notes in the manifest where the plugin came from. */
function record(folder: string, source: string): void {
  const file = join(folder, "manifest.json");
  const manifest = readJson(file) as Record<string, unknown>;
  writeFileAtomic(file, JSON.stringify({ ...manifest, source }, null, 2) + "\n");
}

/** Renames into place; a plugin that is there already is renamed away first, and back if that fails. */
function place(staged: string, target: string): void {
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
