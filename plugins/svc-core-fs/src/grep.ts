import type { ToolArguments, ToolContext } from "../../../src/plugins/api.ts";
import { Glob } from "./glob.ts";
import { locate, shown } from "./paths.ts";
import { SearchHelper, type Thread } from "./search_helper.ts";
import { type SearchPattern, searchPattern } from "./search_pattern.ts";
import { MAX_ENTRIES, Pace, walk } from "./walk.ts";

const MAX_RESULTS = 100;
/** Bytes that are searched at once: small files, or a piece of a large one. */
const CHUNK = 256 * 1024;
/** Bytes at the start of a file in which a NUL marks it as binary. */
const BINARY = 8192;
/** Characters of a line that are searched. */
const MAX_LINE = 4000;
/** Characters of a line that are shown, and how many of them precede the match. */
const SHOWN = 300;
const BEFORE = 100;

/** Limits of one search. */
interface SearchLimits {
  /** Entries of folders. */
  entries: number;
  /** Milliseconds in a folder. */
  ms: number;
}

const LIMITS: SearchLimits = { entries: MAX_ENTRIES, ms: 60_000 };

interface Search {
  pattern: SearchPattern;
  thread: Thread;
  lines: string[];
  context: ToolContext;
  pace: Pace;
  buffer: Uint8Array<ArrayBuffer>;
}

/** Searches a file, or the files of a folder. */
export async function grepWithin(
  args: ToolArguments,
  context: ToolContext,
  limits: SearchLimits = LIMITS,
  thread: Thread = { taken: false },
): Promise<string> {
  const pattern = searchPattern(args.pattern);
  const lines: string[] = [];
  let stopped = "";
  const clock = new AbortController();
  const signal = AbortSignal.any([context.signal, clock.signal]);
  const timer = setTimeout(() => clock.abort(), limits.ms);
  try {
    const search: Search = {
      pattern,
      thread,
      lines,
      context: { ...context, signal },
      pace: new Pace(signal),
      buffer: new Uint8Array(CHUNK),
    };
    const { path, info } = await locate(args.path ?? ".", context);
    if (info.isFile) {
      if (!await searchFile(path, search)) return `(binary file ${args.path}, not searched)`;
    } else if (info.isDirectory) {
      if (!await searchFolder(path, fileGlob(args.glob ?? "**"), search, limits.entries)) {
        stopped = `${limits.entries.toLocaleString("en")} entries`;
      }
    } else return `Error: ${args.path} is not a regular file`;
  } catch (error) {
    if (context.signal.aborted || !clock.signal.aborted) throw error;
    stopped = `${limits.ms / 1000} seconds`;
  } finally {
    clearTimeout(timer);
  }
  if (lines.length === 0) lines.push(`(no matches for "${args.pattern}")`);
  if (lines.length > MAX_RESULTS) {
    lines.splice(MAX_RESULTS, lines.length, `... (showing the first ${MAX_RESULTS} matches)`);
  }
  if (stopped !== "") lines.push(`... (stopped after ${stopped}; search a smaller folder)`);
  return lines.join("\n");
}

/** Searches all files below a folder. Returns false when it has too many entries. */
async function searchFolder(
  folder: string,
  glob: Glob,
  search: Search,
  entries: number,
): Promise<boolean> {
  const { context, lines } = search;
  using helper = new SearchHelper(search, context.signal);
  const steps = walk(folder, glob, context, entries);
  /** Batches of files in the order of the walk, with those that may hold a match. */
  const pending: { paths: string[]; found: Promise<string[] | undefined> | string[] }[] = [];
  for (;;) {
    const step = await steps.next();
    if (!step.done) {
      const files = step.value.filter(({ entry }) => entry.isFile);
      const paths = files.map(({ path }) => `${folder}/${path}`);
      pending.push({ paths, found: helper.search(paths) ?? await candidates(paths, search) });
    }
    while (pending.length > (step.done ? 0 : AHEAD)) {
      const { paths, found } = pending.shift()!;
      const promising = await found ?? await candidates(paths, search);
      context.signal.throwIfAborted();
      for (const path of promising) {
        // Unless the search was stopped, the file is gone or cannot be read.
        await searchFile(path, search).catch(() => context.signal.throwIfAborted());
        if (lines.length > MAX_RESULTS) return true;
      }
    }
    if (step.done) return step.value;
  }
}

/** Batches that the walk is ahead of the search. */
const AHEAD = 8;

/** A pattern without a slash matches the name of a file in any folder. */
function fileGlob(pattern: string): Glob {
  return new Glob(pattern.includes("/") ? pattern : `**/${pattern}`);
}

/**
 * The files that may hold a match. They are opened by path, so a folder could be swapped for a link meanwhile: the
 * caller opens each candidate again the safe way, which takes longer.
 */
export async function candidates(
  paths: string[],
  { pattern, pace, buffer }: Pick<Search, "pattern" | "pace" | "buffer">,
): Promise<string[]> {
  const decoder = new TextDecoder();
  const text = (from: number, to: number) => decoder.decode(buffer.subarray(from, to));
  const found: string[] = [];
  /** Files in the buffer, one after the other: most of the time a single test rejects them all. */
  let together: { path: string; from: number; to: number }[] = [];
  let end = 0;
  const flush = async () => {
    if (pattern.required.test(text(0, end))) {
      for (const { path, from, to } of together) {
        if (buffer.subarray(from, Math.min(to, from + BINARY)).includes(0)) continue;
        const whole = text(from, to);
        if (!pattern.required.test(whole)) continue;
        const first = await new MatchingLines(pattern.regex, pace).in(whole).next();
        if (!first.done) found.push(path);
      }
    }
    together = [];
    end = 0;
    if (pace.due) await pace.rest();
  };
  for (const path of paths) {
    let length = read(path, buffer.subarray(end));
    if (length === "too long" && end > 0) {
      await flush();
      length = read(path, buffer);
    }
    if (length === "too long") found.push(path);
    else if (length !== "unreadable") {
      together.push({ path, from: end, to: end + length });
      end += length;
      buffer[end++] = NEWLINE;
    }
  }
  await flush();
  return found;
}

const NEWLINE = 10;

/** Reads a file, and returns its length. */
function read(path: string, buffer: Uint8Array): number | "too long" | "unreadable" {
  let file: Deno.FsFile | undefined;
  try {
    file = Deno.openSync(path);
    const length = file.readSync(buffer) ?? 0;
    return length === buffer.length ? "too long" : length;
  } catch {
    return "unreadable";
  } finally {
    file?.close();
  }
}

/** Adds the matching lines of a file, up to one more than is shown. Returns false for a binary file. */
async function searchFile(path: string, search: Search): Promise<boolean> {
  const { pattern, lines, context, pace, buffer } = search;
  using file = await context.paths.open(path, { read: true });
  const name = shown(path, context);
  const decoder = new TextDecoder();
  const matching = new MatchingLines(pattern.regex, pace);
  let rest = "";
  for (let first = true;; first = false) {
    const length = file.readSync(buffer) ?? 0;
    const bytes = buffer.subarray(0, length);
    if (first && bytes.subarray(0, BINARY).includes(0)) return false;
    const last = length < CHUNK;
    const text = rest + decoder.decode(bytes, { stream: !last });
    const end = last ? text.length : text.lastIndexOf("\n") + 1;
    for await (const line of matching.in(text.slice(0, end))) {
      lines.push(`${name}:${line}`);
      if (lines.length > MAX_RESULTS) return true;
    }
    if (last) return true;
    // The end of a long line is not searched, so it is not kept either.
    rest = text.slice(end, end + MAX_LINE);
  }
}

/** The matching lines of a text that comes in pieces of whole lines. */
class MatchingLines {
  #number = 0;
  readonly #regex: RegExp;
  readonly #pace: Pace;

  constructor(regex: RegExp, pace: Pace) {
    this.#regex = regex;
    this.#pace = pace;
  }

  /** Yields `<number>: <the part of the line around the match>`. */
  async *in(text: string): AsyncGenerator<string, void> {
    /** Where the clock was looked at. */
    let looked = 0;
    for (let start = 0; start < text.length;) {
      const newline = text.indexOf("\n", start);
      const end = newline === -1 ? text.length : newline;
      const line = text.slice(start, Math.min(end, start + MAX_LINE)).replace(/\r$/, "");
      this.#number++;
      const column = line.search(this.#regex);
      if (column !== -1) yield `${this.#number}: ${excerpt(line, column, end - start)}`;
      start = end + 1;
      if (start - looked < MAX_LINE) continue;
      looked = start;
      if (this.#pace.due) await this.#pace.rest();
    }
  }
}

function excerpt(line: string, column: number, length: number): string {
  const start = line.length <= SHOWN ? 0 : Math.max(0, column - BEFORE);
  const text = line.slice(start, start + SHOWN).trimEnd().toWellFormed();
  return `${start > 0 ? "…" : ""}${text}${start + SHOWN < length ? "…" : ""}`;
}
