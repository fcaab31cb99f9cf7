import { join } from "node:path";
import { lstatIfExists, makeFolder } from "../platform/files.ts";
import { openRegular, writePrivate } from "./files.ts";
import type { Attachment } from "./schema.ts";

/** A text or an image that a person gave with a prompt. */
export interface NewAttachment {
  /** A path, or what else tells where it is from. */
  name: string;
  /** The type of an image, such as `image/png`. Default: it is a text. */
  media_type?: string;
  content: Uint8Array<ArrayBuffer>;
}

/** The attachments of one session: files named by the digest of their content, in a hidden folder next to the log. */
export class Attachments {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Keeps the content; returns what the log says of it. Throws an Error when the file cannot be written. */
  async keep({ name, media_type, content }: NewAttachment): Promise<Attachment> {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content)).toHex();
    makeFolder(this.#folder, 0o700);
    const path = join(this.#folder, digest);
    if (lstatIfExists(path)?.size !== content.length) writePrivate(path, content);
    return { name, digest, bytes: content.length, ...media_type !== undefined && { media_type } };
  }

  /** The content; undefined when the file is gone. */
  read({ digest }: Pick<Attachment, "digest">): Uint8Array | undefined {
    try {
      if (!/^[\da-f]{64}$/.test(digest)) return undefined;
      using file = openRegular(join(this.#folder, digest), { read: true })?.file;
      if (file === undefined) return undefined;
      const content = new Uint8Array(file.statSync().size);
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
}
