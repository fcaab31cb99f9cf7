import { basename, dirname, extname, join, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { errorMessage } from "../platform/error.ts";
import { entriesOf, statIfExists } from "../platform/files.ts";
import type { PluginModule } from "./api.ts";
import { BUNDLED, type BundledPlugin } from "./bundled.ts";
import {
  defaultManifest,
  inRange,
  type Manifest,
  parseManifest,
  readManifest,
} from "./manifest.ts";

/** A plugin and its status (specification 3.5). */
export interface PluginInfo {
  name: string;
  version: string;
  description: string;
  origin: "bundled" | "global" | "local";
  /** The plugin's folder, or its file for a single-file plugin. Empty for a bundled plugin. */
  path: string;
  status: "loaded" | "disabled" | "incompatible" | "error";
  /** Why it is not loaded; empty for a loaded plugin. */
  reason: string;
  manifest: Manifest;
}

/** The folders to search for plugins, and the plugins to enable. */
export interface DiscoveryRequest {
  /** `~/.config/svc/plugins` and `.svc/plugins`. They need not exist. */
  roots: { global: string; local: string };
  /** The setting `plugins`: names of plugins. Empty enables all. */
  enabled: string[];
  /** The service's version. */
  version: string;
  /** Whether the code of a local plugin may be imported, as its files are now. */
  trusts: (plugin: PluginInfo) => boolean;
  bundled?: readonly BundledPlugin[];
}

/** The reason of a local plugin that is not trusted; its status is `disabled`. */
export const UNTRUSTED = "not trusted; see svc trust";

/** A plugin that was found, and a function that imports it. */
export interface Candidate {
  info: PluginInfo;
  load: () => Promise<PluginModule>;
}

/**
 * Lists the installed plugins without importing them. Status `loaded` means that the plugin can be imported. Of
 * plugins with the same name, the one that wins is listed, and every broken or incompatible one.
 */
export async function discoverPlugins(request: DiscoveryRequest): Promise<PluginInfo[]> {
  return (await discover(request)).map(({ info }) => info);
}

/**
 * Finds plugins: the bundled ones, then those of the global root, then those of the local root, sorted by name
 * within a root. A later plugin replaces an earlier one of the same name, unless it cannot be loaded.
 */
export async function discover(request: DiscoveryRequest): Promise<Candidate[]> {
  const found = (request.bundled ?? BUNDLED).map((plugin) =>
    bundledCandidate(plugin, request.version)
  );
  for (const origin of ["global", "local"] as const) {
    for (const entry of entries(request.roots[origin])) {
      const candidate = externalCandidate(request.roots[origin], entry, origin);
      if (candidate !== undefined) found.push(candidate);
    }
  }
  const enabled = new Set(request.enabled);
  const winners = new Map<string, Candidate>();
  for (const { info, load } of found) {
    if (info.status === "loaded" && info.origin === "local" && !request.trusts(info)) {
      Object.assign(info, { status: "disabled", reason: UNTRUSTED });
      continue; // the plugin of a lower root counts
    }
    if (info.status !== "incompatible" && enabled.size > 0 && !enabled.has(info.name)) {
      Object.assign(info, { status: "disabled", reason: "not in the setting plugins" });
    } else if (info.status === "loaded") {
      const reason = await incompatibility(info.manifest, request.version);
      if (reason !== "") Object.assign(info, { status: "incompatible", reason });
    }
    if (info.status === "loaded" || info.status === "disabled") {
      winners.set(info.name, { info, load });
    }
  }
  return found.filter(({ info }) =>
    info.status === "error" || info.status === "incompatible" || info.reason === UNTRUSTED ||
    winners.get(info.name)?.info === info
  );
}

/**
 * Checks whether the folder at `path` is a plugin that can be loaded, without importing it. Undefined when it has
 * no manifest.
 */
export async function inspectPlugin(
  path: string,
  origin: "global" | "local",
  version: string,
): Promise<PluginInfo | undefined> {
  const info = externalCandidate(dirname(path), basename(path), origin)?.info;
  if (info?.status !== "loaded") return info;
  const reason = await incompatibility(info.manifest, version);
  return reason === "" ? info : { ...info, status: "incompatible", reason };
}

/** A bundled plugin has the program's version (specification 9.3). */
function bundledCandidate({ manifest, load }: BundledPlugin, version: string): Candidate {
  return { info: describe({ ...parseManifest(manifest), version }, "bundled", ""), load };
}

/** Prefix of the folder that holds the former plugin during an update. */
export const REPLACED = ".replaced-";

/** The entries of a root, sorted so that the loading order does not depend on the file system. */
function entries(root: string): string[] {
  const names = entriesOf(root).map(({ name }) => name);
  // An update that was killed between its two renames has left the former plugin under this name.
  const former = names.filter((name) =>
    name.startsWith(REPLACED) && !names.includes(name.slice(REPLACED.length))
  );
  return [...names.filter((name) => !name.startsWith(".")), ...former].sort();
}

const SCRIPTS = [".ts", ".js", ".mjs"];

/** The plugin that an entry of a root is; undefined when it is not a plugin. */
function externalCandidate(
  root: string,
  entry: string,
  origin: "global" | "local",
): Candidate | undefined {
  const path = join(root, entry);
  const stat = statIfExists(path);
  const extension = extname(entry);
  if (stat?.isFile && [...SCRIPTS, ".py"].includes(extension) && !entry.endsWith(".d.ts")) {
    const manifest = defaultManifest(basename(entry, extension), entry);
    return entryCandidate(describe(manifest, origin, path), root);
  }
  if (!stat?.isDirectory || statIfExists(join(path, "manifest.json")) === undefined) return;
  try {
    return entryCandidate(describe(readManifest(path), origin, path), path);
  } catch (error) {
    const info = describe(defaultManifest(entry), origin, path);
    return failed(info, errorMessage(error));
  }
}

/** Resolves a plugin's entry module. With links resolved, it has to be inside `root`. */
function entryCandidate(info: PluginInfo, root: string): Candidate {
  const { name, manifest: { entry } } = info;
  if (isPython(info.manifest, root)) {
    const reason =
      "it is written in Python, and svc runs TypeScript and JavaScript; write it anew, " +
      `beginning with svc plugins new ${name}, or remove it: svc plugins uninstall ${name}`;
    return { info: { ...info, status: "incompatible", reason }, load: never };
  }
  let file: string;
  let stat: Deno.FileInfo;
  try {
    file = Deno.realPathSync(join(root, entry));
    stat = Deno.statSync(file);
  } catch {
    return failed(info, `its entry ${entry} does not exist`);
  }
  if (!file.startsWith(Deno.realPathSync(root) + sep)) {
    return failed(info, `its entry ${entry} lies outside of the plugin's folder`);
  }
  if (!stat.isFile) return failed(info, `its entry ${entry} is not a file`);
  const url = pathToFileURL(file);
  // Deno caches modules by URL for the life of the process. A file that changed since the process started gets
  // another URL, so that an updated plugin is imported again.
  const { ctime, mtime, size, ino } = stat;
  const changed = (ctime ?? mtime)?.getTime() ?? 0;
  if (changed + 1000 > performance.timeOrigin) { // ctime is in whole seconds
    url.searchParams.set("changed", [changed, mtime?.getTime(), size, ino].join("-"));
  }
  return { info, load: () => import(url.href) };
}

/** Whether a plugin is one of the former implementation, whose default entry is `plugin.py`. */
function isPython({ entry, python }: Manifest, root: string): boolean {
  if (entry.endsWith(".py") || python !== "") return true;
  const missing = statIfExists(join(root, entry)) === undefined;
  return missing && statIfExists(join(root, "plugin.py")) !== undefined;
}

async function incompatibility(manifest: Manifest, version: string): Promise<string> {
  const checks = [
    { key: "polyglav_version", product: "svc", is: version },
    { key: "deno", product: "Deno", is: Deno.version.deno },
  ] as const;
  for (const { key, product, is } of checks) {
    const range = manifest[key];
    if (range === "") continue;
    const fits = await inRange(is, range);
    if (fits === undefined) return `its ${key} "${range}" is not a version range`;
    if (!fits) return `it needs ${product} ${range}, and this is ${is}`;
  }
  return "";
}

function describe(manifest: Manifest, origin: PluginInfo["origin"], path: string): PluginInfo {
  const { name, version, description } = manifest;
  return { name, version, description, origin, path, status: "loaded", reason: "", manifest };
}

function failed(info: PluginInfo, reason: string): Candidate {
  return { info: { ...info, status: "error", reason }, load: never };
}

const never = () => Promise.reject(new Error("the plugin has no module that could be imported"));
