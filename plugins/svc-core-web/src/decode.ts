import { Bytes } from "./bytes.ts";
import { pause } from "./pause.ts";
import { WebError } from "./web_error.ts";

/** Bytes that are unpacked at once: they may become a thousand times as many, and hold up everybody else. */
const PACKED_PIECE = 4 * 1024;
/** Bytes that are decoded at once. */
const TEXT_PIECE = 512 * 1024;

/**
 * Takes the content coding off a body, up to a number of bytes: what a small body unpacks to may be
 * endless.
 *
 * @throws WebError for a coding that was not asked for, or a body that is not of it.
 */
export async function unpack(
  body: Uint8Array<ArrayBuffer>,
  coding: string,
  limits: { max_bytes: number; cut: boolean },
): Promise<{ body: Uint8Array<ArrayBuffer>; cut: boolean }> {
  const name = coding.trim().toLowerCase().replace(/^x-/, "");
  if (name === "" || name === "identity") return { body, cut: limits.cut };
  if (name !== "gzip" && name !== "deflate") {
    throw new WebError(
      `the answer is packed in a way that is not supported (${name.slice(0, 40)})`,
    );
  }
  const all = new Bytes();
  const reader = ReadableStream.from(pieces(body, PACKED_PIECE))
    .pipeThrough(new DecompressionStream(name)).getReader();
  try {
    while (all.size <= limits.max_bytes) {
      const { done, value } = await reader.read();
      if (done) return { body: all.all(), cut: limits.cut };
      all.add(value);
    }
    return { body: all.all().subarray(0, limits.max_bytes), cut: true };
  } catch {
    // A body that was cut off at the limit ends in the middle of its coding.
    if (limits.cut && all.size > 0) return { body: all.all(), cut: true };
    throw new WebError(`the answer says that it is packed with ${name}, and is not`);
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** The text of a body: in the charset of its header, its byte order mark, or its `meta`; else UTF-8. */
export async function decodeText(
  body: Uint8Array<ArrayBuffer>,
  contentType: string,
): Promise<string> {
  const beginning = new TextDecoder("latin1").decode(body.subarray(0, 2048));
  const mark = beginning.startsWith("\xfe\xff")
    ? "utf-16be"
    : beginning.startsWith("\xff\xfe")
    ? "utf-16le"
    : "";
  const named = /charset\s*=\s*["']?\s*([\w:.-]{1,40})/i;
  const header = named.exec(contentType)?.[1];
  const meta = /<(?:meta|\?xml)[^>]{0,400}?(?:charset|encoding)\s*=\s*["']?\s*([\w:.-]{1,40})/i
    .exec(beginning)?.[1];
  // A page whose meta says UTF-16 was read to find it, and so is not.
  const inside = meta !== undefined && !/^utf-?16/i.test(meta) ? meta : undefined;
  const reader = decoder(mark || header || inside || "utf-8");
  const texts: string[] = [];
  for (const piece of pieces(body, TEXT_PIECE)) {
    if (texts.length > 0) await pause();
    texts.push(reader.decode(piece, { stream: true }));
  }
  return texts.join("") + reader.decode();
}

function* pieces(bytes: Uint8Array<ArrayBuffer>, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

function decoder(label: string): TextDecoder {
  try {
    return new TextDecoder(label);
  } catch {
    return new TextDecoder();
  }
}
