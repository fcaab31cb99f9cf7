import type { ToolDefinition } from "../plugins/api.ts";
import type { Authority } from "./carve.ts";
import { actionOf, isOffered } from "./policy.ts";
import type { PolicySettings } from "./settings.ts";

/** One line of `svc permissions`. */
export interface PermissionRow {
  category: string;
  action: string;
  /** The Deno permission behind the category; empty when it needs none that is known. */
  permission: string;
  /** `granted`, `prompt` (not granted, or in part) or `denied`; empty without a permission. */
  state: string;
}

/** The Deno permissions that each category's tools use. A category that is not here may use any. */
const NEEDS: Record<string, Deno.PermissionName[]> = {
  read: ["read"],
  list: ["read"],
  edit: ["write"],
  bash: ["run"],
  vcs: ["run"],
  dev: ["run"],
  web: ["net"],
  mcp: ["net", "run"], // servers are reached over HTTP, or started as programs
  catalog: ["write"],
  ask: [],
  delegate: [], // what an agent is started for shows in the ceiling that it is under
  team: [],
  handoff: [],
};

/** What svc itself cannot do without: plugins and settings, the session log, the provider. */
const OWN: Deno.PermissionName[] = ["read", "write", "net"];

/** What a headless process may give up. `env` stays: front ends read terminal settings late. */
const REVOCABLE: Deno.PermissionName[] = ["run", "ffi", "sys"];

/** The rows of `svc permissions`: each category of the settings and the tools, then svc itself. */
export function report(settings: PolicySettings, tools: ToolDefinition[]): PermissionRow[] {
  const categories = new Set([
    ...Object.keys(settings.actions),
    ...tools.map((tool) => tool.permission),
  ]);
  const rows = [...categories].flatMap((category) =>
    rowsOf(category, actionOf(settings, category), needs(category) ?? [])
  );
  return [...rows, ...rowsOf("(svc)", "allow", OWN)];
}

/**
 * The Deno permissions that no call of a headless run can use. An `ask` is refused there unless `yes`;
 * `bash_allow` and a tool's resolver may still allow it, and a tool that never asks is not refused.
 */
export function unusable(
  settings: PolicySettings,
  tools: ToolDefinition[],
  { yes }: { yes: boolean },
): Deno.PermissionName[] {
  const usable = (tool: ToolDefinition) =>
    isOffered(settings, tool) && (
      yes || actionOf(settings, tool.permission) === "allow" || tool.confirm === false ||
      tool.permission_fn !== undefined ||
      (tool.permission === "bash" && settings.bash_allow.length > 0)
    );
  const needed = tools.filter(usable).map((tool) => needs(tool.permission));
  return REVOCABLE.filter((name) => !needed.some((names) => names?.includes(name) ?? true));
}

/** What {@linkcode unusable} names both for the agent and for those that it may start. */
export function unusableUnder(
  { own, ceiling }: Authority,
  tools: ToolDefinition[],
  options: { yes: boolean },
): Deno.PermissionName[] {
  const below = unusable(ceiling, tools, options);
  return unusable(own, tools, options).filter((name) => below.includes(name));
}

/** Gives up, for the rest of the process, what {@linkcode unusableUnder} names. */
export function withdrawUnusable(
  authority: Authority,
  tools: ToolDefinition[],
  options: { yes: boolean },
): void {
  for (const name of unusableUnder(authority, tools, options)) {
    Deno.permissions.revokeSync({ name });
  }
}

function needs(category: string): Deno.PermissionName[] | undefined {
  return Object.hasOwn(NEEDS, category) ? NEEDS[category] : undefined;
}

function rowsOf(
  category: string,
  action: string,
  permissions: Deno.PermissionName[],
): PermissionRow[] {
  if (permissions.length === 0) return [{ category, action, permission: "", state: "" }];
  return permissions.map((name) => {
    const { state } = Deno.permissions.querySync({ name });
    return { category, action, permission: name, state };
  });
}
