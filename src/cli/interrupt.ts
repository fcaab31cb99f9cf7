/** Kept from the start: plugins find another function there. */
const { exit } = Deno;

/** Turns the first SIGINT or SIGTERM into an abort; the second one ends the process at once. */
export function onInterrupt(): { signal: AbortSignal; release(): void } {
  const controller = new AbortController();
  const interrupt = () => {
    if (controller.signal.aborted) exit(130);
    controller.abort(new DOMException("Interrupted.", "AbortError"));
  };
  const signals: Deno.Signal[] = ["SIGINT", "SIGTERM"];
  for (const signal of signals) Deno.addSignalListener(signal, interrupt);
  return {
    signal: controller.signal,
    release() {
      for (const signal of signals) Deno.removeSignalListener(signal, interrupt);
    },
  };
}
