import { lstatIfExists, mintId } from "../platform/files.ts";
import { join } from "node:path";
import { openRegular } from "./regular_file.ts";

/** Beside the sessions, hidden: one file for each first two characters of an id, an id a line. */
const FOLDER = ".ids";

/**
 * The ids that sessions of a directory have been given, those of deleted ones among them. To take one
 * costs the same however many there are: looking for it among the names of all sessions would not.
 */
export class TakenIds {
  readonly #directory: string;
  readonly #folder: string;

  /** @param directory of the sessions; it exists when an id is taken */
  constructor(directory: string) {
    this.#directory = directory;
    this.#folder = join(directory, FOLDER);
  }

  /**
   * Takes an id for a new session; false when one has it already, whichever process made that.
   *
   * @param existing the ids of all sessions; asked for once, when nothing is known of them yet
   */
  take(id: string, existing: () => Iterable<string>): boolean {
    const info = lstatIfExists(this.#folder);
    if (info === undefined) this.#begin(existing());
    else if (!info.isDirectory) throw new Error(`${this.#folder} is not a folder`);
    using file = this.#shard(id);
    file.lockSync(true); // goes with the file
    const bytes = new Uint8Array(file.statSync().size);
    let filled = 0;
    for (let count; (count = file.readSync(bytes.subarray(filled)) ?? 0) > 0;) filled += count;
    if (new TextDecoder().decode(bytes).includes(id)) return false;
    file.writeSync(new TextEncoder().encode(`${id}\n`));
    return true;
  }

  /** Makes the folder whole: another process sees all that there is, or makes it itself. */
  #begin(ids: Iterable<string>): void {
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
      if (lstatIfExists(this.#folder)?.isDirectory !== true) throw error; // else somebody was faster
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
