import { runProcess } from "../../src/platform/process.ts";
import type { ToolContext } from "../../src/plugins/api.ts";
import { WorktreeGuard } from "../../src/policy/paths.ts";

/** What a tool handler gets, for tests that call one directly: the files of one worktree, unapproved. */
export function toolContext(
  options: { worktree: string; config?: Record<string, unknown>; signal?: AbortSignal },
): ToolContext {
  const { worktree, config = {}, signal = new AbortController().signal } = options;
  const guard = new WorktreeGuard({
    worktree,
    state: `${worktree}/.svc`,
    user: `${worktree}/.config/svc`,
  });
  const paths = guard.callPaths([]);
  return {
    config: { get: (key) => config[key] },
    // A plain object, so that a test can replace one of the methods.
    paths: {
      worktree: paths.worktree,
      resolve: (path) => paths.resolve(path),
      open: (path, how) => paths.open(path, how),
      contains: (path) => paths.contains(path),
    },
    signal,
    max_result: Number(config.tool_max_result_chars) || undefined,
    session: "test",
    key: () => "",
    run: (request) => runProcess(request, signal),
  };
}
