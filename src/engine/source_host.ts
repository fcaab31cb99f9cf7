import { resolve } from "node:path";
import type { SourceHost } from "../plugins/api.ts";
import { startChild } from "../platform/process.ts";
import { VERSION } from "../platform/environment.ts";
import type { Workspace } from "./workspace.ts";

/** What a plugin's sources of tools may use of svc. */
export function sourceHost(
  { paths, config, clock, environment, warn }: Pick<
    Workspace,
    "paths" | "config" | "clock" | "environment" | "warn"
  >,
): SourceHost {
  const inherited = new Map([
    ["HOME", environment.get("HOME")],
    ["PATH", environment.get("PATH")],
    ["LANG", environment.get("LANG")],
    ["TMPDIR", environment.get("TMPDIR")],
    ["USER", environment.get("USER")],
  ]);
  const own = [...inherited].filter((pair): pair is [string, string] => pair[1] !== undefined);
  return {
    config,
    user_agent: `svc/${VERSION}`,
    start: ({ command, cwd = ".", env }) =>
      startChild({
        command,
        cwd: resolve(paths.worktree, cwd),
        env: { ...Object.fromEntries(own), ...env },
      }, clock),
    now: () => clock.now(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
    warn,
  };
}
