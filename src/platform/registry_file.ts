import { basename } from "node:path";
import { type Clock, timestamp } from "./clock.ts";
import { errorMessage, SvcError, writeFailure } from "./error.ts";
import { exists, mintId, readTextIfExists, updateFile, writeFileAtomic } from "./files.ts";

/**
 * A JSON file that svc keeps by itself. A corrupt one is warned about once, read as nothing and left as
 * it is; the first change moves it aside, so that nothing in it is lost.
 */
export class RegistryFile {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #warn: (message: string) => void;
  readonly #accepts: (value: unknown) => boolean;
  #warned = false;

  /** @param accepts what the file may hold; anything else counts as corrupt */
  constructor(
    path: string,
    clock: Clock,
    warn: (message: string) => void,
    accepts: (value: unknown) => boolean = isObjectOrArray,
  ) {
    this.#path = path;
    this.#clock = clock;
    this.#warn = warn;
    this.#accepts = accepts;
  }

  /** The JSON value of the file; undefined when there is none or it is corrupt. */
  read(): unknown {
    let text: string | undefined;
    try {
      text = readTextIfExists(this.#path);
    } catch (error) {
      this.warnOnce(`cannot be read: ${errorMessage(error)}`);
    }
    if (text === undefined) return undefined;
    const value = this.#parse(text);
    if (value === undefined) {
      this.warnOnce("is corrupt; it is read as empty, and will be kept under another name");
    }
    return value;
  }

  /**
   * Replaces the value under the file's lock, readable by its owner alone.
   *
   * @param change gets the value there is (undefined as in `read`) and the text it was read from, and
   * returns the new value.
   * @throws SvcError `registry_write` when the file cannot be written; what `change` throws as such
   * passes, and the file is then left alone.
   */
  async update(change: (value: unknown, text: string) => unknown): Promise<void> {
    try {
      await updateFile(this.#path, (text) => {
        const value = text === undefined ? undefined : this.#parse(text);
        const next = JSON.stringify(change(value, text ?? ""), null, 2) + "\n";
        if (text !== undefined && value === undefined) {
          setAside(this.#path, this.#clock, this.#warn);
        }
        return next;
      }, 0o600);
    } catch (error) {
      if (error instanceof SvcError) throw error;
      throw writeFailure("registry_write", this.#path, error);
    }
  }

  /**
   * Replaces the value, for a caller that has the lock of the file.
   *
   * @throws SvcError `registry_write`
   */
  replace(value: unknown): void {
    try {
      writeFileAtomic(this.#path, JSON.stringify(value, null, 2) + "\n", 0o600);
    } catch (error) {
      throw error instanceof SvcError ? error : writeFailure("registry_write", this.#path, error);
    }
  }

  /** Keeps a file that something else changed under another name, if there is one. */
  setAside(): void {
    if (exists(this.#path)) setAside(this.#path, this.#clock, this.#warn, CHANGED);
  }

  /** Warns about the file, unless it was warned about before. */
  warnOnce(what: string): void {
    if (!this.#warned) this.#warn(`${this.#path} ${what}.`);
    this.#warned = true;
  }

  #parse(text: string): unknown {
    try {
      const value = JSON.parse(text);
      return this.#accepts(value) ? value : undefined;
    } catch {
      return undefined;
    }
  }
}

/** Said of a file that is not as the store has it. */
export const CHANGED = "was not as the store has it";

/** Keeps a file that is corrupt, or that something else changed, under another name, and says so. */
export function setAside(
  path: string,
  clock: Clock,
  warn: (message: string) => void,
  what = "was corrupt",
): void {
  const stamp = timestamp(clock).replace(/[:.]/g, "-");
  const kept = `${path}.broken-${stamp}-${mintId()}`;
  Deno.renameSync(path, kept);
  warn(`${path} ${what}; it is kept as ${basename(kept)}.`);
}

function isObjectOrArray(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}
