import type { ToolArguments, ToolContext, ToolDefinition } from "../../../src/plugins/api.ts";
import { locate } from "./paths.ts";

/** Size in bytes of a file whose lines are not counted: reading it takes about half a second. */
const COUNT_LIMIT = 256 * 1024 * 1024;
const CHUNK = 256 * 1024;
/** Characters of a window when results have no limit. */
const UNLIMITED = 2_000_000;

/** The tool `file_read`, with what it remembers of the files of a workspace. */
export function fileRead(): ToolDefinition {
  const counted = new CountedFiles();
  return { ...DEFINITION, handler: (args, context) => read(args, context, counted) };
}

const DEFINITION: Omit<ToolDefinition, "handler"> = {
  name: "file_read",
  description:
    "Read a file: a header with its counts, then numbered lines; a long file in windows, by " +
    "offset. Also images, PDFs (by page), notebooks, lists of archives.",
  short: "Read a file, or a window of its lines.",
  permission: "read",
  aliases: ["read_file", "read", "view"],
  param_aliases: { file: "path" },
  path_arg: "path",
  parameters: {
    type: "object",
    properties: {
      path: { type: "string", description: "Relative to the worktree, or absolute." },
      offset: { type: "integer", description: "First line or page (default 1)." },
      limit: {
        type: "integer",
        description: "Lines (default 500); 0: the header.",
      },
    },
    required: ["path"],
  },
  status: (args) => `read ${args.path}${args.offset > 1 ? ` from line ${args.offset}` : ""}`,
  note: (result) => result.endsWith(EMPTY) ? "empty file" : "",
};

/** The lines of any other file have numbers. */
const EMPTY = "\n(empty file)";

async function read(
  args: ToolArguments,
  context: ToolContext,
  counted: CountedFiles,
): Promise<string> {
  const { path } = args;
  const offset = Math.max(1, args.offset ?? 1);
  const limit = Math.max(0, args.limit ?? 500);
  const { info: { isDirectory, isFile } } = await locate(path, context);
  if (isDirectory) return `Error: ${path} is a directory; list it with list_dir`;
  if (!isFile) return `Error: ${path} is not a regular file`;
  using file = await context.paths.open(path, { read: true });
  const info = file.statSync();
  const known = counted.find(info);
  const window = new LineWindow(offset, limit, budget(path, context));
  const buffer = new Uint8Array(Math.min(CHUNK, Math.max(4096, info.size)));
  let [bytes, complete] = [0, true];
  while (bytes === 0 || bytes !== info.size) {
    if (window.full && (known !== undefined || info.size > COUNT_LIMIT)) {
      complete = known !== undefined;
      break;
    }
    context.signal.throwIfAborted();
    // A file of one chunk is read at once, since handing the read to a thread takes longer.
    const length = info.size <= CHUNK ? file.readSync(buffer) : await file.read(buffer);
    if (length === null) break;
    const chunk = buffer.subarray(0, length);
    const binary = bytes === 0 && chunk.subarray(0, 8192).includes(0);
    if (binary || (bytes === 0 && mayHaveFormat(path, chunk))) {
      const { readFormat } = await import("./formats.ts");
      const shown = await readFormat(file, { path, offset, limit, start: chunk }, context);
      if (shown !== undefined) return shown;
      if (binary) return `# ${path} - ${info.size} bytes\n(binary file, not shown)`;
      file.seekSync(length, Deno.SeekMode.Start);
    }
    window.add(chunk, { count: known === undefined });
    bytes += length;
  }
  window.end();
  const counts = known ?? { lines: window.total_lines, chars: window.total_chars };
  if (known === undefined && complete && bytes > CHUNK) counted.add(file, info, counts);
  const totals = complete
    ? `${counts.lines} lines, ${counts.chars} chars`
    : `${info.size} bytes (too large to count)`;
  return render(`# ${path} - ${totals}`, window, { offset, limit, counts: complete && counts });
}

/** Whether a file without a NUL byte may have one of the formats of `formats.ts`. */
function mayHaveFormat(path: string, start: Uint8Array): boolean {
  return FORMATS.test(String.fromCharCode(...start.subarray(0, 12))) || /\.ipynb$/i.test(path);
}

// deno-lint-ignore no-control-regex
const FORMATS = /^(\xff\xd8\xff|GIF8|RIFF....WEBP|%PDF-|\x1f\x8b|PK[\x03\x05])/s;

/** A window of the lines of a text that stands for a file, with a header of what it is. */
export function textWindow(
  header: string,
  text: string,
  { path, offset, limit }: Window,
  context: ToolContext,
): string {
  const window = new LineWindow(offset, limit, budget(path, context));
  window.add(new TextEncoder().encode(text));
  window.end();
  const counts = { lines: window.total_lines, chars: window.total_chars };
  return render(header, window, { offset, limit, counts });
}

/** What a call asks for. */
export interface Window {
  path: string;
  /** From 1. */
  offset: number;
  limit: number;
}

function render(
  header: string,
  window: LineWindow,
  { offset, limit, counts }: { offset: number; limit: number; counts: Counts | false },
): string {
  const { lines } = window;
  if (limit === 0) return header;
  if (counts && counts.chars === 0) return header + EMPTY;
  if (lines.length === 0) return `${header}\n(offset ${offset} is past the last line)`;
  const last = offset + lines.length - 1;
  const whole = counts && offset === 1 && last === counts.lines;
  const showing = whole ? "" : ` (showing ${offset}-${last})`;
  const numbered = lines.map((line, index) => `${offset + index}|${line}`);
  if (window.over_budget) {
    numbered.push(`... (the result limit is reached; continue with offset ${last + 1})`);
  }
  return `${header}${showing}\n${numbered.join("\n")}`;
}

interface Counts {
  lines: number;
  chars: number;
}

/** Milliseconds after which a change of a file has another time, on every file system. */
const SETTLED = 3000;
/** Number of files whose counts are kept. */
const MOST_COUNTED = 100;

/** The counts of long files, so that a file that is read in windows is counted once. They hold until it changes. */
class CountedFiles {
  readonly #counts = new Map<string, Counts & { state: string }>();

  find(info: Deno.FileInfo): Counts | undefined {
    const known = this.#counts.get(idOf(info));
    return known?.state === stateOf(info) ? known : undefined;
  }

  /** @param before what was known of the file before it was counted */
  add(file: Deno.FsFile, before: Deno.FileInfo, counts: Counts): void {
    const info = file.statSync();
    const changed = (info.ctime ?? info.mtime)?.getTime() ?? Infinity;
    if (stateOf(info) !== stateOf(before) || Date.now() - changed < SETTLED) return;
    if (this.#counts.size === MOST_COUNTED) this.#counts.delete(this.#counts.keys().next().value!);
    this.#counts.set(idOf(info), { ...counts, state: stateOf(info) });
  }
}

function idOf({ dev, ino }: Deno.FileInfo): string {
  return `${dev} ${ino}`;
}

/** Every change of a file's content changes its `ctime`, which no program can set. */
function stateOf({ size, mtime, ctime }: Deno.FileInfo): string {
  return `${size} ${mtime?.getTime()} ${ctime?.getTime()}`;
}

/** Characters of the numbered lines, so that the result stays below the limit and its header is true. */
export function budget(path: string, context: ToolContext): number {
  return Math.max(0, Math.min(UNLIMITED, context.max_result ?? Infinity) - path.length - 200);
}

const NEWLINE = 10;
/** Characters of a line that are shown. */
const MAX_LINE = 2000;
/** Bytes of a line that are kept: enough for MAX_LINE characters of UTF-8. */
const MAX_BYTES = MAX_LINE * 4;

/**
 * Counts the lines and characters of a UTF-8 text that arrives in chunks, and keeps the lines from
 * `offset` (1-based): at most `limit` lines and about `budget` characters.
 */
export class LineWindow {
  readonly lines: string[] = [];
  /** Characters (code points) seen. */
  total_chars = 0;
  /** True when the window ended because of the budget. */
  over_budget = false;
  readonly #offset: number;
  readonly #limit: number;
  #budget: number;
  #newlines = 0;
  #lastByte = NEWLINE;
  readonly #decoder = lenientDecoder();
  /** The current line: its number, the bytes that are kept, and its length in bytes. */
  #line = 1;
  #bytes: Uint8Array[] = [];
  #kept = 0;
  #length = 0;

  constructor(offset: number, limit: number, budget: number) {
    this.#offset = offset;
    this.#limit = limit;
    this.#budget = budget;
  }

  /** True when no further line will be kept. */
  get full(): boolean {
    return this.over_budget || this.lines.length >= this.#limit;
  }

  /** Bytes that are kept of the current line. */
  get bytes_held(): number {
    return this.#kept;
  }

  get total_lines(): number {
    return this.#newlines + (this.#lastByte === NEWLINE ? 0 : 1);
  }

  /** @param options.count whether to count, which takes most of the time. Default: yes. */
  add(chunk: Uint8Array, { count = true } = {}): void {
    if (!this.full) this.#gather(chunk);
    if (!count) return;
    // Functions of the runtime: a loop over the bytes takes ten times as long.
    this.total_chars += codePoints(this.#decoder.decode(chunk, { stream: true }));
    for (let at = -1; (at = chunk.indexOf(NEWLINE, at + 1)) !== -1;) this.#newlines++;
    this.#lastByte = chunk.at(-1) ?? this.#lastByte;
  }

  /** Ends the text, which may lack a final newline. */
  end(): void {
    this.total_chars += codePoints(this.#decoder.decode());
    if (this.#length > 0 && !this.full) this.#finishLine();
  }

  #gather(chunk: Uint8Array): void {
    let start = 0;
    while (this.#line < this.#offset) { // up to the window
      const newline = chunk.indexOf(NEWLINE, start);
      if (newline === -1) return;
      this.#line++;
      start = newline + 1;
    }
    while (!this.full) {
      const newline = chunk.indexOf(NEWLINE, start);
      this.#keep(chunk.subarray(start, newline === -1 ? chunk.length : newline));
      if (newline === -1) return;
      this.#finishLine();
      start = newline + 1;
    }
  }

  #keep(piece: Uint8Array): void {
    this.#length += piece.length;
    const left = MAX_BYTES - this.#kept;
    if (left <= 0 || piece.length === 0) return;
    const kept = piece.slice(0, left); // a copy, since the caller reuses its buffer
    this.#bytes.push(kept);
    this.#kept += kept.length;
  }

  #finishLine(): void {
    this.#show(this.#text());
    this.#line++;
    this.#bytes = [];
    this.#kept = 0;
    this.#length = 0;
  }

  #show(text: string): void {
    this.#budget -= text.length + String(this.#line).length + 2;
    if (this.#budget < 0 && this.lines.length > 0) this.over_budget = true;
    else this.lines.push(text);
  }

  #text(): string {
    const decoder = lenientDecoder();
    let text = "";
    for (const piece of this.#bytes) text += decoder.decode(piece, { stream: true });
    if (this.#length <= MAX_BYTES) text += decoder.decode();
    if (this.#line === 1 && text.startsWith("\ufeff")) text = text.slice(1);
    if (text.endsWith("\r")) text = text.slice(0, -1);
    if (text.length <= MAX_LINE && this.#length <= MAX_BYTES) return text;
    return `${text.slice(0, MAX_LINE).toWellFormed()}… (line cut, it has ${this.#length} bytes)`;
  }
}

function lenientDecoder(): TextDecoder {
  return new TextDecoder("utf-8", { ignoreBOM: true });
}

function codePoints(text: string): number {
  return text.length - (text.match(/[\ud800-\udbff]/g)?.length ?? 0);
}
