import { join, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { errorMessage } from "../platform/error.ts";
import { statIfExists } from "../platform/files.ts";

/** An external plugin whose modules were imported. */
export interface PluginModules {
  plugin: string;
  /** Real path of its folder, or of its file when it is a bare one. */
  folder: string;
  /** Receives one line for each error that the plugin leaves uncaught. */
  warn: (message: string) => void;
}

/**
 * The external plugins of this process, by folder. Module-level, because the module loader, the console and
 * uncaught errors belong to the process and not to a workspace.
 */
const imported = new Map<string, PluginModules>();
let packagesHooked = false;

/**
 * Prepares the process for the modules of an external plugin:
 *
 * - `console` writes to standard error, because standard output carries the program's own output;
 * - an uncaught error of the plugin, in a timer or a promise, is a warning and does not end the process;
 * - the packages that it `requires` are resolved in its own `node_modules`.
 */
export async function prepareModules(modules: PluginModules, requires: string[]): Promise<void> {
  const first = imported.size === 0;
  imported.set(modules.folder, modules);
  if (first) {
    const { console } = globalThis;
    const { error } = console;
    Object.assign(console, { log: error, info: error, debug: error, dir: error, dirxml: error });
    globalThis.addEventListener("unhandledrejection", (event) => {
      if (warnUncaught(event.reason)) event.preventDefault();
    });
    globalThis.addEventListener("error", (event) => {
      if (warnUncaught(event.error)) event.preventDefault();
    });
  }
  if (requires.length > 0) await hookPackages();
}

/** Warns of an uncaught error whose stack names a plugin's module. Returns false for any other error. */
function warnUncaught(error: unknown): boolean {
  const stack = error instanceof Error ? String(error.stack) : undefined;
  const plugins = [...imported.values()];
  // The program itself throws errors only: a value without a stack is a plugin's, most likely the last one's.
  const source = stack === undefined
    ? plugins.at(-1)
    : plugins.find(({ folder }) => stack.includes(pathToFileURL(folder).href));
  source?.warn(`The plugin ${source.plugin} failed outside of its hooks: ${reasonOf(error)}`);
  return source !== undefined;
}

/**
 * Resolves the bare names that plugin modules import in the plugin's own `node_modules`, and nowhere else:
 * Deno itself would resolve them to the program's own packages.
 */
async function hookPackages(): Promise<void> {
  if (packagesHooked) return;
  packagesHooked = true;
  const { registerHooks } = await import("node:module");
  registerHooks({
    resolve(specifier, { parentURL = "" }, next) {
      const name = packageName(specifier);
      const importer = name === undefined ? undefined : pluginOf(parentURL);
      if (importer === undefined) return next(specifier);
      const module = join(importer.folder, "node_modules", name!, "index.js");
      if (statIfExists(module)?.isFile) {
        return { url: pathToFileURL(module).href, shortCircuit: true };
      }
      throw new Error(
        `requires ${name}; install it with: svc plugins update ${importer.plugin} --deps`,
      );
    },
  });
}

/** The plugin that the module at a URL belongs to. */
function pluginOf(url: string): PluginModules | undefined {
  if (!url.startsWith("file:")) return undefined;
  const path = fileURLToPath(url.replace(/[?#].*$/, ""));
  return [...imported.values()].find(({ folder }) =>
    path === folder || path.startsWith(folder + sep)
  );
}

/** The package that a bare specifier names; undefined for a path, a URL or a module of Node. */
function packageName(specifier: string): string | undefined {
  return /^(?:npm:\/?)?((?:@[^/:]+\/)?[^@./:][^@/:]*)(?:[@/][^:]*)?$/.exec(specifier)?.[1];
}

/**
 * Describes an import that failed because of a missing package, as in `requires marked; install it with: ...`
 * (specification 7.3). Returns undefined for any other error.
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

/** Characters of a plugin's error message that are repeated. */
const MAX_REASON = 1000;

/** The message of anything that a plugin throws, shortened, without the final full stop. */
export function reasonOf(error: unknown): string {
  const reason = errorMessage(error).replace(/\.$/, "");
  return reason.length > MAX_REASON ? `${reason.slice(0, MAX_REASON).toWellFormed()}…` : reason;
}

/** The `code` of an error. A thrown value may be a proxy or have a getter that throws. */
function codeOf(error: unknown): unknown {
  try {
    return (error as { code?: unknown } | null)?.code;
  } catch {
    return undefined;
  }
}
