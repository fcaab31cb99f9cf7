import { usageError } from "../../platform/error.ts";
import type { Backend } from "../../providers/resolve.ts";
import type { Session } from "../../sessions/session.ts";
import type { Run, RunRegistry } from "./runs.ts";
import type { Workspace } from "../workspace.ts";

/** A session to go on in, and its run when it is one of this tree. */
export interface Target {
  session: string;
  run?: Run;
}

/**
 * What `#<run>`, `#<id>` or a session's name stands for that an agent wants to resume.
 *
 * @param lineage names of the sessions from the root's to the agent's own
 * @throws SvcError (exit 2) when there is no such run or session, it is one of the lineage, or it has not
 * finished yet
 */
export function resumed(
  handle: string,
  { workspace: { sessions }, runs }: { workspace: Workspace; runs: RunRegistry },
  lineage: readonly string[],
): Target {
  const run = runs.resolve(handle);
  const session = run?.session ?? sessions.findById(handle) ?? handle.replace(/^session:/, "");
  if (lineage.includes(session)) {
    throw usageError(
      "cycle",
      `${session} is this agent's own session, or that of one it works for, and cannot be resumed.`,
    );
  }
  if (runs.list().some((each) => each.session === session && each.status === "running")) {
    throw usageError("run_busy", `The run in session ${session} has not finished yet.`);
  }
  if (sessions.read(session) === undefined) {
    throw usageError("unknown_run", `There is no run or session ${JSON.stringify(handle)}.`);
  }
  return { session, run };
}

/** Has a session summarised before an agent goes on in it. */
export async function compactFirst(
  workspace: Workspace,
  session: Session,
  backend: Backend,
  signal: AbortSignal,
): Promise<void> {
  const { compact } = await import("../compaction.ts");
  const provider = workspace.connect(backend, session.id || session.name);
  try {
    await compact({ provider, session, keep: workspace.config.get("compact_keep"), signal });
  } finally {
    await provider.close?.();
  }
}
