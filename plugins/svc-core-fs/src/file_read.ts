import type { ToolArguments, ToolContext, ToolDefinition } from "../../../src/plugins/api.ts";
import { LineWindow } from "./line_window.ts";
import { locate } from "./place.ts";

/** Bytes above which a file is not read to its end only to count its lines: about half a second. */
const COUNT_LIMIT = 256 * 1024 * 1024;
const CHUNK = 256 * 1024;
/** Characters of window when `tool_max_result_chars` sets no limit. */
const UNLIMITED = 2_000_000;

export const fileRead: ToolDefinition = {
  name: "file_read",
  description:
    "Read a text file. The result starts with a header that gives the file's line and character " +
    "counts, then numbered lines. Long files are read in windows: pass offset to continue.",
  short: "Read a text file, or a window of its lines.",
  permission: "read",
  aliases: ["read_file", "read", "view"],
  param_aliases: { file: "path" },
  path_arg: "path",
  parameters: {
    type: "object",
    properties: {
      path: { type: "string", description: "File to read, relative to the worktree or absolute." },
      offset: { type: "integer", description: "First line to show, from 1 (default 1)." },
      limit: {
        type: "integer",
        description: "Lines to show (default 500). 0 gives the header alone.",
      },
    },
    required: ["path"],
  },
  status: (args) => `read ${args.path}${args.offset > 1 ? ` from line ${args.offset}` : ""}`,
  note: (result) => EMPTY.test(result) ? "empty file" : "",
  handler: read,
};

const EMPTY = /^# .* - 0 lines, 0 chars\n\(empty file\)$/;

async function read(args: ToolArguments, context: ToolContext): Promise<string> {
  const { path } = args;
  const offset = Math.max(1, args.offset ?? 1);
  const limit = Math.max(0, args.limit ?? 500);
  const { info } = await locate(path, context);
  if (info.isDirectory) return `Error: ${path} is a directory; list it with list_dir`;
  if (!info.isFile) return `Error: ${path} is not a regular file`;
  using file = await context.paths.open(path, { read: true });
  const window = new LineWindow(offset, limit, budget(path, context));
  const buffer = new Uint8Array(CHUNK);
  let complete = true;
  for (let first = true;; first = false) {
    if (window.full && info.size > COUNT_LIMIT) {
      complete = false;
      break;
    }
    context.signal.throwIfAborted();
    const length = await file.read(buffer);
    if (length === null) break;
    const chunk = buffer.subarray(0, length);
    if (first && chunk.subarray(0, 8192).includes(0)) {
      return `# ${path} - ${info.size} bytes\n(binary file, not shown)`;
    }
    window.add(chunk);
  }
  window.end();
  const totals = complete
    ? `${window.total_lines} lines, ${window.total_chars} chars`
    : `${info.size} bytes (too large to count)`;
  return render(`# ${path} - ${totals}`, window, { offset, limit, complete });
}

function render(
  header: string,
  window: LineWindow,
  { offset, limit, complete }: { offset: number; limit: number; complete: boolean },
): string {
  const { lines } = window;
  if (limit === 0) return header;
  if (complete && window.total_chars === 0) return `${header}\n(empty file)`;
  if (lines.length === 0) return `${header}\n(offset ${offset} is past the last line)`;
  const last = offset + lines.length - 1;
  const whole = complete && offset === 1 && last === window.total_lines;
  const showing = whole ? "" : ` (showing ${offset}-${last})`;
  const numbered = lines.map((line, index) => `${offset + index}|${line}`);
  if (window.over_budget) {
    numbered.push(`... (the result limit is reached; continue with offset ${last + 1})`);
  }
  return `${header}${showing}\n${numbered.join("\n")}`;
}

/** Characters the numbered lines may take, so that the header stays true of what is shown. */
function budget(path: string, context: ToolContext): number {
  const limit = Number(context.config.get("tool_max_result_chars") ?? 0);
  return limit > 0 ? Math.max(0, limit - path.length - 200) : UNLIMITED;
}
