import { join } from "node:path";
import * as z from "zod/mini";
import { type Clock, timestamp } from "../platform/clock.ts";
import { RegistryFile } from "../platform/registry_file.ts";
import type { QuotaGate } from "../plugins/api.ts";

/** The times by address and model, as ISO 8601. */
const quotas = z.record(z.string(), z.string());

/**
 * `.svc/quota.json`: when backends that have announced a time may be asked again, so that no process of the worktree
 * asks them before. A user who has bought more quota removes the file.
 */
export class QuotaStore {
  readonly #file: RegistryFile;
  readonly #clock: Clock;

  constructor(state: string, clock: Clock, warn: (message: string) => void) {
    this.#file = new RegistryFile(join(state, "quota.json"), clock, warn);
    this.#clock = clock;
  }

  /** The gate of a model at an address. */
  gate(base_url: string, model: string): QuotaGate {
    const name = `${base_url} ${model}`;
    return {
      opens_at: () => Date.parse(entries(this.#file.read())[name] ?? "") || 0,
      close: async (until) => {
        try {
          await this.#file.update((value) => {
            const now = timestamp(this.#clock);
            const later = Object.entries(entries(value)).filter(([, opens]) => opens > now);
            return { ...Object.fromEntries(later), [name]: new Date(until).toISOString() };
          });
        } catch {
          // The state cannot be written: this process keeps to the time all the same.
        }
      },
    };
  }
}

function entries(value: unknown): Record<string, string> {
  const { success, data } = quotas.safeParse(value);
  return success ? data : {};
}
