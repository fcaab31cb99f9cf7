import { createHash } from "node:crypto";
import { jsonOr } from "../platform/files.ts";
import type { Events, Query, StoreEvent } from "./port.ts";
import type { Postgres } from "./postgres.ts";

/** Events of a project: notifications of a channel whose name is made of the project's. */
export class PostgresEvents implements Events {
  readonly #database: Postgres;
  readonly #channel: string;
  readonly #listeners = new Map<string, Set<(event: StoreEvent) => void>>();
  #listening: Promise<Disposable> | undefined;

  constructor(project: string, database: Postgres) {
    this.#database = database;
    this.#channel = `svc_${createHash("sha256").update(project).digest("hex").slice(0, 16)}`;
  }

  async notify(event: StoreEvent, query: Query = this.#database.query): Promise<void> {
    await query("SELECT pg_notify($1, $2)", [this.#channel, JSON.stringify(event)]);
  }

  async on(kind: string, listener: (event: StoreEvent) => void): Promise<Disposable> {
    const listeners = this.#listeners.get(kind) ?? new Set();
    this.#listeners.set(kind, listeners);
    listeners.add(listener);
    this.#listening ??= this.#database.listen(this.#channel, {
      notified: (payload) => {
        const event: StoreEvent | undefined = jsonOr(payload, undefined);
        for (const each of [...this.#listeners.get(event?.kind ?? "") ?? []]) {
          try {
            each(event!);
          } catch {
            // Any user of the database can send one, and a svc of another version.
          }
        }
      },
      resumed: () => {
        for (const [kind, all] of this.#listeners) for (const each of [...all]) each({ kind });
      },
    });
    try {
      await this.#listening;
    } catch (error) {
      listeners.delete(listener);
      this.#listening = undefined;
      throw error;
    }
    return { [Symbol.dispose]: () => listeners.delete(listener) };
  }
}
