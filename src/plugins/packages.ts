import { join, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/**
 * Folders of plugins, and the plugins' names. This belongs to the process and to no workspace, as the module
 * loader does that it is about.
 */
const folders = new Map<string, string>();

/**
 * Has what the modules of a plugin's folder import by a bare name come from that folder's own `node_modules`, and
 * from nowhere else: under Deno itself such names would mean the program's own packages.
 */
export async function ownPackages(folder: string, plugin: string): Promise<void> {
  const first = folders.size === 0;
  folders.set(folder, plugin);
  if (!first) return;
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
  if ((error as { code?: unknown } | null)?.code !== "ERR_MODULE_NOT_FOUND") return undefined;
  const message = String((error as Error).message);
  const own = /^(?:Error: )?(requires [^\n]+)/.exec(message)?.[1];
  const name = /^Import "([^"\n]+)" not a dependency/.exec(message)?.[1];
  if (own !== undefined || name === undefined) return own;
  return `requires ${name}; name it under "requires" in the plugin's manifest, and install it with: ` +
    "svc plugins update <plugin> --deps";
}

/** The package that a bare specifier names; undefined for a path, a URL or a module of Node. */
function packageName(specifier: string): string | undefined {
  return /^(?:npm:\/?)?((?:@[^/:]+\/)?[^@./:][^@/:]*)(?:[@/][^:]*)?$/.exec(specifier)?.[1];
}

function ownerOf(parent: string): { folder: string; plugin: string } | undefined {
  if (!parent.startsWith("file:")) return undefined;
  const path = fileURLToPath(parent.replace(/[?#].*$/, ""));
  for (const [folder, plugin] of folders) {
    if (path.startsWith(folder + sep)) return { folder, plugin };
  }
  return undefined;
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
