import type { Workspace } from "../engine/workspace.ts";
import { SvcError } from "../platform/error.ts";
import { nearest } from "../platform/nearest.ts";
import type { SessionDocument } from "../sessions/schema.ts";

/**
 * The saved session that a name or a `#<id>` stands for.
 *
 * @throws SvcError `no_session` when there is none that loads
 */
export function findSession(
  { sessions, paths }: Workspace,
  given: string,
): { name: string; document: SessionDocument } {
  const name = given.startsWith("#") ? sessions.findById(given) : given;
  const document = name === undefined ? undefined : sessions.read(name);
  // The name is the one that was looked up, since the document may hold any.
  if (name !== undefined && document !== undefined) return { name, document };
  const guess = nearest(given, sessions.list());
  throw new SvcError("no_session", `There is no session "${given}" that can be read.`, {
    hint: guess === undefined
      ? `Sessions are the files of ${paths.sessions}.`
      : `Did you mean "${guess}"?`,
  });
}
