import type { ToolDefinition } from "../plugins/api.ts";
import { commandPrefix } from "./bash_allow.ts";
import { opens } from "./listed_commands.ts";
import { actionOf, isOffered, runsNothing } from "./policy.ts";
import type { Authority } from "./roles.ts";
import type { PolicySettings } from "./settings.ts";

/** One line of `svc permissions`. */
export interface PermissionRow {
  category: string;
  action: string;
  /** A Deno permission that the category needs; empty when none is known. */
  permission: string;
  /** `granted`, `prompt` (not granted, or in part) or `denied`; empty without a permission. */
  state: string;
  /** For an entry of `bash_allow`: the entry, and what it opens beyond the command; see `opens`. */
  entry?: string;
  opens?: string;
}

/** The Deno permissions that each category's tools use. Other categories may use any. */
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
  delegate: [], // the ceiling of a sub-agent covers its tools
  team: [],
  handoff: [],
  plan: [],
};

/** What svc itself needs: plugins and settings, the session log, the provider. */
const OWN: Deno.PermissionName[] = ["read", "write", "net"];

/** The permissions that a headless process may give up. `env` stays: front ends read terminal settings late. */
const REVOCABLE: Deno.PermissionName[] = ["run", "ffi", "sys"];

/** The rows of `svc permissions`: the categories of the settings and of the tools, then svc itself. */
export function report(settings: PolicySettings, tools: ToolDefinition[]): PermissionRow[] {
  const categories = new Set([
    ...Object.keys(settings.actions),
    ...tools.map((tool) => tool.permission),
  ]);
  const rows = [...categories].flatMap((category) => {
    const own = tools.filter(({ permission }) => permission === category);
    const none = settings.read_only && own.length > 0 &&
      !own.some((tool) => isOffered(settings, tool));
    return rowsOf(category, none ? "deny" : actionOf(settings, category), needs(category) ?? []);
  });
  return [...rows, ...rowsOf("(svc)", "allow", OWN), ...listed(settings)];
}

function listed(settings: PolicySettings): PermissionRow[] {
  if (actionOf(settings, "bash") === "deny") return [];
  return settings.bash_allow.flatMap((entry) => {
    const prefix = commandPrefix(entry);
    if (prefix === undefined) return [];
    const [row] = rowsOf("bash_allow", "allow", ["run"]);
    return [{ ...row!, entry, opens: opens(prefix) }];
  });
}

/** How the calls of a process are decided, and which tools it may get. */
export interface UseOptions {
  /** Whether each `ask` is approved. */
  yes: boolean;
  /**
   * Whether external plugins may register further tools, of any category. Default: no. They can use what their
   * category allows; a resolver, or never asking, brings back nothing that the category refuses.
   */
  external?: boolean;
  /** Whether svc itself runs a command, to verify or check the work. Default: no. */
  verifies?: boolean;
}

/**
 * The Deno permissions that no call of a headless run can use. An `ask` is refused there unless `yes` is
 * set; `bash_allow` and a tool's resolver may still allow the call, and a tool that never asks runs.
 */
export function unusable(
  settings: PolicySettings,
  tools: ToolDefinition[],
  { yes, external = false, verifies = false }: UseOptions,
): Deno.PermissionName[] {
  const listed = (category: string) => category === "bash" && settings.bash_allow.length > 0;
  if (external && yes) return []; // further categories would be approved
  const open = external
    ? [...Object.keys(NEEDS), ...Object.keys(settings.actions)].filter((category) => {
      const action = actionOf(settings, category);
      return action === "allow" || (action === "ask" && listed(category));
    })
    : [];
  const usable = (tool: ToolDefinition) =>
    isOffered(settings, tool) && !runsNothing(tool) && (
      yes || actionOf(settings, tool.permission) === "allow" || tool.confirm === false ||
      tool.permission_fn !== undefined ||
      listed(tool.permission)
    );
  const categories = [...open, ...tools.filter(usable).map(({ permission }) => permission)];
  const needed = [...categories, ...verifies ? ["bash"] : []].map(needs);
  return REVOCABLE.filter((name) => !needed.some((names) => names?.includes(name) ?? true));
}

/** The permissions that neither the agent nor any agent that it may start can use. */
export function unusableUnder(
  { own, ceiling }: Pick<Authority, "own" | "ceiling">,
  tools: ToolDefinition[],
  options: UseOptions,
): Deno.PermissionName[] {
  const children = unusable(ceiling, tools, options);
  return unusable(own, tools, options).filter((name) => children.includes(name));
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
