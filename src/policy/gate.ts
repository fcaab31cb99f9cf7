import type { ToolArguments, ToolDefinition, ToolPaths } from "../plugins/api.ts";
import type { PermissionEntry } from "../sessions/schema.ts";
import { LISTED_ENVIRONMENT } from "./listed_commands.ts";
import type { ConfirmAnswer, Operator } from "./operator.ts";
import type { Decision, Policy } from "./policy.ts";
import type { Approval, Grants, PermissionGrant } from "./grants.ts";
import type { PathContext, WorktreeGuard } from "./paths.ts";

/** How the reason of a call ends that is refused because no operator can approve it. */
export const UNATTENDED = "nobody is there to approve it";

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
    ? {
      ...resolved,
      action: "ask",
      reason: demand,
      causes: [{ reason: demand, keys: [] }],
      choices: [],
    } // approved for this call alone
    : resolved;
  const { action, path, reason } = decision;
  const settle = (
    outcome: PermissionEntry["decision"],
    message: string,
    { denial = "", environment = decision.environment, ...answer }:
      & Partial<PermissionEntry & { denial: string }>
      & Pick<Decision, "environment"> = {},
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
      environment,
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
  const approval = grants.approval(decision);
  if (approval !== undefined) return settle("granted", "", lasting(approval));
  const answer = await beforeAbort(() => confirm(request, decision, context), signal);
  context = guard.context();
  if (answer === undefined) return ended();
  if (typeof answer === "string") {
    return { ...settle("declined", answer), noop: true };
  }
  const { granted, scope, by, choice = 0, reason: why = "" } = answer;
  if (granted) {
    const chosen = scope === "always" ? decision.choices[choice] : undefined;
    if (chosen !== undefined) return settle("granted", "", lasting(grants.add(chosen, by)));
    return settle("granted", "", { scope: "once", granted_by: by });
  }
  if (by === "operator") {
    const said = why === "" ? "" : `: ${why}`;
    const message = `[cancelled] User declined the ${tool.name} call${said}`;
    const declined = settle("declined", message, { denial: `the operator declined it${said}` });
    return why === "" ? declined : { ...declined, reason: why };
  }
  const denial = `${reason}, and ${UNATTENDED}`;
  return settle("declined", refusal(tool, denial), { denial });
}

/** What the audit records of an approval that lasts until the session ends. */
function lasting({ by, covers, listed }: Approval) {
  const environment = listed ? LISTED_ENVIRONMENT : undefined;
  return { scope: "always", granted_by: by, covers, environment } as const;
}

/** Decides about a call. A permission grant is taken only when it changes the decision. */
function applyGrant(
  { tool, args, policy, grants }: AuthorizationRequest,
  context: PathContext,
): { resolved: Decision; grant?: PermissionGrant } {
  const resolved = policy.resolve(tool, args, false, context);
  if (resolved.action === "allow" || !grants.has(tool.permission)) return { resolved };
  if (resolved.action === "ask" && grants.approval(resolved) !== undefined) return { resolved };
  const opened = policy.resolve(tool, args, true, context);
  const same = opened.action === "ask" && opened.causes.length === resolved.causes.length;
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
    choices: decision.choices,
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
