import { join } from "node:path";
import * as z from "zod/mini";
import { type Clock, timestamp } from "../platform/clock.ts";
import { usageError } from "../platform/error.ts";
import { fileStamp, isObject } from "../platform/files.ts";
import { RegistryFile } from "../platform/registry_file.ts";

const connection = z.object({
  /** Empty: the provider's default. */
  base_url: z._default(z.string(), ""),
  api_key: z._default(z.string(), ""),
  added_at: z._default(z.string(), ""),
  last_used: z._default(z.string(), ""),
});

/** Address and key of a provider: an entry of `providers.json` (specification 2.12). */
export type Connection = z.infer<typeof connection>;

/** The fields of a connection that `save` sets. */
export interface ConnectionChange {
  base_url?: string;
  api_key?: string | null;
}

/** `~/.config/svc/providers.json`, the only place where keys are kept (specification 5.1). */
export class ConnectionStore {
  readonly #path: string;
  readonly #file: RegistryFile;
  readonly #clock: Clock;
  #known: { stamp: string; connections: ReadonlyMap<string, Connection> } | undefined;

  constructor(userDirectory: string, clock: Clock, warn: (message: string) => void) {
    this.#path = join(userDirectory, "providers.json");
    this.#file = new RegistryFile(this.#path, clock, warn);
    this.#clock = clock;
  }

  get(name: string): Connection | undefined {
    return this.list().get(name);
  }

  /** The stored connections by provider name, in the order of the file. */
  list(): ReadonlyMap<string, Connection> {
    const stamp = fileStamp(this.#path);
    if (this.#known?.stamp !== stamp) this.#known = { stamp, connections: this.#read() };
    return this.#known.connections;
  }

  #read(): Map<string, Connection> {
    const connections = new Map<string, Connection>();
    for (const [name, entry] of Object.entries(entries(this.#file.read()))) {
      const { success, data } = connection.safeParse(entry);
      if (success) connections.set(name, data);
      else this.#file.warnOnce(`has an entry ${JSON.stringify(name)} that is not understood`);
    }
    return connections;
  }

  /**
   * Adds or changes a connection. Fields that are left out, and an empty key, keep the stored value; a null
   * key removes it.
   *
   * @throws SvcError `bad_key` (exit 2) for a key that no HTTP header can carry.
   */
  async save(name: string, change: ConnectionChange): Promise<void> {
    const api_key = change.api_key?.trim() ?? "";
    if (!/^[\x21-\x7e]*$/.test(api_key)) {
      throw usageError(
        "bad_key",
        "The key holds spaces, control or non-ASCII characters.",
        "Copy it again; nothing was stored.",
      );
    }
    await this.#change(name, (entry) => ({
      base_url: "",
      api_key: "",
      added_at: timestamp(this.#clock),
      last_used: "",
      ...entry,
      ...(change.base_url !== undefined && { base_url: change.base_url }),
      ...((api_key !== "" || change.api_key === null) && { api_key }),
    }));
  }

  /** Removes a connection with its key. @returns whether there was one */
  async remove(name: string): Promise<boolean> {
    if (!Object.hasOwn(entries(this.#file.read()), name)) return false;
    await this.#file.update((value) => {
      const { [name]: _, ...others } = entries(value);
      return others;
    });
    return true;
  }

  /** Updates `last_used`, at most once an hour; does nothing when there is no such connection. */
  async touch(name: string): Promise<void> {
    const connection = this.get(name);
    if (connection === undefined || isRecent(connection.last_used, this.#clock)) return;
    await this.#change(name, (entry) => ({ ...entry, last_used: timestamp(this.#clock) }));
  }

  #change(
    name: string,
    change: (entry: Record<string, unknown>) => Record<string, unknown>,
  ): Promise<void> {
    return this.#file.update((value) => {
      const all = entries(value);
      const entry = Object.hasOwn(all, name) ? entries(all[name]) : {};
      return { ...all, [name]: change(entry) };
    });
  }
}

/** Whether a `last_used` stamp is less than an hour old; then it is not written again. */
export function isRecent(last_used: string, clock: Clock): boolean {
  const age = clock.now() - Date.parse(last_used);
  return age >= 0 && age < 3_600_000;
}

/** The fields of a JSON object, none for any other value. */
function entries(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}
