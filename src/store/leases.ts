import { systemClock } from "../platform/clock.ts";
import { SvcError } from "../platform/error.ts";
import type { Database, Events, Lease, Leases } from "./port.ts";

/** Seconds after which a lease that is not renewed may be taken over, by PostgreSQL's clock. */
const TERM = 15;
/** Milliseconds between two renewals. */
const RENEWAL = 5000;
/** Milliseconds after which a lease that another holder has is tried again, if no event comes before. */
const RETRY = 1000;

const EXPIRES = `clock_timestamp() + interval '${TERM} seconds'`;

/**
 * Has a statement not wait for the disk. When PostgreSQL crashes at this moment, a lease that was released is free
 * later, and one that was renewed earlier.
 */
const ASYNC = "set_config('synchronous_commit', 'off', true)";

interface Held extends Lease {
  readonly ended: AbortController;
}

/** Leases as rows. Only PostgreSQL's clock counts: that of a machine may be off by minutes. */
export class PostgresLeases implements Leases {
  readonly holder: string;
  readonly #project: string;
  readonly #database: Database;
  readonly #events: Events;
  readonly #held = new Map<string, Held>();
  readonly #closed = new AbortController();
  #renewing: Promise<void> | undefined;

  constructor(project: string, holder: string, database: Database, events: Events) {
    this.#project = project;
    this.holder = holder;
    this.#database = database;
    this.#events = events;
  }

  async take(name: string): Promise<Lease | undefined> {
    // Taken by this process: it would not see the row expire.
    if (this.#held.has(name)) return undefined;
    const rows = await this.#database.transaction((query) =>
      query<{ token: number }>(
        `INSERT INTO svc.leases (project, name, token, holder, expires)
          VALUES ($1, $2, nextval('svc.tokens'), $3, ${EXPIRES})
          ON CONFLICT (project, name) DO UPDATE
            SET token = excluded.token, holder = excluded.holder, expires = excluded.expires
            WHERE leases.expires <= clock_timestamp()
          RETURNING token`,
        [this.#project, name, this.holder],
      )
    );
    const token = rows[0]?.token;
    if (token === undefined) return undefined;
    const ended = new AbortController();
    const lease: Held = {
      name,
      token,
      ended,
      lost: ended.signal,
      release: () => this.#release(lease),
    };
    this.#held.set(name, lease);
    this.#renewing ??= this.#renew();
    return lease;
  }

  async wait(name: string, signal?: AbortSignal): Promise<Lease> {
    let wake = () => {};
    using _ = await this.#events.on("lease", ({ key }) => {
      if (key === undefined || key === name) wake();
    });
    while (true) {
      const woken = new AbortController();
      wake = () => woken.abort();
      signal?.throwIfAborted();
      const lease = await this.take(name);
      if (lease !== undefined) return lease;
      const either = signal === undefined ? woken.signal : AbortSignal.any([woken.signal, signal]);
      await systemClock.sleep(RETRY, either).catch(() => {});
    }
  }

  async held(prefix: string): Promise<{ name: string; holder: string; token: number }[]> {
    return await this.#database.query(
      `SELECT name, holder, token FROM svc.leases
        WHERE project = $1 AND starts_with(name, $2) AND expires > clock_timestamp() ORDER BY name`,
      [this.#project, prefix],
    );
  }

  /** Releases all leases. */
  async close(): Promise<void> {
    this.#closed.abort();
    await Promise.allSettled([...this.#held.values()].map((lease) => lease.release()));
    await this.#renewing;
  }

  async #release({ name, token }: Held): Promise<void> {
    if (this.#held.get(name)?.token !== token) return;
    this.#held.delete(name);
    await this.#database.transaction(async (query) => {
      const freed = await query(
        `DELETE FROM svc.leases WHERE project = $1 AND name = $2 AND token = $3 RETURNING ${ASYNC}`,
        [this.#project, name, token],
      );
      if (freed.length > 0) await this.#events.notify({ kind: "lease", key: name }, query);
    });
  }

  /** Renews all leases until none is held. A lease that has another token now is lost. */
  async #renew(): Promise<void> {
    const { signal } = this.#closed;
    while (this.#held.size > 0) {
      await systemClock.sleep(RENEWAL, signal).catch(() => {});
      if (signal.aborted) break;
      await this.renew().catch(() => {}); // the next round tries again
    }
    this.#renewing = undefined;
  }

  /** Renews all leases once. */
  async renew(): Promise<void> {
    const leases = [...this.#held.values()];
    const rows = await this.#database.query<{ token: number }>(
      `UPDATE svc.leases SET expires = ${EXPIRES} WHERE project = $1 AND token = ANY($2) RETURNING token, ${ASYNC}`,
      [this.#project, leases.map(({ token }) => token)],
    );
    const kept = new Set(rows.map(({ token }) => token));
    for (const lease of leases) {
      if (kept.has(lease.token) || this.#held.get(lease.name) !== lease) continue;
      this.#held.delete(lease.name);
      lease.ended.abort(leaseLost(lease.name));
    }
  }
}

/** The error for a write on behalf of a lease that another holder has taken over. */
export function leaseLost(name: string): SvcError {
  return new SvcError(
    "lease_lost",
    `Another process has taken over ${name}: this one did not answer for ${TERM} seconds.`,
  );
}
