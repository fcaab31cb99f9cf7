import { join } from "node:path";
import { AskStore } from "../../src/asks/store.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { SessionStore } from "../../src/sessions/store.ts";

/** The inbox and the sessions of one worktree in one process. */
export function openInbox(
  state: string,
  clock: Clock,
  warn: (message: string) => void = () => {},
): { asks: AskStore; sessions: SessionStore } {
  const directory = join(state, "sessions");
  const sessions = new SessionStore({ directory, version: "0.1.0", clock, warn });
  return { asks: new AskStore({ state, clock, warn, sessions }), sessions };
}
