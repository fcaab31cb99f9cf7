import type { ToolArguments, ToolDefinition, ToolPaths } from "../plugins/api.ts";
import type { PermissionEntry } from "../sessions/schema.ts";
import type { ConfirmAnswer, Operator } from "./operator.ts";
import type { Decision, Policy } from "./policy.ts";
import type { PathContext, WorktreeGuard } from "./paths.ts";

/** How the reason of a call ends that is refused because no operator can approve it. */
export const UNATTENDED = "nobody is there to approve it";

/** A permission grant for calls of a category. */
export interface PermissionGrant {
  /** `once`: for one call; `always`: for the rest of the run. */
  scope: ConfirmAnswer["scope"];
  /** Who granted it; see {@linkcode ConfirmAnswer.by}. */
  by: string;
}

/**
 * The approvals and permission grants of one agent. They apply to no other agent.
 *
 * Approvals are the `always` answers of a session. An answer covers only the causes it was given for: for a
 * category, the same tool with the same description and parameters; for a shell command or a call that
 * the tool's resolver asks about, the same tool with the same arguments; for a path outside the worktree
 * or a protected one, the same tool and real path.
 *
 * Permission grants are requested with the tool `ask` (specification 4.8, kind `permission`). A grant opens
 * a category as far as the agent's limit allows.
 */
export class Grants {
  /** Key of a cause to who approved it. */
  readonly #approvals = new Map<string, string>();
  /** By category. */
  readonly #grants = new Map<string, PermissionGrant>();

  add(decision: Decision, by: string): void {
    for (const key of decision.grants) this.#approvals.set(key, by);
  }

  /** Who approved all causes of a decision; undefined when one is not approved. */
  approver(decision: Decision): string | undefined {
    const approvers = decision.grants.map((key) => this.#approvals.get(key));
    return approvers.includes(undefined) ? undefined : approvers[0];
  }

  /** Adds a permission grant. A grant for one call does not replace one for all calls. */
  give(category: string, grant: PermissionGrant): void {
    if (this.#grants.get(category)?.scope !== "always") this.#grants.set(category, grant);
  }

  has(category: string): boolean {
    return this.#grants.has(category);
  }

  /** The permission grant for a category. One for a single call is removed. */
  take(category: string): PermissionGrant | undefined {
    const grant = this.#grants.get(category);
    if (grant?.scope === "once") this.#grants.delete(category);
    return grant;
  }

  /** Removes unused permission grants for one call. */
  endTurn(): void {
    for (const [category, { scope }] of this.#grants) {
      if (scope === "once") this.#grants.delete(category);
    }
  }
}

/** How a call was decided. */
export interface Authorization {
  granted: boolean;
  /** The call cannot succeed. It was declined without asking the operator, and is no refusal. */
  noop: boolean;
  /** For the session's audit (specification 2.4). */
  entry: Omit<PermissionEntry, "timestamp">;
  reason: string;
  /** Why it was not granted, as the end of a sentence; empty when it was. */
  denial: string;
  /** Result text for the model when the call was not granted; empty otherwise. */
  message: string;
  /** File access for this call; only to the worktree when it was not granted. */
  paths: ToolPaths;
  /** See {@linkcode Decision.environment}. */
  environment: Decision["environment"];
}

export interface AuthorizationRequest {
  tool: ToolDefinition;
  args: ToolArguments;
  policy: Policy;
  operator: Operator;
  grants: Grants;
  guard: WorktreeGuard;
  /**
   * What the operator approves: a command, a diff. `paths` gives access to the paths to be approved. The
   * text begins with `Error:` when the call cannot succeed.
   */
  preview(paths: ToolPaths): Promise<string>;
  /** Why this call is denied although the policy allows it; empty when it is not. */
  refuse?(): Promise<string>;
  /** Why this call needs an approval although the policy allows it; empty when it does not. */
  demand?(): Promise<string>;
  run: number;
  session: string;
  signal: AbortSignal;
}

/**
 * Decides about one call and asks the operator when the policy requires it (specification 5.3). When
 * `signal` has aborted, or aborts while the operator is asked, the call counts as declined.
 */
export async function authorize(request: AuthorizationRequest): Promise<Authorization> {
  const { tool, grants, guard, signal } = request;
  let context = guard.context();
  const { resolved, grant } = applyGrant(request, context);
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
    { denial = "", ...answer }: Partial<PermissionEntry & { denial: string }> = {},
  ): Authorization => {
    if (outcome !== "granted" && grant !== undefined) grants.give(tool.permission, grant);
    return {
      granted: outcome === "granted",
      noop: false,
      // A permission grant is an `ask` that was answered earlier.
      entry: {
        tool: tool.name,
        action: grant === undefined ? action : "ask",
        decision: outcome,
        path,
        ...answer,
      },
      reason,
      denial,
      message,
      paths: context.callPaths(outcome === "granted" ? decision.outside : []),
      environment: decision.environment,
    };
  };

  if (action === "deny") return settle("denied", refusal(tool, reason), { denial: reason });
  // `granted` means that the call ran (2.4). The rest of a cancelled batch does not run.
  const ended = () => {
    const denial = "the turn ended before it was to run";
    return settle("declined", `[cancelled] The turn ended before ${tool.name} was to run`, {
      denial,
    });
  };
  if (signal.aborted) return ended();
  if (action === "allow") {
    return settle("granted", "", grant && { scope: grant.scope, granted_by: grant.by });
  }
  const approver = grants.approver(decision);
  if (approver !== undefined) {
    return settle("granted", "", { scope: "always", granted_by: approver });
  }
  const answer = await beforeAbort(() => confirm(request, decision, context), signal);
  context = guard.context();
  if (answer === undefined) return ended();
  if (typeof answer === "string") {
    return { ...settle("declined", answer), noop: true };
  }
  const { granted, scope, by } = answer;
  if (granted) {
    if (scope === "always") grants.add(decision, by);
    return settle("granted", "", { scope, granted_by: by });
  }
  if (by === "operator") {
    const message = `[cancelled] User declined the ${tool.name} call`;
    return settle("declined", message, { denial: "the operator declined it" });
  }
  const denial = `${reason}, and ${UNATTENDED}`;
  return settle("declined", refusal(tool, denial), { denial });
}

/** Decides about a call. A permission grant is taken only when it changes the decision. */
function applyGrant(
  { tool, args, policy, grants }: AuthorizationRequest,
  context: PathContext,
): { resolved: Decision; grant?: PermissionGrant } {
  const resolved = policy.resolve(tool, args, false, context);
  if (resolved.action === "allow" || !grants.has(tool.permission)) return { resolved };
  if (resolved.action === "ask" && grants.approver(resolved) !== undefined) return { resolved };
  const opened = policy.resolve(tool, args, true, context);
  const same = opened.action === "ask" && opened.grants.length === resolved.grants.length;
  if (opened.action === "deny" || same) return { resolved };
  return { resolved: opened, grant: grants.take(tool.permission) };
}

/**
 * The operator's answer. A call that cannot succeed is rejected without asking; the result is the error
 * text. That text may quote the file, so this applies only to files that the agent may read.
 */
async function confirm(
  request: AuthorizationRequest,
  decision: Decision,
  context: PathContext,
): Promise<ConfirmAnswer | string> {
  const { tool, args, policy, operator, preview, run, session, signal } = request;
  const shown = await preview(context.callPaths(decision.outside));
  signal.throwIfAborted(); // the turn is over
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

/** The result of `ask`, or undefined when the signal aborts first. */
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
