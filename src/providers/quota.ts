import { join } from "node:path";
import * as z from "zod/mini";
import { type Clock, timestamp } from "../platform/clock.ts";
import { RegistryFile } from "../platform/registry_file.ts";
import type { QuotaGate } from "../plugins/api.ts";

/** When a backend announced a time, and that time, as ISO 8601; by address and model. */
const quotas = z.record(z.string(), z.object({ announced_at: z.string(), opens_at: z.string() }));
type Quotas = z.infer<typeof quotas>;

/** Milliseconds for which the file need not be read again. */
const FRESH = 1000;

/**
 * `.svc/quota.json`: when backends that have announced a time may be asked again, so that no process of the worktree
 * asks them before. A user who has bought more quota removes the file.
 */
export class QuotaStore {
  readonly #file: RegistryFile;
  readonly #clock: Clock;
  /** The file as it was read last, at most a second ago. */
  #read: { at: number; quotas: Quotas } | undefined;

  constructor(state: string, clock: Clock, warn: (message: string) => void) {
    this.#file = new RegistryFile(join(state, "quota.json"), clock, warn);
    this.#clock = clock;
  }

  /** The gate of a model at an address. */
  gate(base_url: string, model: string): QuotaGate {
    const name = `${base_url} ${model}`;
    return {
      opens_at: () => Date.parse(this.#quotas()[name]?.opens_at ?? "") || 0,
      close: async (until) => {
        const opens_at = new Date(until).toISOString();
        const quota = { announced_at: timestamp(this.#clock), opens_at };
        this.#read = undefined;
        try {
          await this.#file.update((value) => ({ ...this.#valid(value), [name]: quota }));
        } catch {
          // The state cannot be written: this process keeps to the time all the same.
        }
      },
    };
  }

  #quotas(): Quotas {
    const at = this.#clock.now();
    if (this.#read === undefined || Math.abs(at - this.#read.at) >= FRESH) {
      this.#read = { at, quotas: this.#valid(this.#file.read()) };
    }
    return this.#read.quotas;
  }

  /** The times that are not over. One that was announced in the future comes from another clock. */
  #valid(value: unknown): Quotas {
    const { success, data } = quotas.safeParse(value);
    const now = timestamp(this.#clock);
    const valid = Object.entries(success ? data : {})
      .filter(([, { announced_at, opens_at }]) => announced_at <= now && opens_at > now);
    return Object.fromEntries(valid);
  }
}
