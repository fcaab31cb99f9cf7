import type { Run } from "../engine/runs.ts";
import { SvcError } from "../platform/error.ts";
import type { SessionDocument } from "../sessions/schema.ts";
import type { SessionStore } from "../sessions/store.ts";

/** A resolved `--run <target>`: a saved session, and its live run if there is one. */
export interface Target {
  session: string;
  run?: Run;
  document: SessionDocument;
}

/** The runs and sessions in which targets are looked up. */
export interface Places {
  /** The live runs in the order of their creation. */
  runs: readonly Run[];
  sessions: Pick<SessionStore, "read" | "findById" | "list" | "current">;
  /** The names of the roles there are. */
  roles(): Promise<string[]>;
}

/** Number of newest sessions that are searched for one of a role. */
const ROLE_DEPTH = 200;

/**
 * Resolves a target (specification 4.7): `#<id>` of a session, `#<run>`, a role, `session:<name>` or a bare
 * name. Does not change the focus or the session.
 *
 * @throws SvcError `no_target`
 */
export async function resolveTarget(given: string, places: Places): Promise<Target> {
  await places.sessions.current(given);
  const found = await find(given, places);
  await places.sessions.current(found?.session);
  const document = found === undefined ? undefined : places.sessions.read(found.session);
  if (found !== undefined && document !== undefined) return { ...found, document };
  throw new SvcError("no_target", `There is no run or session ${JSON.stringify(given)}.`, {
    hint: "A target is #<session id>, #<run>, a role, session:<name>, or a session's name.",
    exit: 2,
  });
}

async function find(given: string, places: Places): Promise<Omit<Target, "document"> | undefined> {
  const { runs, sessions } = places;
  if (given.startsWith("session:")) return saved(given.slice("session:".length));
  if (given.startsWith("#")) {
    const handle = given.slice(1);
    const live = runs.findLast(({ session_id }) => session_id !== "" && session_id === handle) ??
      runs.find(({ id }) => String(id) === handle);
    return live === undefined ? saved(sessions.findById(handle)) : ofRun(live);
  }
  const live = runs.findLast(({ role }) => role !== "" && role === given);
  if (live !== undefined) return ofRun(live);
  if (sessions.read(given) !== undefined) return saved(given);
  if ((await places.roles()).includes(given)) return saved(newestOf(given, sessions));
  return undefined;
}

function ofRun(run: Run): Omit<Target, "document"> {
  return { session: run.session, run };
}

function saved(session: string | undefined): { session: string } | undefined {
  return session === undefined ? undefined : { session };
}

/** The newest session owned by a role; generated names contain their creation time. */
function newestOf(role: string, sessions: Places["sessions"]): string | undefined {
  const time = (name: string) => name.slice(name.indexOf("_") + 1);
  return sessions.list()
    .filter((name) => /^(ses|sub|job)_\d{8}_\d{6}_/.test(name))
    .sort((one, other) => time(other) < time(one) ? -1 : 1)
    .slice(0, ROLE_DEPTH)
    .find((name) => sessions.read(name)?.role === role);
}
