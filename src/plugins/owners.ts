import { sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** The plugin that a module belongs to. */
export interface Owner {
  /** Real path of its folder, or of its file when it is a bare one. */
  folder: string;
  plugin: string;
  warn: (message: string) => void;
}

/**
 * Whose modules were imported, by folder. This belongs to the process and to no workspace, as what it is about
 * does: the module loader, and errors that nobody waits for.
 */
const owners = new Map<string, Owner>();

/**
 * Notes that the modules of a folder are a plugin's. An error that one of them throws where nobody can catch
 * it, in a timer or a promise left alone, is a warning from then on and does not end the process.
 */
export function claim(owner: Owner): void {
  const first = owners.size === 0;
  owners.set(owner.folder, owner);
  if (!first) return;
  globalThis.addEventListener("unhandledrejection", (event) => {
    if (reported(event.reason)) event.preventDefault();
  });
  globalThis.addEventListener("error", (event) => {
    if (reported(event.error)) event.preventDefault();
  });
}

/** The plugin whose module a URL is. */
export function ownerOf(url: string): Owner | undefined {
  if (!url.startsWith("file:")) return undefined;
  const path = fileURLToPath(url.replace(/[?#].*$/, ""));
  return [...owners.values()].find(({ folder }) =>
    path === folder || path.startsWith(folder + sep)
  );
}

/** Warns of an error that came out of a plugin's module; says whether it did. */
function reported(error: unknown): boolean {
  if (!(error instanceof Error)) {
    // Without a stack there is no telling whose it is; the program itself throws errors only.
    [...owners.values()].at(-1)?.warn(`A plugin failed outside of its hooks: ${String(error)}`);
    return true;
  }
  const stack = error.stack ?? "";
  const owner = [...owners.values()].find(({ folder }) =>
    stack.includes(pathToFileURL(folder).href)
  );
  owner?.warn(`The plugin ${owner.plugin} failed outside of its hooks: ${error.message}`);
  return owner !== undefined;
}
