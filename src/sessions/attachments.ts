import { join } from "node:path";
import { lstatIfExists, makeFolder, tryRemove } from "../platform/files.ts";
import { openRegular, writePrivate } from "./files.ts";
import { filesOf } from "./listing.ts";
import type { Attachment } from "./schema.ts";

/** A text or an image that a person gave with a prompt. */
export interface NewAttachment {
  /** A path, or what else tells where it is from. */
  name: string;
  /** The type of an image, such as `image/png`. Default: it is a text. */
  media_type?: string;
  content: Uint8Array<ArrayBuffer>;
}

/** Bytes of what tools gave that a session keeps; the oldest is removed first. */
export const MOST_KEPT = 64 * 1024 * 1024;

/** The names of the texts that a result says are kept (see `withoutMiddle`). */
export function keptTexts(result: string): Set<string> {
  const named = result.matchAll(
    /; the whole is in \S+\/([\da-f]{16}\.txt), for file_read and grep/g,
  );
  return new Set(Array.from(named, ([, name]) => name!));
}

/** The name of a file: the digest of its content, or the beginning of that of a text. */
const NAME = /^(?:[\da-f]{64}|[\da-f]{16}\.txt)$/;

/** Characters of a text that are kept, and of one of its lines: `file_read` shows no more of a line. */
const LONGEST_TEXT = 8_000_000;
const LONGEST_LINE = /[^\n]{1000}(?=[^\n])/gu;

/** The attachments of one session: files named by the digest of their content, in a hidden folder next to the log. */
export class Attachments {
  readonly #folder: string;
  readonly #most: number;

  /** @param most bytes that are kept: the oldest files are removed first. Default: all */
  constructor(folder: string, most = Infinity) {
    this.#folder = folder;
    this.#most = most;
  }

  /** Keeps the content; returns what the log says of it. Throws an Error when the file cannot be written. */
  async keep({ name, media_type, content }: NewAttachment): Promise<Attachment> {
    const digest = await digestOf(content);
    this.#write(digest, content);
    return { name, digest, bytes: content.length, ...media_type !== undefined && { media_type } };
  }

  /**
   * Keeps a text that tools can read; lines of more than 1,000 characters are broken.
   *
   * @returns the path of the file
   * @throws Error when it cannot be written
   */
  async keepText(text: string): Promise<string> {
    const content = encode(text.slice(0, LONGEST_TEXT).replace(LONGEST_LINE, "$&\n"));
    return this.#write(`${(await digestOf(content)).slice(0, 16)}.txt`, content);
  }

  /** The content, also of a text by its name; undefined when the file is gone. */
  read({ digest }: Pick<Attachment, "digest">): Uint8Array | undefined {
    try {
      if (!NAME.test(digest)) return undefined;
      using file = openRegular(join(this.#folder, digest), { read: true })?.file;
      if (file === undefined) return undefined;
      const { size } = file.statSync();
      if (size > MOST_KEPT) return undefined; // svc has not written it
      const content = new Uint8Array(size);
      for (let at = 0; at < content.length;) {
        const read = file.readSync(content.subarray(at));
        if (read === null) return undefined;
        at += read;
      }
      return content;
    } catch {
      return undefined;
    }
  }

  #write(name: string, content: Uint8Array<ArrayBuffer>): string {
    makeFolder(this.#folder, 0o700);
    // A worktree may come with a link to a folder of its user.
    if (!lstatIfExists(this.#folder)?.isDirectory) {
      throw new Error(`${this.#folder} is not a folder`);
    }
    const path = join(this.#folder, name);
    if (lstatIfExists(path)?.size !== content.length) writePrivate(path, content);
    if (this.#most < Infinity) this.#bound(path);
    return path;
  }

  /** Removes the oldest files until the others have few enough bytes. `newest` stays. */
  #bound(newest: string): void {
    const files = filesOf(this.#folder).filter((name) => NAME.test(name)).flatMap((name) => {
      const path = join(this.#folder, name);
      const info = lstatIfExists(path);
      return info === undefined || path === newest ? [] : { path, info };
    }).sort((one, other) => (other.info.mtime?.getTime() ?? 0) - (one.info.mtime?.getTime() ?? 0));
    let left = this.#most - (lstatIfExists(newest)?.size ?? 0);
    for (const { path, info } of files) if ((left -= info.size) < 0) tryRemove(path);
  }
}

async function digestOf(content: Uint8Array<ArrayBuffer>): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", content)).toHex();
}

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}
