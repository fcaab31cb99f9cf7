import { join } from "node:path";
import { lstatIfExists } from "../platform/files.ts";
import type { Shell } from "./shell.ts";

/** The work that goes on after a turn, for its footer: agents, jobs of this worktree, memories. */
export async function backgroundWork(
  { workspace, conversation, focus }: Shell,
): Promise<() => string[]> {
  const jobs = lstatIfExists(join(workspace.paths.state, "jobs.json"));
  const context = jobs && await import("../jobs/context.ts");
  const register = context?.jobContext(workspace).register;
  return () => {
    const agents = conversation.runs.list()
      .filter(({ id, status }) => id !== focus.run && status === "running")
      .map(({ id, role }) => `#${id} ${role}`.trim());
    const running = register?.list().filter(({ status }) => status === "executing") ?? [];
    return [
      ...agents.length === 0 ? [] : [`running: ${agents.join(" ")}`],
      ...running.length === 0 ? [] : [`job ${running.map(({ name }) => name).join(", ")}`],
      ...workspace.background.names,
    ];
  };
}
