import { join } from "node:path";
import type { ToolArguments, ToolContext, ToolDefinition } from "../../../src/plugins/api.ts";
import { Glob } from "./glob.ts";
import { locate, shown } from "./paths.ts";
import { SearchError, SearchThreads } from "./search_threads.ts";
import type { MatchedLine } from "./search_worker.ts";
import { MAX_ENTRIES, walk } from "./walk.ts";

const MAX_RESULTS = 100;
/** Bytes of a file that are searched at once. */
const CHUNK = 256 * 1024;
/** Batches of files that are looked through ahead of the one that is searched. */
const AHEAD = 8;

export const grep: ToolDefinition = {
  name: "grep",
  description:
    "Search file contents with a regular expression (JavaScript syntax; a leading (?i) ignores " +
    "case). Results are file:line: text. Hidden files, .git, node_modules and what .gitignore hides " +
    "are left out unless named by path or glob.",
  short: "Search file contents with a regular expression.",
  permission: "read",
  aliases: ["find"],
  param_aliases: { query: "pattern" },
  path_arg: "path",
  parameters: {
    type: "object",
    properties: {
      pattern: { type: "string", description: "Regular expression, matched line by line." },
      path: { type: "string", description: "File or folder to search (default: the worktree)." },
      glob: {
        type: "string",
        description: 'Files to search, such as "*.ts" or "src/**/*.{ts,js}".',
      },
    },
    required: ["pattern"],
  },
  status: (args) => `grep ${args.pattern}${args.path ? ` in ${args.path}` : ""}`,
  note: (result) => result.startsWith("(no matches for ") ? "no matches" : "",
  handler: (args, context) => grepWithin(args, context, LIMITS),
};

/** Limits of one search. */
interface SearchLimits {
  /** Entries of folders. */
  entries: number;
  /** Milliseconds in a folder. */
  ms: number;
  /** Milliseconds that the pattern may take on a piece of a file, or on a batch of small files. */
  match_ms: number;
}

const LIMITS: SearchLimits = { entries: MAX_ENTRIES, ms: 60_000, match_ms: 10_000 };

interface Search {
  threads: SearchThreads;
  lines: string[];
  context: ToolContext;
}

/** The handler of {@linkcode grep}, with the given limits. */
export async function grepWithin(
  args: ToolArguments,
  context: ToolContext,
  limits: SearchLimits,
): Promise<string> {
  const { pattern } = args;
  const lines: string[] = [];
  let stopped = "";
  const clock = new AbortController();
  const signal = AbortSignal.any([context.signal, clock.signal]);
  const threads = new SearchThreads(pattern, limits.match_ms, signal);
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const task = { threads, lines, context: { ...context, signal } };
    const { path, info } = await locate(args.path ?? ".", context);
    if (info.isFile) {
      if (!await searchFile(path, task)) return `(binary file ${args.path}, not searched)`;
    } else if (info.isDirectory) {
      timer = setTimeout(() => clock.abort(), limits.ms);
      if (!await searchFolder(path, fileGlob(args.glob ?? "**"), task, limits.entries)) {
        stopped = `${limits.entries.toLocaleString("en")} entries`;
      }
    } else return `Error: ${args.path} is not a regular file`;
  } catch (error) {
    if (context.signal.aborted || !clock.signal.aborted) throw error;
    stopped = `${limits.ms / 1000} seconds`;
  } finally {
    clearTimeout(timer);
    threads.end();
  }
  if (lines.length === 0) lines.push(`(no matches for "${pattern}")`);
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
  task: Search,
  entries: number,
): Promise<boolean> {
  const { context, lines } = task;
  const steps = walk(folder, glob, context, entries);
  /** The batches that are looked through, in the order of their paths. */
  const ahead: Promise<string[]>[] = [];
  let complete: boolean | undefined;
  while (complete === undefined || ahead.length > 0) {
    while (complete === undefined && ahead.length < AHEAD) {
      const step = await steps.next();
      if (step.done) {
        complete = step.value;
        break;
      }
      const files = step.value.filter(({ entry }) => entry.isFile).map(({ path }) => path);
      const batch = candidates(folder, files, task);
      batch.catch(() => {}); // reported where the batch is awaited
      ahead.push(batch);
    }
    for (const path of await ahead.shift() ?? []) {
      await searchFile(join(folder, path), task).catch((error) => {
        context.signal.throwIfAborted();
        if (error instanceof SearchError) throw error;
        // The file is gone or cannot be read.
      });
      if (lines.length > MAX_RESULTS) return true;
    }
  }
  return complete;
}

/**
 * Sorts out the files that may hold a match. The thread opens them by path, so a folder could be swapped
 * for a link meanwhile: only a yes or no comes back, and each candidate is opened again the safe way.
 */
async function candidates(
  folder: string,
  files: string[],
  { threads }: Search,
): Promise<string[]> {
  const paths = files.join("\0"); // one string is copied far faster than many
  const found = await threads.use((ask) => ask<{ files: number[] }>({ folder, paths }));
  return found.files.map((index) => files[index]!);
}

/** A pattern without a slash matches the name of a file in any folder. */
function fileGlob(pattern: string): Glob {
  return new Glob(pattern.includes("/") ? pattern : `**/${pattern}`);
}

/** Adds the matching lines of a file, up to one more than is shown. Returns false for a binary file. */
async function searchFile(path: string, { threads, lines, context }: Search): Promise<boolean> {
  using file = await context.paths.open(path, { read: true });
  const name = shown(path, context);
  const buffer = new Uint8Array(CHUNK);
  return await threads.use(async (ask) => {
    for (let first = true;; first = false) {
      const length = file.readSync(buffer) ?? 0;
      const bytes = buffer.slice(0, length);
      if (first && bytes.subarray(0, 8192).includes(0)) return false;
      const last = length < CHUNK;
      const most = MAX_RESULTS + 1 - lines.length;
      const found = await ask<{ lines: MatchedLine[] }>({ bytes, first, last, most });
      lines.push(...found.lines.map(({ number, text }) => `${name}:${number}: ${text}`));
      if (last || lines.length > MAX_RESULTS) return true;
    }
  }, true);
}
