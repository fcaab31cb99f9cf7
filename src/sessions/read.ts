import { checkDocument } from "./check.ts";
import { spaces } from "./layout.ts";
import type { LogPaths } from "./log_paths.ts";
import { recover } from "./operations.ts";
import { openRegular, readAt } from "./regular_file.ts";
import type { SessionDocument } from "./schema.ts";

/**
 * Reads a session as its journal says it is, also after a crash that left the file in pieces. Writes
 * nothing.
 *
 * @returns undefined when there is no such session, or when it does not load, which is warned of
 */
export function readLog(
  name: string,
  paths: LogPaths,
  warn: (message: string) => void,
): SessionDocument | undefined {
  const bytes = readFiles(paths);
  if (bytes === undefined || bytes.length === 0) return undefined; // an empty one is being born
  const unreadable = (what: string) => {
    warn(`Session ${name} does not load: ${paths.document} ${what}. The file stays as it is.`);
    return undefined;
  };
  let value: unknown;
  try {
    // Not the strict decoding, which takes four times as long on a long log.
    value = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return unreadable("is not valid JSON");
  }
  const checked = checkDocument(value);
  if (checked.kind === "old") return unreadable("is in an old format");
  if (checked.kind === "broken") return unreadable(`is broken at ${checked.where}`);
  return checked.document;
}

/** The bytes of the document with what its journal adds. */
function readFiles(paths: LogPaths): Uint8Array | undefined {
  const file = openLocked(paths.document);
  if (file === undefined) return undefined;
  try {
    return mend(readAt(file, 0, file.statSync().size), paths.journal);
  } finally {
    file.close();
  }
}

/** The document that `path` names, while nobody writes it; undefined when there is none. */
export function openLocked(path: string): Deno.FsFile | undefined {
  while (true) {
    let file: Deno.FsFile | undefined;
    let current = false;
    try {
      file = Deno.openSync(path);
      lockShared(file);
      current = inodeOf(path) === file.statSync().ino; // else replaced before the lock was there
      if (current) return file;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined;
      throw error;
    } finally {
      if (!current) file?.close();
    }
  }
}

function mend(document: Uint8Array, path: string): Uint8Array {
  const journal = openRegular(path, { read: true });
  if (journal === undefined) return document;
  try {
    const at = (offset: number, length: number) => document.subarray(offset, offset + length);
    const recovered = recover(readAt(journal.file, 0, journal.file.statSync().size), at);
    if (recovered === undefined) return document;
    const [turns, ...entries] = recovered.edits.render(recovered.state);
    const end = turns.at + turns.bytes.length;
    const mended = spaces(end);
    mended.set(document.subarray(0, Math.min(turns.at, end)));
    for (const { at, bytes } of [turns, ...entries]) mended.set(bytes, at);
    return mended;
  } finally {
    journal.file.close();
  }
}

/** A file system without locks is read all the same: a writer there is seen between two appends. */
function lockShared(file: Deno.FsFile): void {
  try {
    file.lockSync(false);
  } catch {
    // not supported here
  }
}

function inodeOf(path: string): number | null | undefined {
  try {
    return Deno.statSync(path).ino;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
