import type { ToolContext } from "../../../src/plugins/api.ts";
import { budget } from "./file_read.ts";
import { bytesOf, type FormatRequest } from "./formats.ts";

/** The only message to the thread. */
export interface PdfQuestion {
  bytes: Uint8Array<ArrayBuffer>;
  /** The first page, from 1, and the most pages. */
  first: number;
  count: number;
  /** Characters after which no further page is read. */
  chars: number;
  /** Milliseconds after which no further page is read. */
  ms: number;
}

/** The messages of the thread: the number of pages, the text of each, and at the end what is wrong; empty: nothing. */
export type PdfAnswer = { pages: number } | { text: string } | { end: string };

interface PdfOptions {
  /** Starts a thread that runs `pdf_worker.ts`. */
  start: () => Worker;
  /** Milliseconds that a call may take. */
  ms: number;
  /** Bytes by which the memory of the process may grow. */
  memory: number;
}

/** Bytes of a PDF at most. */
const MAX_PDF = 64 * 1024 * 1024;
/** Milliseconds between two looks at the memory. */
const LOOK = 20;

/** Threads that were given up and still compute. Deno cannot end such a thread, so that one of them is enough. */
let abandoned = 0;

/**
 * The text of a PDF by page. A thread reads it, which is ended when it takes too much time or memory: a file of a
 * kilobyte may unpack to any number of bytes.
 */
export async function readPdf(
  file: Deno.FsFile,
  { path, offset: first, limit }: FormatRequest,
  context: ToolContext,
  { start, ms, memory }: PdfOptions = { start: startThread, ms: 20_000, memory: 400 * 1024 ** 2 },
): Promise<string> {
  const { size } = file.statSync();
  if (abandoned > 0) {
    return `# ${path} - PDF, ${size} bytes\n(not read: another PDF was given up and still takes a thread)`;
  }
  if (size > MAX_PDF) return `# ${path} - PDF, ${size} bytes\n(too large to be read)`;
  const bytes = await bytesOf(file, 0, size);
  context.signal.throwIfAborted();
  const chars = budget(path, context);
  const texts: string[] = [];
  let pages: number | undefined;
  let ended = false;
  const over = Promise.withResolvers<string>();
  const worker = start();
  worker.onmessage = ({ data }: MessageEvent<PdfAnswer>) => {
    if ("pages" in data) pages = data.pages;
    else if ("text" in data) texts.push(data.text);
    else end(data.end);
  };
  worker.onerror = (event) => {
    event.preventDefault();
    end("the thread that reads it has failed");
  };
  const end = (fault: string) => {
    ended = true;
    over.resolve(fault);
  };
  const abort = () => over.reject(context.signal.reason);
  context.signal.addEventListener("abort", abort, { once: true });
  const late = setTimeout(() => over.resolve(`it takes more than ${ms / 1000} s`), ms);
  const before = Deno.memoryUsage().rss;
  const watch = setInterval(() => {
    if (Deno.memoryUsage().rss - before > memory) over.resolve("it takes too much memory");
  }, LOOK);
  try {
    worker.postMessage({ bytes, first, count: limit, chars, ms }, [bytes.buffer]);
    return render(await over.promise);
  } finally {
    clearTimeout(late);
    clearInterval(watch);
    context.signal.removeEventListener("abort", abort);
    if (ended) worker.terminate();
    else abandon(worker);
  }

  function render(fault: string): string {
    const header = `# ${path} - PDF, ${pages === undefined ? `${size} bytes` : `${pages} pages`}`;
    let left = chars;
    // The first page is given even when it is too long: the whole of the result is then kept.
    const shown = texts.filter((text, i) => (left -= text.length + 30) >= 0 || i === 0);
    const last = first + shown.length - 1;
    const blocks = shown.map((text, i) =>
      `--- page ${first + i} ---\n${text.trimEnd() || "(no text; it may be an image)"}`
    );
    if (fault !== "") blocks.push(`(${shown.length > 0 ? "the rest is " : ""}not read: ${fault})`);
    else if (limit > 0 && shown.length === 0) {
      blocks.push(`(offset ${first} is past the last page)`);
    } else if (last < first + limit - 1 && last < pages!) {
      blocks.push(`... (the result limit is reached; continue with offset ${last + 1})`);
    }
    const part = shown.length > 0 && shown.length !== pages ? ` (showing ${first}-${last})` : "";
    return [header + part, ...blocks].join("\n");
  }
}

/** Lets a thread compute until it is done. */
function abandon(worker: Worker): void {
  abandoned++;
  const end = () => {
    abandoned--;
    worker.terminate();
  };
  worker.onmessage = ({ data }: MessageEvent<PdfAnswer>) => {
    if ("end" in data) end();
  };
  worker.onerror = (event) => {
    event.preventDefault();
    end();
  };
}

/** The worker is a file next to this one; compile.sh puts its bundle next to the chunks of the program. */
function startThread(): Worker {
  const file = import.meta.url.endsWith(".ts") ? "pdf_worker.ts" : "pdf_worker.js";
  return new Worker(new URL(file, import.meta.url), { type: "module" });
}
