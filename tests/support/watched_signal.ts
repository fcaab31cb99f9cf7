/** A signal of which a test sees who waits for it. */
export interface WatchedSignal extends Disposable {
  readonly signal: AbortSignal;
  /** Listeners that were added and not removed, and signals that `AbortSignal.any` has made of it. */
  held(): number;
}

export function watchedSignal(): WatchedSignal {
  const { signal } = new AbortController();
  const listeners = new Set<unknown>();
  let derived = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (
    type: string,
    listener: EventListenerOrEventListenerObject,
    options?: AddEventListenerOptions | boolean,
  ) => {
    listeners.add(listener);
    if (typeof options === "object") {
      options.signal?.addEventListener("abort", () => listeners.delete(listener));
    }
    addEventListener.call(signal, type, listener, options);
  };
  signal.removeEventListener = (type: string, listener: EventListenerOrEventListenerObject) => {
    listeners.delete(listener);
    removeEventListener.call(signal, type, listener);
  };
  const { any } = AbortSignal;
  AbortSignal.any = (signals) => {
    if (Array.from(signals).includes(signal)) derived++;
    return any.call(AbortSignal, signals);
  };
  return {
    signal,
    held: () => listeners.size + derived,
    [Symbol.dispose]: () => void (AbortSignal.any = any),
  };
}
