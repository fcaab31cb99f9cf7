import { dirname, isAbsolute, join, normalize, sep } from "node:path";
import { usageError } from "../platform/error.ts";

/** What a plugin may hold, so that an installation ends. */
const MAX_ENTRIES = 20_000;
const MAX_BYTES = 200_000_000;
const MAX_DEPTH = 32;

/** What a folder that somebody works in holds beside the plugin. */
const LEFT_OUT = [".git", ".svc", "node_modules"];

interface Entry {
  /** Path below the folder. */
  path: string;
  kind: "folder" | "file" | "link";
  /** Where a link points. */
  target: string;
}

/**
 * Checks all that a folder holds: regular files, folders, and links that stay in it, within limits.
 *
 * @throws SvcError `plugin_files` (exit 2) that names the first entry that may not be there.
 */
export function checkTree(folder: string): void {
  readTree(folder, []);
}

/**
 * Copies what belongs to a plugin into `to`, which must not exist. Checked as by `checkTree`, and without
 * what belongs to working on it.
 */
export function copyTree(from: string, to: string): void {
  const entries = readTree(from, LEFT_OUT);
  Deno.mkdirSync(to);
  for (const { path, kind, target } of entries) {
    const place = join(to, path);
    if (kind === "folder") Deno.mkdirSync(place);
    else if (kind === "link") Deno.symlinkSync(target, place);
    else Deno.copyFileSync(join(from, path), place);
  }
}

function readTree(folder: string, leftOut: string[]): Entry[] {
  const entries: Entry[] = [];
  let bytes = 0;
  const walk = (below: string, depth: number) => {
    if (depth > MAX_DEPTH) throw refused(below, `lies more than ${MAX_DEPTH} folders deep`);
    for (const { name } of Deno.readDirSync(join(folder, below))) {
      if (leftOut.includes(name)) continue;
      const path = join(below, name);
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

/** Where a link points; it has to stay below the folder, also once that lies elsewhere. */
function checkedLink(folder: string, path: string): string {
  const target = Deno.readLinkSync(join(folder, path));
  const place = normalize(join(dirname(path), target));
  const outside = refused(path, "is a link that leads out of the plugin's folder");
  if (isAbsolute(target) || place === ".." || place.startsWith(`..${sep}`)) throw outside;
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
