import type { ToolContext } from "../../../src/plugins/api.ts";

/** A text file in full. */
export interface TextFile {
  /** Real absolute path. */
  path: string;
  info: Deno.FileInfo;
  /** With its byte order mark and its line ends as they are. */
  text: string;
}

/** Bytes of the largest file that is edited or compared as a whole. */
const MAX_SIZE = 64 * 1024 * 1024;

/** What is at `path`, or undefined when nothing is. @throws Error a sentence for what is no file. */
export async function regularFile(
  path: string,
  absolute: string,
): Promise<Deno.FileInfo | undefined> {
  try {
    const info = await Deno.stat(absolute);
    if (info.isDirectory) throw new Error(`${path} is a directory`);
    if (!info.isFile) throw new Error(`${path} is not a regular file`);
    return info;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/**
 * Reads a text file whole, or gives undefined when there is none.
 *
 * @throws Error a sentence for a file that is too large or not UTF-8: writing it back would damage it.
 */
export async function readTextFile(
  path: string,
  context: ToolContext,
): Promise<TextFile | undefined> {
  const absolute = context.paths.resolve(path);
  if (await regularFile(path, absolute) === undefined) return undefined;
  using file = await context.paths.open(path, { read: true });
  const info = await file.stat();
  if (info.size > MAX_SIZE) {
    throw new Error(`${path} has ${info.size} bytes; files over ${MAX_SIZE} bytes are not edited`);
  }
  const bytes = new Uint8Array(await new Response(file.readable).arrayBuffer());
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return { path: absolute, info, text: decoder.decode(bytes) };
  } catch {
    throw new Error(`${path} is not UTF-8 text`);
  }
}
