import type { Clock } from "../../platform/clock.ts";

/** Milliseconds for which a message is not said again. */
const PAUSE = 6 * 3600_000;
/** Messages that are remembered at most. */
const KEPT = 200;

/** Says a message that comes again and again only every six hours: who reads a log wants news. */
export function seldom(clock: Clock, say: (message: string) => void): (message: string) => void {
  const said = new Map<string, number>();
  return (message) => {
    const now = clock.now();
    // A clock that was set back must not silence it until then.
    if (Math.abs(now - (said.get(message) ?? -Infinity)) < PAUSE) return;
    said.delete(message);
    said.set(message, now);
    const [oldest] = said.keys();
    if (said.size > KEPT) said.delete(oldest!);
    say(message);
  };
}
