import { isAbsolute, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { usageError } from "../platform/error.ts";

/** Where a plugin comes from: a Git repository, a folder, or a single module. */
export type PluginSource =
  & { /** As it is recorded in the manifest. */ readonly text: string }
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
/** A password where the path should be: `https:me:secret@host/p`, `me:secret@host:p`. */
const SCP_PASSWORD = /^[^/@]*:[^/]*@/;
const REF = /^[A-Za-z0-9][\w./+-]{0,199}$/;

/**
 * Reads what `plugins install` is given: a URL (`https:`, `ssh:`, `file:`, or `git@host:path`), with a branch
 * or tag behind `#`, or a path. What Git could take for an option, a command or another transport is refused.
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
  // Git reads these in another way than a URL is read here, and goes to another host.
  if (/[\s\\"<>^`{|}]/.test(address)) throw refused(given, "it is no URL");
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const protocol = url?.protocol.slice(0, -1) ?? "";
  if (url === undefined) throw refused(given, "it is no URL");
  if (!PROTOCOLS.includes(protocol)) {
    throw refused(given, `${protocol}: is not used`, "Use https:, ssh: or a path.");
  }
  if (protocol !== "file" && !HOST.test(url.hostname)) throw refused(given, "it names no host");
  // What arrives is run: nobody on the way may have changed it.
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

/** The address, and the branch or tag behind `#`. */
function split(given: string): string[] {
  const at = given.indexOf("#");
  return at < 0 ? [given] : [given.slice(0, at), given.slice(at + 1)];
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}

function credentials(given: string, why = "holds"): Error {
  return refused(
    given,
    `it ${why} credentials, which would be kept in a readable file`,
    "Use ssh: with a key, or clone it yourself and install the folder.",
  );
}

function refused(given: string, reason: string, hint = ""): Error {
  // What may be a password or a token is told to nobody.
  const what = /:.*[@?]/.test(given) ? "the URL" : JSON.stringify(given.slice(0, 200));
  return usageError("plugin_source", `A plugin cannot be installed from ${what}: ${reason}.`, hint);
}
