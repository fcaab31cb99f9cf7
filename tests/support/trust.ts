import type { Trust } from "../../src/policy/trust.ts";

/** The variables of an environment in which everything of a worktree is trusted. */
export function trusting(name: string): string | undefined {
  return name === "SVC_TRUST" ? "1" : undefined;
}

/** Accepts every opening. */
export const TRUSTED = { everything: true, all: true, accepts: () => true } as unknown as Trust;
