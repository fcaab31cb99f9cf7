import type { Workspace } from "../engine/workspace.ts";
import { type SvcError, usageError } from "../platform/error.ts";
import { nearest } from "../platform/nearest.ts";
import type { SessionDocument } from "../sessions/schema.ts";

/**
 * The saved session that a name or a `#<id>` stands for.
 *
 * @throws SvcError `no_session` (exit 2) when there is none that loads
 */
export function findSession(
  workspace: Workspace,
  given: string,
): { name: string; document: SessionDocument } {
  const { sessions } = workspace;
  const name = given.startsWith("#") ? sessions.findById(given) : given;
  const document = name === undefined ? undefined : sessions.read(name);
  // The name is the one that was looked up, since the document may hold any.
  if (name !== undefined && document !== undefined) return { name, document };
  throw noSession(given, workspace);
}

/** The error for a name or a `#<id>` that no session has; one in an old format reads as not found (4.7). */
export function noSession(given: string, { sessions, paths }: Workspace): SvcError {
  const guess = nearest(given, sessions.list());
  return usageError(
    "no_session",
    `There is no session ${JSON.stringify(given.slice(0, 80))} that can be read.`,
    guess === undefined
      ? `Sessions are the files of ${paths.sessions}; /sessions lists them in the terminal session.`
      : `Did you mean "${guess}"?`,
  );
}
