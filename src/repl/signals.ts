import type { Cancellation } from "./cancellation.ts";

/** Exit codes by the signal that ended the process, as shells report them. */
const CODES = { SIGTERM: 143, SIGHUP: 129 } as const;

/**
 * SIGTERM and SIGHUP end the session as leaving does: what runs is cancelled and logged, and the terminal is
 * given back. SIGINT, sent from elsewhere, cancels what runs.
 */
export function onSignals(
  cancellation: Pick<Cancellation, "cancel">,
): { ending: AbortSignal; code(): number; release(): void } {
  const ending = new AbortController();
  let code = 0;
  const listeners: [Deno.Signal, () => void][] = [
    ["SIGINT", () => void cancellation.cancel()],
    ...Object.entries(CODES).map(([signal, exit]): [Deno.Signal, () => void] => [
      signal as Deno.Signal,
      () => {
        code = exit;
        ending.abort();
        cancellation.cancel();
      },
    ]),
  ];
  for (const [signal, listener] of listeners) Deno.addSignalListener(signal, listener);
  return {
    ending: ending.signal,
    code: () => code,
    release() {
      for (const [signal, listener] of listeners) Deno.removeSignalListener(signal, listener);
    },
  };
}
