import { join } from "node:path";
import type { ToolArguments, ToolContext, ToolDefinition } from "../../../src/plugins/api.ts";
import { escaped, isInPlace, locate } from "./paths.ts";

const MAX_DEPTH = 20;
/** Entries after which counting stops. */
const COUNT_LIMIT = 100_000;
/** Folders whose content is only listed when the listing starts there. */
const CLOSED = new Set([".git", "node_modules"]);

export const listDir: ToolDefinition = {
  name: "list_dir",
  description:
    "List a directory: folders first, then files with sizes; with depth, what is in them too.",
  short: "List a directory.",
  permission: "list",
  aliases: ["ls"],
  path_arg: "path",
  parameters: {
    type: "object",
    properties: {
      path: { type: "string" },
      depth: { type: "integer", description: "Levels (default 1)." },
    },
    required: ["path"],
  },
  status: (args) => `list ${args.path}`,
  note: (result) => result === EMPTY ? "empty directory" : "",
  handler: list,
};

const EMPTY = "(empty directory)";

interface Row {
  path: string;
  entry: Deno.DirEntry;
  level: number;
}

async function list(args: ToolArguments, context: ToolContext): Promise<string> {
  const { path, info } = await locate(args.path, context);
  if (!info.isDirectory) return `Error: ${args.path} is a file; read it with file_read`;
  const depth = Math.min(Math.max(1, args.depth ?? 1), MAX_DEPTH);
  const rows: Row[] = [];
  const complete = await collect(path, 0, depth, rows, context.signal);
  const limit = Number(context.config.get("list_dir_max_entries") ?? 0);
  const first = limit > 0 ? rows.slice(0, limit) : rows;
  const described = await Promise.all(first.map(describe));
  const lines = described.filter((_, index) => isInPlace(first[index]!.path));
  if (lines.length === 0) return EMPTY;
  if (first.length < rows.length || !complete) {
    const total = `${complete ? "" : "more than "}${rows.length}`;
    lines.push(`... (showing first ${first.length} of ${total} entries)`);
  }
  return lines.join("\n");
}

/** Appends the entries below a folder in display order. Returns false when there are too many. */
async function collect(
  folder: string,
  level: number,
  depth: number,
  rows: Row[],
  signal: AbortSignal,
): Promise<boolean> {
  signal.throwIfAborted();
  for (const entry of sorted(await entries(folder, level))) {
    if (rows.length >= COUNT_LIMIT) return false;
    const path = join(folder, entry.name);
    rows.push({ path, entry, level });
    if (!entry.isDirectory || level + 1 >= depth || CLOSED.has(entry.name)) continue;
    if (!await collect(path, level + 1, depth, rows, signal)) return false;
  }
  return true;
}

async function entries(folder: string, level: number): Promise<Deno.DirEntry[]> {
  try {
    return await Array.fromAsync(Deno.readDir(folder));
  } catch (error) {
    if (level === 0) throw error;
    return []; // a subfolder that is gone or unreadable does not end the listing
  }
}

function sorted(entries: Deno.DirEntry[]): Deno.DirEntry[] {
  return entries.sort((a, b) =>
    Number(b.isDirectory) - Number(a.isDirectory) || (a.name < b.name ? -1 : 1)
  );
}

async function describe({ path, entry, level }: Row): Promise<string> {
  const name = "  ".repeat(level) + escaped(entry.name);
  if (entry.isDirectory) return `${name}/`;
  try {
    if (entry.isSymlink) return `${name} -> ${escaped(await Deno.readLink(path))}`;
    return `${name}  ${size((await Deno.lstat(path)).size)}`;
  } catch {
    return name; // unreadable
  }
}

function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const units = ["KB", "MB", "GB", "TB"];
  let value = bytes / 1024;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${value.toFixed(1)} ${units[unit]}`;
}
