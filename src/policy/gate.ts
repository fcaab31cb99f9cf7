import type { ToolArguments, ToolDefinition, ToolPaths } from "../plugins/api.ts";
import type { PermissionEntry } from "../sessions/schema.ts";
import type { ConfirmAnswer, Operator } from "./operator.ts";
import type { Decision, Policy } from "./policy.ts";
import type { WorktreeGuard } from "./worktree.ts";

/** Leave for calls of a category, and who gave it: for one call, or as long as the run lasts. */
export interface Leave {
  scope: ConfirmAnswer["scope"];
  by: string;
}

/**
 * What one agent was granted; no other agent gets any of it.
 *
 * The `always` answers of a session: an answer covers the causes it was given for and nothing near
 * them: for a category, the tool as it describes itself; for a shell command or a call that the tool's resolver asks about, the
 * same tool with the very same arguments; for a place outside the worktree or a protected one, the same
 * tool and that real path.
 *
 * Leave that was asked for (specification 4.8 `ask`, kind `permission`): it opens a category as far as the
 * agent's limit does.
 */
export class Grants {
  readonly #grants = new Map<string, string>();
  readonly #leave = new Map<string, Leave>();

  add(decision: Decision, by: string): void {
    for (const key of decision.grants) this.#grants.set(key, by);
  }

  /** Who granted all that a call asks for; undefined when something is left to ask. */
  granter(decision: Decision): string | undefined {
    const granters = decision.grants.map((key) => this.#grants.get(key));
    return granters.includes(undefined) ? undefined : granters[0];
  }

  /** Leave for one call of a category does not take away leave for all of them. */
  give(category: string, leave: Leave): void {
    if (this.#leave.get(category)?.scope !== "always") this.#leave.set(category, leave);
  }

  has(category: string): boolean {
    return this.#leave.has(category);
  }

  /** Leave for a call of a category; what was for one call is used up. */
  take(category: string): Leave | undefined {
    const leave = this.#leave.get(category);
    if (leave?.scope === "once") this.#leave.delete(category);
    return leave;
  }

  /** Drops leave for one call that was not used. */
  endTurn(): void {
    for (const [category, { scope }] of this.#leave) {
      if (scope === "once") this.#leave.delete(category);
    }
  }
}

/** How a call was decided. */
export interface Authorization {
  granted: boolean;
  /** The call can do nothing: nobody was asked, and there is nothing for the audit. */
  futile: boolean;
  /** For the session's audit (specification 2.4). */
  entry: Omit<PermissionEntry, "timestamp">;
  reason: string;
  /** Result text for the model when the call was not granted; empty otherwise. */
  message: string;
  /** File access for this very call; of the worktree only, when it was not granted. */
  paths: ToolPaths;
}

export interface AuthorizationRequest {
  tool: ToolDefinition;
  args: ToolArguments;
  policy: Policy;
  operator: Operator;
  grants: Grants;
  guard: WorktreeGuard;
  /**
   * What will run, for whoever approves it; `paths` reaches the places that are asked for. Begins with `Error:`
   * when the call can do nothing.
   */
  preview(paths: ToolPaths): Promise<string>;
  /** Why this very call is denied although the policy would let it through; empty when it is not. */
  refuse?(): Promise<string>;
  /** Why somebody has to approve this very call although the policy would let it through; empty: nobody. */
  demand?(): Promise<string>;
  run: number;
  session: string;
  signal: AbortSignal;
}

/**
 * Decides over one call and asks the operator where the policy says so (specification 5.3). When
 * `signal` has aborted, or does while somebody is being asked, the call counts as declined.
 */
export async function authorize(request: AuthorizationRequest): Promise<Authorization> {
  const { tool, args, policy, grants, guard, signal } = request;
  const { resolved, leave } = underLeave(request, policy.resolve(tool, args));
  const refusing = resolved.action === "deny" ? "" : await request.refuse?.() ?? "";
  const demand = resolved.action === "deny" || refusing !== ""
    ? ""
    : await request.demand?.() ?? "";
  const decision: Decision = refusing !== ""
    ? { ...resolved, action: "deny", reason: refusing }
    : demand !== ""
    ? { ...resolved, action: "ask", reason: demand, grants: [] } // approved for this call alone
    : resolved;
  const { action, path, reason } = decision;
  const settle = (
    outcome: PermissionEntry["decision"],
    message: string,
    answer: Partial<PermissionEntry> = {},
  ): Authorization => {
    if (outcome !== "granted" && leave !== undefined) grants.give(tool.permission, leave);
    return {
      granted: outcome === "granted",
      futile: false,
      // Leave is an ask that was answered before.
      entry: {
        tool: tool.name,
        action: leave === undefined ? action : "ask",
        decision: outcome,
        path,
        ...answer,
      },
      reason,
      message,
      paths: guard.callPaths(outcome === "granted" ? decision.outside : []),
    };
  };

  if (action === "deny") return settle("denied", refusal(tool, reason));
  // `granted` says that a call ran (2.4), and what is left of a cancelled batch does not.
  const ended = () =>
    settle("declined", `[cancelled] The turn ended before ${tool.name} was to run`);
  if (signal.aborted) return ended();
  if (action === "allow") {
    return settle("granted", "", leave && { scope: leave.scope, granted_by: leave.by });
  }
  const granter = grants.granter(decision);
  if (granter !== undefined) {
    return settle("granted", "", { scope: "always", granted_by: granter });
  }
  const answer = await beforeAbort(() => confirm(request, decision), signal);
  if (answer === undefined) return ended();
  if (typeof answer === "string") {
    return { ...settle("declined", answer), futile: true };
  }
  const { granted, scope, by } = answer;
  if (granted) {
    if (scope === "always") grants.add(decision, by);
    return settle("granted", "", { scope, granted_by: by });
  }
  const message = by === "operator"
    ? `[cancelled] User declined the ${tool.name} call`
    : refusal(tool, `${reason}, and nobody is there to approve it`);
  return settle("declined", message);
}

/** What leave makes of a call that would not run without it; the leave is taken when it is of use. */
function underLeave(
  { tool, args, policy, grants }: AuthorizationRequest,
  resolved: Decision,
): { resolved: Decision; leave?: Leave } {
  if (resolved.action === "allow" || !grants.has(tool.permission)) return { resolved };
  if (resolved.action === "ask" && grants.granter(resolved) !== undefined) return { resolved };
  const opened = policy.resolve(tool, args, true);
  const left = opened.action === "ask" && opened.grants.length === resolved.grants.length;
  if (opened.action === "deny" || left) return { resolved };
  return { resolved: opened, leave: grants.take(tool.permission) };
}

/**
 * What the operator answers. A call that can do nothing is not put to anybody: the text says why, and since that
 * may quote the file, only of what the agent may read anyway.
 */
async function confirm(
  request: AuthorizationRequest,
  decision: Decision,
): Promise<ConfirmAnswer | string> {
  const { tool, args, policy, operator, guard, preview, run, session, signal } = request;
  const shown = await preview(guard.callPaths(decision.outside));
  signal.throwIfAborted(); // nobody is asked about a turn that is over
  const readable = decision.outside.length === 0 && policy.reads();
  if (readable && shown.startsWith("Error:")) return shown;
  return await operator.confirm({
    tool: tool.name,
    input: args,
    category: decision.category,
    reason: decision.reason,
    preview: shown,
    run,
    session,
    signal,
  });
}

function refusal(tool: ToolDefinition, reason: string): string {
  return `Error: permission denied: ${tool.name} (category ${tool.permission}): ${reason}. ` +
    "Do not retry this call; find another way or say what is missing.";
}

/** What `ask` comes to, or undefined when the signal aborts first. */
async function beforeAbort<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  if (signal.aborted) return undefined;
  const settled = new AbortController();
  const aborted = new Promise<undefined>((resolve) => {
    const options = { once: true, signal: settled.signal };
    signal.addEventListener("abort", () => resolve(undefined), options);
  });
  try {
    return await Promise.race([ask(), aborted]);
  } finally {
    settled.abort();
  }
}
