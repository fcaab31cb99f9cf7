import type { ToolContext } from "../../../src/plugins/api.ts";
import { textWindow, type Window } from "./file_read.ts";

/** Bytes of a notebook, and of an image, at most. */
const MAX_NOTEBOOK = 32 * 1024 * 1024;
const MAX_IMAGE = 5_000_000;
/** Images of one notebook that are shown. */
const MAX_IMAGES = 10;
/** Cells and outputs of one notebook that are read. */
const MAX_CELLS = 10_000;

/** A file that is no text, from its position 0. */
export interface FormatRequest extends Window {
  /** The beginning of the file. */
  start: Uint8Array;
}

/**
 * What the model gets of an image, a notebook, a PDF or an archive; undefined for a file of another format. The
 * position in the file is any afterwards.
 */
export async function readFormat(
  file: Deno.FsFile,
  request: FormatRequest,
  context: ToolContext,
): Promise<string | undefined> {
  const { path, start } = request;
  const first = String.fromCharCode(...start.subarray(0, 16));
  const image = imageOf(first);
  if (image !== undefined) return await readImage(file, image, path, context);
  if (first.startsWith("%PDF-")) {
    const { readPdf } = await import("./pdf.ts");
    return await readPdf(file, request, context);
  }
  if (/\.ipynb$/i.test(path)) return await readNotebook(file, request, context);
  const { readArchive } = await import("./archives.ts");
  return await readArchive(file, request, context);
}

function imageOf(first: string): string | undefined {
  if (first.startsWith("\x89PNG\r\n\x1a\n")) return "PNG";
  if (first.startsWith("\xff\xd8\xff")) return "JPEG";
  if (/^GIF8[79]a/.test(first)) return "GIF";
  if (/^RIFF[^]{4}WEBP/.test(first)) return "WebP";
  return undefined;
}

async function readImage(
  file: Deno.FsFile,
  kind: string,
  path: string,
  { attach }: ToolContext,
): Promise<string> {
  const { size } = file.statSync();
  const header = `# ${path} - ${kind} image, ${size} bytes`;
  if (size > MAX_IMAGE) return `${header}\n(not shown: images have at most ${MAX_IMAGE} bytes)`;
  if (attach === undefined) return `${header}\n(images cannot be shown here)`;
  await attach(path, await bytesOf(file, 0, size));
  return `${header}\n(shown with this result)`;
}

/** Bytes of a file; fewer where it ends. */
export async function bytesOf(
  file: Deno.FsFile,
  from: number,
  length: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(length);
  await file.seek(from, Deno.SeekMode.Start);
  let at = 0;
  while (at < length) {
    const read = await file.read(bytes.subarray(at));
    if (read === null) break;
    at += read;
  }
  return bytes.subarray(0, at);
}

// deno-lint-ignore no-explicit-any
type Json = any;

/** The cells of a notebook with their outputs; undefined for a file that is none. */
async function readNotebook(
  file: Deno.FsFile,
  request: FormatRequest,
  context: ToolContext,
): Promise<string | undefined> {
  const { path } = request;
  const { size } = file.statSync();
  if (size > MAX_NOTEBOOK) return undefined;
  const bytes = await bytesOf(file, 0, size);
  let cells: Json[];
  try {
    const notebook = JSON.parse(new TextDecoder().decode(bytes));
    cells = notebook.cells ?? notebook.worksheets[0].cells;
    if (!Array.isArray(cells)) return undefined;
  } catch {
    return undefined;
  }
  const images = new Map<string, string>();
  const read: string[] = [];
  for (let left = MAX_CELLS; left > 0 && read.length < cells.length; left--) {
    const cell = cells[read.length];
    const outputs: Json[] = Array.isArray(cell?.outputs) ? cell.outputs.slice(0, left) : [];
    left -= outputs.length;
    read.push(cellText(cell, outputs, read.length + 1, images));
  }
  const text = read.join("\n\n");
  const shown = read.length < cells.length ? ` of the first ${read.length}` : "";
  const header = `# ${path} - notebook, ${cells.length} cells; what follows is their text${shown}`;
  let result = textWindow(header, text, request, context);
  let before = 0;
  for (const [mark, data] of images) {
    if (!result.includes(mark)) continue;
    const how = await attached(mark.slice(1, -1), data, before++, context);
    result = result.replace(mark, () => `[${mark.slice(1, -1)}, ${how}]`);
  }
  return result;
}

/** Attaches an image in base64, and says how it went. */
async function attached(
  name: string,
  data: string,
  before: number,
  { attach }: ToolContext,
): Promise<string> {
  if (attach === undefined || before >= MAX_IMAGES) return "not shown";
  try {
    await attach(name, Uint8Array.fromBase64(data));
    return "shown with this result";
  } catch {
    return "not shown: it cannot be read";
  }
}

/** @param images gets the images, in base64, by the text that stands for them */
function cellText(
  cell: Json,
  outputs: Json[],
  number: number,
  images: Map<string, string>,
): string {
  const { cell_type = "", execution_count: count } = cell ?? {};
  const source = textOf(cell?.source ?? cell?.input).trimEnd();
  const ran = count === undefined || count === null ? "" : ` [${count}]`;
  const blocks = [`## cell ${number}: ${cell_type}${ran}`, source];
  for (const [i, output] of outputs.entries()) {
    blocks.push(`## output of cell ${number}: ${output?.output_type ?? ""}`);
    const data = output?.data ?? {};
    const kind = Object.keys(data).find((key) => /^image\/(png|jpeg|gif|webp)$/.test(key));
    if (kind !== undefined) {
      const mark = `[image ${i + 1} of cell ${number}]`;
      images.set(mark, textOf(data[kind]).replace(/\s/g, ""));
      blocks.push(mark);
    }
    const error = output?.ename === undefined
      ? ""
      : `${output.ename}: ${output.evalue}\n${textOf(output.traceback, "\n")}`;
    const plain = textOf(data["text/plain"] ?? data["text/markdown"]);
    const said = (textOf(output?.text) || error || plain).trimEnd();
    // deno-lint-ignore no-control-regex
    if (said !== "") blocks.push(said.replace(/\x1b\[[0-9;]*[A-Za-z]/g, ""));
  }
  return blocks.filter((block) => block !== "").join("\n");
}

/** A text of a notebook, which may be a list of lines. */
function textOf(text: unknown, between = ""): string {
  if (Array.isArray(text)) return text.filter((line) => typeof line === "string").join(between);
  return typeof text === "string" ? text : "";
}
