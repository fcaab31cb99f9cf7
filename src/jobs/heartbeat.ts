import type { Clock } from "../platform/clock.ts";

/** Milliseconds between two calls at least, and those that one may take. */
const PAUSE = 60_000;
const LIMIT = 5000;

/**
 * Calls the address of the setting `jobs.heartbeat_url` after healthy ticks, at most once a minute, so that a
 * dead-man service notices when the scheduler no longer works. No tick waits for a call. Redirects are not followed.
 */
export class Heartbeat {
  readonly #clock: Clock;
  readonly #warn: (message: string) => void;
  #called = -Infinity;
  #call = Promise.resolve();

  /** @param options.warn receives failures, which name the host only, since the rest may be secret */
  constructor({ clock, warn }: { clock: Clock; warn: (message: string) => void }) {
    this.#clock = clock;
    this.#warn = warn;
  }

  /** Begins a call, unless one was made less than a minute ago; an empty address does nothing. */
  beat(url: string): void {
    const now = this.#clock.now();
    if (url === "" || Math.abs(now - this.#called) < PAUSE) return;
    this.#called = now;
    this.#call = call(url).catch((error) => this.#warn(error.message));
  }

  /** Resolves when no call is under way. */
  async idle(): Promise<void> {
    await this.#call;
  }
}

/** @throws Error when the address does not answer with a status of 200 to 299 */
async function call(url: string): Promise<void> {
  const { protocol, host } = URL.canParse(url) ? new URL(url) : { protocol: "", host: "" };
  if (protocol !== "https:" && protocol !== "http:") {
    throw new Error("jobs.heartbeat_url is no http or https address");
  }
  const request = { redirect: "manual", signal: AbortSignal.timeout(LIMIT) } as const;
  const response = await fetch(url, request).catch(() => undefined);
  await response?.body?.cancel();
  if (response?.ok) return;
  const fault = response === undefined ? "cannot be reached" : `answers ${response.status}`;
  throw new Error(`the heartbeat address at ${host} ${fault}`);
}
