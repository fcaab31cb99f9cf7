import { basename } from "node:path";
import { type Clock, timestamp } from "../platform/clock.ts";
import { errorMessage, SvcError } from "../platform/error.ts";
import { readTextIfExists } from "../platform/files.ts";
import { mintId } from "../platform/ids.ts";
import { updateFile } from "../platform/lock.ts";

/**
 * A JSON file of the user's that svc keeps by itself. A corrupt one is warned about once, read as
 * nothing and left as it is; the first change moves it aside, so that nothing in it is lost.
 */
export class RegistryFile {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #warn: (message: string) => void;
  #warned = false;

  constructor(path: string, clock: Clock, warn: (message: string) => void) {
    this.#path = path;
    this.#clock = clock;
    this.#warn = warn;
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
    const value = parse(text);
    if (value === undefined) {
      this.warnOnce("is no valid JSON; it is read as empty, and will be kept under another name");
    }
    return value;
  }

  /**
   * Replaces the value under the file's lock, readable by its owner alone.
   *
   * @param change gets the value there is (undefined as in `read`) and returns the new one.
   * @throws SvcError `registry_write` when the file cannot be written.
   */
  async update(change: (value: unknown) => unknown): Promise<void> {
    try {
      await updateFile(this.#path, (text) => {
        const value = text === undefined ? undefined : parse(text);
        if (text !== undefined && value === undefined) this.#setAside();
        return JSON.stringify(change(value), null, 2) + "\n";
      }, 0o600);
    } catch (error) {
      throw new SvcError(
        "registry_write",
        `${this.#path} cannot be written: ${errorMessage(error)}`,
        {
          cause: error,
        },
      );
    }
  }

  /** Warns about the file, unless it was warned about before. */
  warnOnce(what: string): void {
    if (!this.#warned) this.#warn(`${this.#path} ${what}.`);
    this.#warned = true;
  }

  #setAside(): void {
    const stamp = timestamp(this.#clock).replace(/[:.]/g, "-");
    const kept = `${this.#path}.broken-${stamp}-${mintId()}`;
    Deno.renameSync(this.#path, kept);
    this.#warn(`${this.#path} was no valid JSON; it is kept as ${basename(kept)}.`);
  }
}

/** The value of a JSON object or array; undefined for anything else, which these files never hold. */
function parse(text: string): unknown {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a `last_used` stamp is less than an hour old: not every run is worth a write to disk. */
export function isRecent(last_used: string, clock: Clock): boolean {
  const age = clock.now() - Date.parse(last_used);
  return age >= 0 && age < 3_600_000;
}
