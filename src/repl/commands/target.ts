import { usageError } from "../../platform/error.ts";
import type { Shell } from "../shell.ts";
import type { Target } from "../targets.ts";

/** The session that `--run` names, or that of the focused run; nothing is switched (specification 4.7). */
export async function targetOf(given: string | undefined, shell: Shell): Promise<Target> {
  const { workspace: { sessions }, workspace, conversation, focus } = shell;
  if (given !== undefined) {
    const { resolveTarget } = await import("../targets.ts");
    return await resolveTarget(given, {
      runs: conversation.runs.list(),
      sessions,
      roles: async () => {
        const { EVERYTHING } = await import("../conversation.ts");
        await workspace.load(EVERYTHING);
        return (await workspace.catalog()).list("role").map(({ name }) => name);
      },
    });
  }
  const run = focus.current();
  const session = run?.session ?? conversation.name;
  const document = session === undefined ? undefined : sessions.read(session);
  if (session === undefined || document === undefined) {
    throw usageError(
      "no_target",
      "The session has no turns yet.",
      "See saved ones with: /sessions",
    );
  }
  return { session, run, document };
}
