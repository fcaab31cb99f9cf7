import { basename, dirname, isAbsolute, join } from "node:path";
import { runProcess } from "../../src/platform/process.ts";
import type { ToolContext, ToolPaths } from "../../src/plugins/api.ts";

/** What a tool handler gets, for tests that call one directly: files of one worktree and nothing else. */
export function toolContext(
  options: { worktree: string; config?: Record<string, unknown>; signal?: AbortSignal },
): ToolContext {
  const { worktree, config = {}, signal = new AbortController().signal } = options;
  return {
    config: { get: (key) => config[key] },
    paths: worktreePaths(Deno.realPathSync(worktree)),
    signal,
    session: "test",
    run: (request) => runProcess(request, signal),
  };
}

function worktreePaths(worktree: string): ToolPaths {
  const contains = (path: string) => path === worktree || path.startsWith(`${worktree}/`);
  const resolve = (path: string) => {
    const real = realPath(isAbsolute(path) ? path : join(worktree, path));
    if (!contains(real)) throw new Error(`${path} is outside the worktree`);
    return real;
  };
  return { worktree, contains, resolve, open: (path, how) => Deno.open(resolve(path), how) };
}

/** The real path of a path whose last components may not exist. */
function realPath(path: string): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    return join(realPath(dirname(path)), basename(path));
  }
}
