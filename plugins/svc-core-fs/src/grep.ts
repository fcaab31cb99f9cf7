import { join } from "node:path";
import type { ToolArguments, ToolContext, ToolDefinition } from "../../../src/plugins/api.ts";
import { Glob } from "./glob.ts";
import { compileLineSearch, type LineSearch } from "./line_pattern.ts";
import { locate, shown } from "./place.ts";
import { walk } from "./walk.ts";

const MAX_RESULTS = 100;
/** Characters of a line that are searched. */
const MAX_LINE = 4000;
/** Characters of a line that are shown, and how many of them come before the match. */
const SHOWN = 300;
const BEFORE = 100;
const CHUNK = 64 * 1024;

export const grep: ToolDefinition = {
  name: "grep",
  description:
    "Search file contents with a regular expression (JavaScript syntax; a leading (?i) ignores " +
    "case). Results are file:line: text. Hidden files, .git and node_modules are left out unless " +
    "named by path or glob.",
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
  handler: search,
};

interface Search {
  find: LineSearch;
  lines: string[];
  context: ToolContext;
}

async function search(args: ToolArguments, context: ToolContext): Promise<string> {
  const { pattern } = args;
  const task: Search = { find: compileLineSearch(pattern), lines: [], context };
  const place = await locate(args.path ?? ".", context);
  let complete = true;
  if (!place.info.isDirectory) {
    if (!place.info.isFile) return `Error: ${args.path} is not a regular file`;
    if (!await searchFile(place.path, task)) return `(binary file ${args.path}, not searched)`;
  } else {
    const walked = await walk(place.path, fileGlob(args.glob ?? "**"), context.signal);
    complete = walked.complete;
    for (const { path, entry } of walked.found) {
      if (task.lines.length > MAX_RESULTS) break;
      if (entry.isFile) await searchFile(join(place.path, path), task).catch(passOver(context));
    }
  }
  const { lines } = task;
  if (lines.length === 0) lines.push(`(no matches for "${pattern}")`);
  if (lines.length > MAX_RESULTS) {
    lines.splice(MAX_RESULTS, lines.length, `... (showing the first ${MAX_RESULTS} matches)`);
  }
  if (!complete) lines.push("... (stopped: too many entries; search a smaller folder)");
  return lines.join("\n");
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
    const length = await file.read(buffer);
    const chunk = buffer.subarray(0, length ?? 0);
    if (first && chunk.subarray(0, 8192).includes(0)) return false;
    const text = decoder.decode(chunk, { stream: length !== null });
    const pieces = (rest + (first ? text.replace(/^\ufeff/, "") : text)).split("\n");
    // What follows MAX_LINE is not searched, so an endless line is not gathered either.
    rest = length === null ? "" : pieces.pop()!.slice(0, MAX_LINE);
    if (length === null && pieces.at(-1) === "") pieces.pop();
    for (const piece of pieces) searchLine(`${name}:${number++}`, piece, task);
    if (length === null) return true;
  }
  return true;
}

function searchLine(where: string, piece: string, task: Search): void {
  if (task.lines.length > MAX_RESULTS) return;
  const line = piece.slice(0, MAX_LINE).replace(/\r$/, "");
  const column = task.find(line);
  if (column === -1) return;
  const start = line.length <= SHOWN ? 0 : Math.max(0, column - BEFORE);
  const excerpt = line.slice(start, start + SHOWN).trimEnd().toWellFormed();
  const before = start > 0 ? "…" : "";
  const after = start + SHOWN < piece.length ? "…" : "";
  task.lines.push(`${where}: ${before}${excerpt}${after}`);
}
