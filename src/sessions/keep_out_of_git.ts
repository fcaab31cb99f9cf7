import { join } from "node:path";
import { lstatIfExists, writeFileAtomic } from "../platform/files.ts";

/**
 * What agents leave behind in `.svc` is not for the project's history: logs quote files, and whoever
 * commits everything would commit them. Settings, roles, plugins and jobs are. The file is made with the
 * first session of a worktree and is the user's from then on.
 */
export function keepOutOfGit(state: string): void {
  const path = join(state, ".gitignore");
  try {
    if (lstatIfExists(path) === undefined) writeFileAtomic(path, LEFT_BEHIND);
  } catch {
    // No session fails for want of it.
  }
}

const LEFT_BEHIND = `# Made by svc with the first session, and yours from then on.
/asks.json
/exports/
/fleet/
/fleet.lock
/fleet.pid
/fleet.state.json
/jobs.daemon.*
/logs/
/memory/
/sessions/
.*.lock
.*.tmp
*.broken-*
`;
