import { errorMessage } from "../../platform/error.ts";
import {
  jsonOr,
  readTextIfExists,
  withFileLock,
  writeAllSync,
  writeFileAtomic,
} from "../../platform/files.ts";
import type { Key } from "./keys.ts";
import { cleanInput, graphemes } from "./text.ts";
import { dirname } from "node:path";

/** Bytes; a larger file is cut to its newest entries. */
const FILE_MAX_BYTES = 1024 * 1024;
const KEPT_CHARACTERS = 512 * 1024;
const KEPT_ENTRIES = 5000;
/** Characters; a longer message is remembered by this process only. */
const ENTRY_MAX_CHARACTERS = 32 * 1024;

/**
 * The operator's messages, kept across sessions in a file with one JSON string per line, so that a
 * message of several lines is one entry. The file is read on first use.
 */
export class History {
  readonly #path: string | undefined;
  readonly #warn: (message: string) => void;
  #entries: string[] | undefined;

  /**
   * @param path the file, `~/.config/svc/history`; omitted: entries last as long as the process
   * @param warn receives one warning when the file cannot be read or written
   */
  constructor(path?: string, warn: (message: string) => void = () => {}) {
    this.#path = path;
    this.#warn = once(warn);
  }

  /** Oldest first. */
  entries(): readonly string[] {
    return this.#entries ??= this.#load();
  }

  /** Adds a message, unless it is empty, starts with a space, or repeats the previous one. */
  async add(text: string): Promise<void> {
    if (text.trim() === "" || /^\s/.test(text) || text === this.entries().at(-1)) return;
    this.#entries!.push(text);
    if (this.#path === undefined || text.length > ENTRY_MAX_CHARACTERS) return;
    const path = this.#path;
    try {
      Deno.mkdirSync(dirname(path), { recursive: true });
      await withFileLock(path, () => {
        if (append(path, JSON.stringify(text)) > FILE_MAX_BYTES) trim(path);
      });
    } catch (error) {
      this.#warn(`The history ${path} cannot be written: ${errorMessage(error)}`);
    }
  }

  #load(): string[] {
    try {
      const text = this.#path === undefined ? undefined : readTextIfExists(this.#path);
      return (text ?? "").split("\n").flatMap(entryOf);
    } catch (error) {
      this.#warn(`The history ${this.#path} cannot be read: ${errorMessage(error)}`);
      return [];
    }
  }
}

/** Appends a line, after a line feed if the last line is incomplete; returns the file's size. */
function append(path: string, line: string): number {
  const file = Deno.openSync(path, { read: true, append: true, create: true, mode: 0o600 });
  try {
    const { size } = file.statSync();
    const last = new Uint8Array(1);
    if (size > 0) {
      file.seekSync(size - 1, Deno.SeekMode.Start);
      file.readSync(last);
    }
    const torn = size > 0 && last[0] !== 10;
    const bytes = new TextEncoder().encode(`${torn ? "\n" : ""}${line}\n`);
    writeAllSync(file, bytes);
    return size + bytes.length;
  } finally {
    file.close();
  }
}

function trim(path: string): void {
  const lines = (readTextIfExists(path) ?? "").split("\n").filter((line) =>
    entryOf(line).length > 0
  );
  let room = KEPT_CHARACTERS;
  let from = lines.length;
  while (from > 0 && lines.length - from < KEPT_ENTRIES && room >= lines[from - 1]!.length) {
    room -= lines[--from]!.length;
  }
  writeFileAtomic(path, lines.slice(from).map((line) => line + "\n").join(""), 0o600);
}

/** Parses a line; returns no entry for a broken one. */
function entryOf(line: string): string[] {
  const entry = jsonOr(line, undefined);
  return typeof entry === "string" ? [cleanInput(entry)] : [];
}

function once(warn: (message: string) => void): (message: string) => void {
  let warned = false;
  return (message) => {
    if (!warned) warn(message);
    warned = true;
  };
}

/** Moves through the history with the arrow keys and keeps edits made on the way. */
export class Recall {
  readonly #drafts = new Map<number, string>();
  #at: number | undefined;

  /** The text one step older (-1) or newer (1) than `current`; undefined at the end. */
  step(entries: readonly string[], by: -1 | 1, current: string): string | undefined {
    const at = this.#at ?? entries.length;
    const next = at + by;
    if (next < 0 || next > entries.length) return undefined;
    this.#drafts.set(at, current);
    this.#at = next;
    return this.#drafts.get(next) ?? entries[next] ?? "";
  }
}

/** An incremental history search, newest entry first. */
export interface Search {
  readonly query: string;
  /** The matching entry. */
  readonly found?: { readonly index: number; readonly text: string; readonly at: number };
  /** True when nothing matches the query; `found` is then the last match. */
  readonly failed: boolean;
}

export const NEW_SEARCH: Search = { query: "", failed: false };

/**
 * Applies a key to a search: the updated search, `left` when the key cancels it, or `taken` when the match
 * is accepted and the key must be handled as usual.
 */
export function searchKey(
  search: Search,
  entries: readonly string[],
  key: Key,
): Search | "left" | "taken" {
  if (key.type !== "key") return searchFor(search, entries, search.query + key.text);
  switch (key.name) {
    case "ctrl-r":
      return searchOn(search, entries, -1);
    case "ctrl-s":
      return searchOn(search, entries, 1);
    case "backspace":
      return searchFor(NEW_SEARCH, entries, graphemes(search.query).slice(0, -1).join(""));
    case "escape":
    case "ctrl-g":
    case "ctrl-c":
      return "left";
    default:
      return "taken";
  }
}

/** Changes the query; the current match stays if it still matches. */
function searchFor(search: Search, entries: readonly string[], query: string): Search {
  const longer = query.startsWith(search.query);
  const from = longer ? search.found?.index ?? entries.length - 1 : entries.length - 1;
  return find({ ...search, query }, entries, from, -1);
}

/** The next older (-1) or newer (1) match with a different text. */
function searchOn(search: Search, entries: readonly string[], by: -1 | 1): Search {
  const from = search.found === undefined ? entries.length - 1 : search.found.index + by;
  return find(search, entries, from, by);
}

function find(search: Search, entries: readonly string[], from: number, by: -1 | 1): Search {
  const { query } = search;
  if (query === "") return NEW_SEARCH;
  const sameCase = query !== query.toLowerCase(); // a capital letter makes the search case-sensitive
  for (let index = from; index >= 0 && index < entries.length; index += by) {
    const text = entries[index]!;
    if (text === search.found?.text && index !== search.found.index) continue;
    const at = sameCase ? text.lastIndexOf(query) : text.toLowerCase().lastIndexOf(query);
    if (at >= 0) {
      return { query, found: { index, text, at: Math.min(at, text.length) }, failed: false };
    }
  }
  return { ...search, failed: true };
}
