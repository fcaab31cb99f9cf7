import { join } from "node:path";
import type { Clock } from "../platform/clock.ts";
import { usageError } from "../platform/error.ts";
import { lstatIfExists, mintId } from "../platform/files.ts";
import { openRegular } from "./files.ts";

/** The kind of a new session: interactive or headless, of a sub-agent, of a job run. */
export type SessionKind = "ses" | "sub" | "job";

const MINTED = /^(?:ses|sub|job)_\d{8}_\d{6}_([0-9a-z]{6})$/;
/** Bytes; leaves space for the suffixes of a session's hidden files in a 255-byte file name. */
const LONGEST_NAME = 200;
// deno-lint-ignore no-control-regex
const NAME = /^[^./\\\u0000-\u001f\u007f-\u009f][^/\\\u0000-\u001f\u007f-\u009f]*$/;

/** `isSessionName` as JSON Schema, which counts characters and not bytes. */
export const SESSION_NAME = { pattern: NAME.source, maxLength: LONGEST_NAME };

/** A new name, `<kind>_<YYYYMMDD>_<HHMMSS>_<id>` in UTC (specification 2.1). */
export function mintName(kind: SessionKind, clock: Clock): string {
  const [date, time] = new Date(clock.now()).toISOString().split("T") as [string, string];
  return `${kind}_${date.replaceAll("-", "")}_${time.slice(0, 8).replaceAll(":", "")}_${mintId()}`;
}

/** The id at the end of a generated name; empty for a name that a user chose (specification 2.1). */
export function idOf(name: string): string {
  return MINTED.exec(name)?.[1] ?? "";
}

/** Whether a text has the form of the id of a session. */
export function isId(text: string): boolean {
  return /^[0-9a-z]{6}$/.test(text);
}

/** Whether `name` is a plain file name, which stays in the sessions directory. */
export function isSessionName(name: string): boolean {
  return NAME.test(name) && name.isWellFormed() &&
    (name.length * 3 <= LONGEST_NAME || new TextEncoder().encode(name).length <= LONGEST_NAME);
}

/**
 * Rejects a name that is not a plain file name.
 *
 * @throws SvcError `session_name` (exit 2)
 */
export function checkSessionName(name: string): void {
  if (isSessionName(name)) return;
  throw usageError(
    "session_name",
    `${JSON.stringify(name.slice(0, 80))} cannot be the name of a session.`,
    `Use up to ${LONGEST_NAME} bytes without slashes, control characters or a leading dot.`,
  );
}

/** The beginning of a handle that names its session. */
export const NAMED = "session:";

/** Whether a text is a handle of a session that exists: `#<id>` or `session:<name>` (specification 2.1). */
export function isHandle(text: string): boolean {
  return text.startsWith("#") || text.startsWith(NAMED);
}

/**
 * Rejects a name that a new session cannot have: a handle, or no plain file name.
 *
 * @throws SvcError `session_name` (exit 2)
 */
export function checkNewName(name: string): void {
  checkSessionName(name);
  if (!isHandle(name)) return;
  const shown = JSON.stringify(name.slice(0, 80));
  throw usageError("session_name", `${shown} cannot be the name of a new session.`, HANDLES);
}

const HANDLES = "#<id> and session:<name> are handles of sessions that exist.";

/** Hidden folder in the sessions directory: one file for each first two characters of an id, an id a line. */
const FOLDER = ".ids";

/**
 * The ids of all sessions of a directory, including deleted ones. The cost of taking an id does not depend on
 * the number of sessions, as a search in their names would.
 */
export class TakenIds {
  readonly #directory: string;
  readonly #folder: string;

  /** @param directory of the sessions; it must exist when an id is taken */
  constructor(directory: string) {
    this.#directory = directory;
    this.#folder = join(directory, FOLDER);
  }

  /**
   * Takes an id for a new session; false when a session of any process has it.
   *
   * @param existing returns the ids of all sessions; called once, to create the folder
   */
  take(id: string, existing: () => Iterable<string>): boolean {
    const info = lstatIfExists(this.#folder);
    if (info === undefined) this.#create(existing());
    else if (!info.isDirectory) throw new Error(`${this.#folder} is not a folder`);
    using file = this.#shard(id);
    file.lockSync(true); // ends when the file is closed
    const bytes = new Uint8Array(file.statSync().size);
    let filled = 0;
    for (let count; (count = file.readSync(bytes.subarray(filled)) ?? 0) > 0;) filled += count;
    if (new TextDecoder().decode(bytes).includes(id)) return false;
    file.writeSync(new TextEncoder().encode(`${id}\n`));
    return true;
  }

  /** Creates the complete folder at once, so that another process never sees a part of it. */
  #create(ids: Iterable<string>): void {
    const shards = Map.groupBy(ids, (id) => id.slice(0, 2));
    const folder = join(this.#directory, `${FOLDER}.${mintId()}`);
    Deno.mkdirSync(folder);
    for (const [shard, ids] of shards) {
      Deno.writeTextFileSync(join(folder, shard), ids.map((id) => `${id}\n`).join(""));
    }
    try {
      Deno.renameSync(folder, this.#folder);
    } catch (error) {
      Deno.removeSync(folder, { recursive: true });
      if (lstatIfExists(this.#folder)?.isDirectory !== true) throw error; // otherwise another process created it
    }
  }

  #shard(id: string): Deno.FsFile {
    const path = join(this.#folder, id.slice(0, 2));
    while (true) {
      const held = openRegular(path, { read: true, append: true });
      if (held !== undefined) return held.file;
      try {
        return Deno.openSync(path, { read: true, append: true, createNew: true });
      } catch (error) {
        if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
      }
    }
  }
}
