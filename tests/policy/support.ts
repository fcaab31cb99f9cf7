import type { Action, ConfigView, ToolDefinition } from "../../src/plugins/api.ts";
import type { Ceiling } from "../../src/policy/roles.ts";
import type { PolicySettings } from "../../src/policy/settings.ts";
import { WorktreeGuard } from "../../src/policy/paths.ts";

export const ACTIONS: Action[] = ["allow", "ask", "deny"];

/** Directories of a test: a worktree, a place outside of it, and the user's settings. */
export interface Site extends Disposable {
  root: string;
  worktree: string;
  outside: string;
  user: string;
  guard: WorktreeGuard;
}

/** A site on the real disk; `home` puts the user's settings into the worktree. */
export function site({ home = false } = {}): Site {
  const root = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "svc-policy-" }));
  const worktree = `${root}/work`;
  const outside = `${root}/outside`;
  const user = `${home ? worktree : root}/.config/svc`;
  for (const directory of [`${worktree}/src`, outside, user]) {
    Deno.mkdirSync(directory, { recursive: true });
  }
  return {
    root,
    worktree,
    outside,
    user,
    guard: new WorktreeGuard({ worktree, state: `${worktree}/.svc`, user }),
    [Symbol.dispose]: () => Deno.removeSync(root, { recursive: true }),
  };
}

export function config(values: Record<string, unknown> = {}): ConfigView {
  return { get: (key) => values[key] };
}

export function settings(given: Partial<PolicySettings> = {}): PolicySettings {
  const actions: Record<string, Action> = {
    read: "allow",
    list: "allow",
    edit: "allow",
    bash: "ask",
    ...given.actions,
  };
  const lists = { bash_allow: [], allow: [], deny: [], warnings: [] };
  return { mode: "build", read_only: false, ...lists, ...given, actions };
}

/** A tool with a path and a command argument, and the given changes. */
export function tool(given: Partial<ToolDefinition> = {}): ToolDefinition {
  return {
    name: "file_write",
    description: "",
    permission: "edit",
    path_arg: "path",
    parameters: {
      type: "object",
      properties: { path: { type: "string" }, other: { type: "string" }, command: {} },
    },
    handler: () => "done",
    ...given,
  };
}

/** The ceiling of a root agent with these settings. */
export function under(settings: PolicySettings): Ceiling {
  return { ceiling: settings, unopened: settings, closed: [] };
}
