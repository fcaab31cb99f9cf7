import { dirname, isAbsolute, join, relative } from "node:path";
import type { Scope } from "../catalog/files.ts";
import { jsonFault } from "../config/file.ts";
import { errorMessage } from "../platform/error.ts";
import { isObject, lstatIfExists } from "../platform/files.ts";

/** One thing that was found, and what becomes of it. */
export interface Item {
  kind: string;
  name: string;
  /** `local`: of the worktree; `global`: of the user. */
  scope: Scope;
  /** `new`: a dry run found it. `exists`: svc has it. `failed`: it could not be written. */
  state: "new" | "imported" | "exists" | "left_out" | "incompatible" | "unreadable" | "failed";
  /** What changes, or why it is not imported. */
  note: string;
}

/** Why something is not imported. */
export class NotImported extends Error {
  readonly state: Item["state"];

  constructor(message: string, state: Item["state"] = "left_out") {
    super(message);
    this.state = state;
  }
}

export const LINK = "it is a link, which is not followed";

/** Bytes of the largest file that is read. */
const LARGEST = 256 * 1024 * 1024;

/** The files of a folder, of which none is trusted: no link is followed. Paths are relative to the folder. */
export class Source {
  readonly root: string;
  readonly #leave: (name: string, state: Item["state"], note: string) => void;

  /** @param leave receives what cannot be read; links at the root are left to the caller, who lists it */
  constructor(root: string, leave: (name: string, state: Item["state"], note: string) => void) {
    this.root = root;
    this.#leave = leave;
  }

  /** The names of the files of a folder that end in `end`, without it. */
  names(folder: string, end: string): string[] {
    return this.listing(folder).flatMap(({ name, isFile, isSymlink }) => {
      if (!name.endsWith(end) || name.startsWith(".")) return [];
      if (isSymlink) this.#leave(join(folder, name), "left_out", LINK);
      return isFile ? [name.slice(0, -end.length)] : [];
    });
  }

  /** The entries of a folder in alphabetical order; none for a link. */
  listing(folder: string): Deno.DirEntry[] {
    const path = join(this.root, folder);
    if (this.#links(path)) {
      if (folder.includes("/")) this.#leave(folder, "left_out", LINK);
    } else if (lstatIfExists(path)?.isDirectory) {
      return [...Deno.readDirSync(path)].sort((one, other) => one.name < other.name ? -1 : 1);
    }
    return [];
  }

  /** The entries of a list in a JSON file, or of the list in its field. */
  list(file: string, field?: string): unknown[] {
    const value = this.value(file);
    const list = field === undefined ? value : isObject(value) ? value[field] : undefined;
    if (Array.isArray(list)) return list;
    if (value !== undefined) this.#leave(file, "unreadable", "it has no list of entries");
    return [];
  }

  /** The entries of an object in a JSON file, or of a list by the names of its objects. */
  entries(file: string): [name: string, value: unknown][] {
    const value = this.value(file);
    return Array.isArray(value)
      ? value.map((entry) => [String(entry?.name), entry])
      : Object.entries(isObject(value) ? value : {});
  }

  /** The value of a JSON file; undefined where there is none, or one that cannot be read. */
  value(file: string): unknown {
    try {
      const { isSymlink = true } = lstatIfExists(join(this.root, file)) ?? {};
      return isSymlink ? undefined : this.json(file);
    } catch (error) {
      this.#leave(file, "unreadable", errorMessage(error));
      return undefined;
    }
  }

  /** @throws NotImported that names line and column */
  json(file: string): unknown {
    const text = this.text(file);
    try {
      return JSON.parse(text);
    } catch {
      throw new NotImported(`it is not valid JSON (${jsonFault(text)})`, "unreadable");
    }
  }

  /** @throws NotImported for a link, and for what is no text */
  text(file: string): string {
    const path = join(this.root, file);
    if (this.#links(path)) throw new NotImported(LINK);
    try {
      const { isFile, size } = Deno.lstatSync(path);
      if (!isFile) throw new Error("it is no regular file");
      if (size > LARGEST) throw new Error("it is too large");
      return new TextDecoder("utf-8", { fatal: true }).decode(Deno.readFileSync(path));
    } catch (error) {
      const what = error instanceof TypeError ? "it is not UTF-8 text" : errorMessage(error);
      throw new NotImported(what, "unreadable");
    }
  }

  /** A path in the worktree of the folder, relative to it; any other path as it is. */
  relative(path: string): string {
    const inside = relative(dirname(this.root), path);
    return isAbsolute(path) && inside !== "" && !inside.startsWith("..") ? inside : path;
  }

  /** Whether a path, or a folder that it is in, is a link. */
  #links(path: string): boolean {
    if (path === this.root) return false;
    return lstatIfExists(path)?.isSymlink || this.#links(dirname(path));
  }
}
