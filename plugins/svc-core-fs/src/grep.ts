import { join } from "node:path";
import type { ToolArguments, ToolContext, ToolDefinition } from "../../../src/plugins/api.ts";
import { Glob } from "./glob.ts";
import { Candidates } from "./candidates.ts";
import { compileLineSearch, type LineSearch, quickLook } from "./line_pattern.ts";
import { Pace } from "./pace.ts";
import { locate, shown } from "./place.ts";
import { MAX_ENTRIES, walk } from "./walk.ts";

const MAX_RESULTS = 100;
/** Characters of a line that are searched. */
const MAX_LINE = 4000;
/** Characters of a line that are shown, and how many of them come before the match. */
const SHOWN = 300;
const BEFORE = 100;
const CHUNK = 64 * 1024;
/** How many batches of files are looked through before the first of them is searched. */
const AHEAD = 8;
/** Files from which on it pays to start workers that sort out most of them. */
const MANY = 100;

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

/** How much one search may look at. */
export interface SearchLimits {
  /** Entries of folders. */
  entries: number;
  /** Milliseconds in a folder. */
  ms: number;
}

const LIMITS: SearchLimits = { entries: MAX_ENTRIES, ms: 60_000 };

interface Search {
  pattern: string;
  find: LineSearch;
  pace: Pace;
  lines: string[];
  context: ToolContext;
}

/** The handler of {@linkcode grep}, with limits of the caller's. */
export async function grepWithin(
  args: ToolArguments,
  context: ToolContext,
  limits: SearchLimits,
): Promise<string> {
  const { pattern } = args;
  const find = compileLineSearch(pattern);
  const task: Search = { pattern, find, pace: new Pace(context.signal), lines: [], context };
  const place = await locate(args.path ?? ".", context);
  let stopped = "";
  if (!place.info.isDirectory) {
    if (!place.info.isFile) return `Error: ${args.path} is not a regular file`;
    if (!await searchFile(place.path, task)) return `(binary file ${args.path}, not searched)`;
  } else {
    stopped = await searchFolder(place.path, fileGlob(args.glob ?? "**"), task, limits);
  }
  const { lines } = task;
  if (lines.length === 0) lines.push(`(no matches for "${pattern}")`);
  if (lines.length > MAX_RESULTS) {
    lines.splice(MAX_RESULTS, lines.length, `... (showing the first ${MAX_RESULTS} matches)`);
  }
  if (stopped !== "") lines.push(`... (stopped after ${stopped}; search a smaller folder)`);
  return lines.join("\n");
}

/** Searches what lies below a folder, and says after what it stopped; empty when that was all. */
async function searchFolder(
  folder: string,
  glob: Glob,
  task: Search,
  limits: SearchLimits,
): Promise<string> {
  const { signal } = task.context;
  const clock = new AbortController();
  const timer = setTimeout(() => clock.abort(), limits.ms);
  const timed = AbortSignal.any([signal, clock.signal]);
  const context = { ...task.context, signal: timed };
  try {
    const within = { ...task, context, pace: new Pace(timed) };
    return await searchBelow(folder, glob, within, limits.entries)
      ? ""
      : `${limits.entries.toLocaleString("en")} entries`;
  } catch (error) {
    if (signal.aborted || !clock.signal.aborted) throw error;
    return `${limits.ms / 1000} seconds`;
  } finally {
    clearTimeout(timer);
  }
}

/** False when there are too many entries. */
async function searchBelow(
  folder: string,
  glob: Glob,
  task: Search,
  entries: number,
): Promise<boolean> {
  const { context, lines } = task;
  using resources = new DisposableStack();
  let quick: Candidates | undefined;
  /** Folders' worth of files that wait until it is known whether there are many. */
  let few: string[][] | undefined = [];
  /** Files being looked through, in the order of their paths. */
  const ahead: Promise<string[]>[] = [];
  const sort = (paths: string[]) => {
    const batch = quick?.among(paths) ?? Promise.resolve(paths);
    batch.catch(() => {}); // told to whoever awaits it; the others are past caring
    ahead.push(batch);
  };
  const steps = walk(folder, glob, context, entries);
  let files = 0;
  let complete = true;
  for (let over = false; !over || ahead.length > 0;) {
    while (!over && ahead.length < AHEAD) {
      const step = await steps.next();
      if (step.done) {
        over = true;
        complete = step.value;
        few?.forEach(sort);
        break;
      }
      const paths = step.value.filter(({ entry }) => entry.isFile).map(({ path }) => path);
      files += paths.length;
      if (few === undefined) sort(paths);
      else {
        few.push(paths);
        if (files >= MANY) {
          const look = quickLook(task.pattern);
          quick = resources.use(await Candidates.start(folder, look, context.signal));
          few.forEach(sort);
          few = undefined;
        }
      }
    }
    for (const path of await ahead.shift() ?? []) {
      await searchFile(join(folder, path), task).catch(passOver(context));
      if (lines.length > MAX_RESULTS) return true;
    }
  }
  return complete;
}

/** A pattern without a slash is about the file's name, wherever the file lies. */
function fileGlob(pattern: string): Glob {
  return new Glob(pattern.includes("/") ? pattern : `**/${pattern}`);
}

/** A file that is gone or closed to us leaves the rest of the search; a cancelled call ends it. */
function passOver(context: ToolContext): () => void {
  return () => context.signal.throwIfAborted();
}

/** Adds the matching lines of a file until there is one more than is shown; false for a binary. */
async function searchFile(path: string, task: Search): Promise<boolean> {
  const { context, lines } = task;
  using file = await context.paths.open(path, { read: true });
  const name = shown(path, context);
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const buffer = new Uint8Array(CHUNK);
  let number = 1;
  let rest = "";
  for (let first = true; lines.length <= MAX_RESULTS; first = false) {
    context.signal.throwIfAborted();
    // It is a regular file, and handing so little to another thread would take longer than reading it.
    const length = file.readSync(buffer);
    const chunk = buffer.subarray(0, length ?? 0);
    if (first && chunk.subarray(0, 8192).includes(0)) return false;
    const text = decoder.decode(chunk, { stream: length !== null });
    const pieces = (rest + (first ? text.replace(/^\ufeff/, "") : text)).split("\n");
    // What follows MAX_LINE is not searched, so an endless line is not gathered either.
    rest = length === null ? "" : pieces.pop()!.slice(0, MAX_LINE);
    if (length === null && pieces.at(-1) === "") pieces.pop();
    for (const piece of pieces) {
      const line = piece.slice(0, MAX_LINE).replace(/\r$/, "");
      const found = task.find(line, task.pace);
      const column = typeof found === "number" ? found : await found;
      if (column !== -1) lines.push(`${name}:${number}: ${excerpt(line, column, piece)}`);
      if (lines.length > MAX_RESULTS) return true;
      number++;
      if (task.pace.due) await task.pace.rest();
    }
    if (length === null) return true;
  }
  return true;
}

/** What is shown of a line, of which all is `piece`. */
function excerpt(line: string, column: number, piece: string): string {
  const start = line.length <= SHOWN ? 0 : Math.max(0, column - BEFORE);
  const text = line.slice(start, start + SHOWN).trimEnd().toWellFormed();
  return `${start > 0 ? "…" : ""}${text}${start + SHOWN < piece.length ? "…" : ""}`;
}
