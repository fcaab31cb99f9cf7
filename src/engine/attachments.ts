import { basename, resolve } from "node:path";
import { SvcError, usageError } from "../platform/error.ts";
import { exists } from "../platform/files.ts";
import type { NewAttachment } from "../sessions/attachments.ts";

/** Bytes of a text and of an image at most: a model has no room for more. */
const MOST_TEXT = 1_000_000;
const MOST_IMAGE = 5_000_000;
/** Names of a folder that are listed. */
const MOST_NAMES = 1000;

/** The images that models take, by their first bytes. */
const IMAGES: [media_type: string, isStart: (start: string) => boolean][] = [
  ["image/png", (start) => start.startsWith("\x89PNG\r\n\x1a\n")],
  ["image/jpeg", (start) => start.startsWith("\xff\xd8\xff")],
  ["image/gif", (start) => start.startsWith("GIF8")],
  ["image/webp", (start) => start.startsWith("RIFF") && start.slice(8, 12) === "WEBP"],
];

/**
 * A file, or the list of a folder, as an attachment.
 *
 * @param path relative to `base`, and its name in the log
 * @throws SvcError (exit 2) `no_attachment`, and as `attachment`
 */
export function attachmentAt(path: string, base: string): NewAttachment {
  const place = resolve(base, path);
  try {
    if (Deno.statSync(place).isDirectory) return attachment(path, encode(listOf(place)));
    return attachment(path, contentOf(path, place));
  } catch (error) {
    if (error instanceof SvcError) throw error;
    throw unreadable(
      path,
      error instanceof Deno.errors.NotFound ? "there is no such file" : "it cannot be read",
    );
  }
}

function unreadable(path: string, why: string): SvcError {
  return usageError(
    "no_attachment",
    `${path} cannot be attached: ${why}.`,
    "Relative paths start at the current folder; in a session, at the worktree.",
  );
}

/**
 * A text or an image as an attachment.
 *
 * @throws SvcError (exit 2) `attachment_size`, `attachment_type`
 */
export function attachment(name: string, content: Uint8Array<ArrayBuffer>): NewAttachment {
  const media_type = checked(name, content.subarray(0, START), content.length);
  if (media_type !== undefined) return { name, media_type, content };
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(content);
    if (!text.includes("\0")) return { name, content };
  } catch {
    // no UTF-8
  }
  throw usageError(
    "attachment_type",
    `${name} is neither a text in UTF-8 nor an image that models take (PNG, JPEG, GIF, WebP).`,
    "Convert it, or name the file in the prompt.",
  );
}

/**
 * An image as an attachment.
 *
 * @throws SvcError (exit 2) `attachment_size`, `attachment_type`
 */
export function imageAttachment(name: string, content: Uint8Array<ArrayBuffer>): NewAttachment {
  const media_type = checked(name, content.subarray(0, START), content.length);
  if (media_type !== undefined) return { name, media_type, content };
  throw usageError(
    "attachment_type",
    `${name} is no image that models take (PNG, JPEG, GIF, WebP).`,
    "Convert it.",
  );
}

/** Bytes of a file that tell an image. */
const START = 16;

/** The type of an image. Throws an SvcError for a content that is too large. */
function checked(name: string, start: Uint8Array, bytes: number): string | undefined {
  const first = String.fromCharCode(...start);
  const media_type = IMAGES.find(([, isStart]) => isStart(first))?.[0];
  const most = media_type === undefined ? MOST_TEXT : MOST_IMAGE;
  if (bytes <= most) return media_type;
  throw usageError(
    "attachment_size",
    `${name} has ${bytes} bytes; an attached ${
      media_type === undefined ? "text" : "image"
    } has at most ${most}.`,
    media_type === undefined
      ? "Name the file in the prompt instead: the agent reads what it needs of it."
      : "Attach a smaller version of it.",
  );
}

/** The content of a regular file. To read a pipe or a device may never end, and a large file fills the memory. */
function contentOf(name: string, place: string): Uint8Array<ArrayBuffer> {
  const { isFile, size } = Deno.statSync(place);
  if (!isFile) throw unreadable(name, "it is no regular file");
  using file = Deno.openSync(place);
  const start = new Uint8Array(START);
  checked(name, start.subarray(0, file.readSync(start) ?? 0), size);
  return Deno.readFileSync(place);
}

/** The files and folders that a prompt names as `@path`, where they exist; punctuation may follow. */
export function namedIn(prompt: string, worktree: string): string[] {
  const found = new Set<string>();
  for (const [, word = ""] of prompt.matchAll(/(?<=^|[\s(])@(\S+)/g)) {
    for (let path = word; path !== ""; path = path.slice(0, -1)) {
      if (exists(resolve(worktree, path))) {
        found.add(path);
        break;
      }
      if (!/[.,;:!?)'"\]]$/.test(path)) break;
    }
  }
  return [...found];
}

/** The names in a folder, hidden ones too; folders end with a slash. */
function listOf(folder: string): string {
  const names = Array.from(
    Deno.readDirSync(folder),
    ({ name, isDirectory }) => isDirectory ? `${name}/` : name,
  ).sort();
  const more = names.length - MOST_NAMES;
  const shown = names.slice(0, MOST_NAMES).join("\n");
  return `The folder ${basename(folder)} has:\n${shown}${more > 0 ? `\n… and ${more} more` : ""}\n`;
}

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}
