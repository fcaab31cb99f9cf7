import { sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { watchGlobals } from "./globals.ts";
import { reasonOf } from "./reason.ts";

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
/** Undoes what has been changed of the built-in objects since before the first module of a plugin ran. */
let undo: () => string[] = () => [];

/**
 * Notes that the modules of a folder are a plugin's. An error that one of them throws where nobody can catch
 * it, in a timer or a promise left alone, is a warning from then on and does not end the process.
 */
export function claim(owner: Owner): void {
  const first = owners.size === 0;
  owners.set(owner.folder, owner);
  if (!first) return;
  undo = watchGlobals();
  globalThis.addEventListener("unhandledrejection", (event) => {
    if (reported(event.reason)) event.preventDefault();
  });
  globalThis.addEventListener("error", (event) => {
    if (reported(event.error)) event.preventDefault();
  });
}

/** Undoes what plugins have changed of the built-in objects since they were loaded, and warns of it. */
export function undoChanges(during: string): void {
  const changed = undo();
  if (changed.length === 0) return;
  const names = changed.slice(0, 8).join(", ");
  [...owners.values()].at(-1)?.warn(
    `A plugin changed ${names} during ${during}, which was undone.`,
  );
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
  const stack = stackOf(error);
  if (stack === undefined) {
    // There is no telling whose it is; the program itself throws errors only.
    [...owners.values()].at(-1)?.warn(`A plugin failed outside of its hooks: ${reasonOf(error)}`);
    return true;
  }
  const owner = [...owners.values()].find(({ folder }) =>
    stack.includes(pathToFileURL(folder).href)
  );
  owner?.warn(`The plugin ${owner.plugin} failed outside of its hooks: ${reasonOf(error)}`);
  return owner !== undefined;
}

/** The stack of an error; undefined where it has none, or does not let itself be looked at. */
function stackOf(error: unknown): string | undefined {
  try {
    return error instanceof Error ? String(error.stack) : undefined;
  } catch {
    return undefined;
  }
}
