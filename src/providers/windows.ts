import type { Clock } from "../platform/clock.ts";
import type { Provider } from "../plugins/api.ts";

/** Milliseconds after which a backend is asked again: a local one may have been started anew with another window. */
const LASTS = 600_000;

/** The context windows of models as their backends name them, for all turns of a workspace. */
export class NamedWindows {
  readonly #clock: Clock;
  readonly #known = new Map<string, { asked_at: number; window: number | undefined }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The tokens that a conversation with the provider's model may have; undefined: its backend does not say. */
  async of(provider: Provider, signal: AbortSignal): Promise<number | undefined> {
    const name = `${provider.name} ${provider.base_url} ${provider.model}`;
    const known = this.#known.get(name);
    const asked_at = this.#clock.now();
    if (known !== undefined && Math.abs(asked_at - known.asked_at) < LASTS) return known.window;
    const window = await provider.context_window?.(signal).catch(() => undefined);
    if (!signal.aborted) this.#known.set(name, { asked_at, window });
    return window;
  }
}
