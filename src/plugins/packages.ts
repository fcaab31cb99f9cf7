import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { errorMessage } from "../platform/error.ts";
import { ownerOf } from "./owners.ts";

/** The module loader is the process's own, and asked to change once. */
let hooked = false;

/**
 * Has what the modules of plugins import by a bare name come from the plugin's own `node_modules`, and from nowhere
 * else: under Deno itself such names would mean the program's own packages.
 */
export async function ownPackages(): Promise<void> {
  if (hooked) return;
  hooked = true;
  const { registerHooks } = await import("node:module");
  registerHooks({
    resolve(specifier, { parentURL = "" }, next) {
      const name = packageName(specifier);
      const owner = name === undefined ? undefined : ownerOf(parentURL);
      if (owner === undefined) return next(specifier);
      const module = join(owner.folder, "node_modules", name!, "index.js");
      if (isFile(module)) return { url: pathToFileURL(module).href, shortCircuit: true };
      throw new Error(
        `requires ${name}; install it with: svc plugins update ${owner.plugin} --deps`,
      );
    },
  });
}

/**
 * What an import failed for, as in `requires marked; install it with: ...`; undefined when the reason is not a
 * missing package (specification 7.3).
 */
export function missingPackage(error: unknown): string | undefined {
  if (codeOf(error) !== "ERR_MODULE_NOT_FOUND") return undefined;
  const message = errorMessage(error);
  const own = /^(?:Error: )?(requires [^\n]+)/.exec(message)?.[1];
  const name = /^Import "([^"\n]+)" not a dependency/.exec(message)?.[1];
  if (own !== undefined || name === undefined) return own;
  return `requires ${name}: name it under "requires" in the plugin's manifest, import it inside a function ` +
    `(await import("${name}")), and install it with: svc plugins update <plugin> --deps`;
}

/** A plugin may throw what does not let itself be looked at. */
function codeOf(error: unknown): unknown {
  try {
    return (error as { code?: unknown } | null)?.code;
  } catch {
    return undefined;
  }
}

/** The package that a bare specifier names; undefined for a path, a URL or a module of Node. */
function packageName(specifier: string): string | undefined {
  return /^(?:npm:\/?)?((?:@[^/:]+\/)?[^@./:][^@/:]*)(?:[@/][^:]*)?$/.exec(specifier)?.[1];
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
