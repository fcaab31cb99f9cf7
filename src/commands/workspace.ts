import { Workspace } from "../engine/workspace.ts";
import { systemClock } from "../platform/clock.ts";
import type { Paths } from "../platform/environment.ts";
import { nearest, type SvcError, usageError } from "../platform/error.ts";
import type { SessionDocument } from "../sessions/schema.ts";
import { Trust } from "../policy/trust.ts";
import type { Io } from "./io.ts";

/** Opens the worktree of `--path`, or returns the open one; its warnings are printed as notes. */
export function openWorkspace(
  path: string,
  io: Io,
  overrides?: Record<string, unknown>,
  trusted?: boolean,
): Workspace {
  if (io.live !== undefined && path === "" && overrides === undefined && !trusted) return io.live;
  return Workspace.open({
    path: path || io.environment.cwd,
    environment: io.environment,
    warn: (message) => io.note(`warning: ${message}`),
    overrides,
    trusted,
  });
}

/**
 * Opens a worktree as {@linkcode openWorkspace} does. With a store, it is connected, and the copy of what machines share
 * is up to date.
 *
 * @throws SvcError as `StoreLink.open` (exit 2)
 */
export async function openShared(...args: Parameters<typeof openWorkspace>): Promise<Workspace> {
  const workspace = openWorkspace(...args);
  await workspace.store?.refresh();
  return workspace;
}

/** What the user has accepted of a worktree that is not open. */
export function openTrust(paths: Paths, { environment, note }: Io, all = false): Trust {
  const warn = (message: string) => note(`warning: ${message}`);
  return new Trust({ paths, environment, clock: systemClock, warn, all });
}

/**
 * Looks up a saved session by its name or a handle.
 *
 * @throws SvcError `no_session` (exit 2) when none exists or it cannot be read
 */
export async function findSession(
  workspace: Workspace,
  given: string,
): Promise<{ name: string; document: SessionDocument }> {
  const { sessions } = workspace;
  const name = await sessions.locate(given);
  const document = sessions.read(name);
  if (document !== undefined) return { name, document }; // the name in the document is not trusted
  throw noSession(given, workspace);
}

/** The error for an unknown session; one in an old format reads as not found (specification 4.7). */
export function noSession(given: string, { sessions }: Workspace): SvcError {
  const all = sessions.list();
  if (all.includes(given)) {
    return usageError(
      "no_session",
      `Session ${JSON.stringify(given.slice(0, 80))} cannot be read.`,
      "Its file stays as it is. One of an earlier format is kept for reading by hand.",
    );
  }
  const guess = nearest(given, all);
  return usageError(
    "no_session",
    `There is no session ${JSON.stringify(given.slice(0, 80))} that can be read.`,
    guess === undefined ? "See them with: svc sessions" : `Did you mean "${guess}"?`,
  );
}
