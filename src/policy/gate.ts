import type { ToolArguments, ToolDefinition, ToolPaths } from "../plugins/api.ts";
import type { PermissionEntry } from "../sessions/schema.ts";
import type { ConfirmAnswer, Operator } from "./operator.ts";
import type { Decision, Policy } from "./policy.ts";
import type { WorktreeGuard } from "./worktree.ts";

/**
 * The `always` answers of a session. An answer covers the causes it was given for and nothing near
 * them: for a category, the tool; for a shell command or a call that the tool's resolver asks about, the
 * same tool with the very same arguments; for a place outside the worktree or a protected one, the same
 * tool and that real path.
 */
export class Grants {
  readonly #grants = new Map<string, string>();

  add(decision: Decision, by: string): void {
    for (const key of decision.grants) this.#grants.set(key, by);
  }

  /** Who granted all that a call asks for; undefined when something is left to ask. */
  granter(decision: Decision): string | undefined {
    const granters = decision.grants.map((key) => this.#grants.get(key));
    return granters.includes(undefined) ? undefined : granters[0];
  }
}

/** How a call was decided. */
export interface Authorization {
  granted: boolean;
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
  /** What will run, for whoever approves it; `paths` reaches the places that are asked for. */
  preview(paths: ToolPaths): Promise<string>;
  /** Why this very call is denied although the policy would let it through; empty when it is not. */
  refuse?(): Promise<string>;
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
  const resolved = policy.resolve(tool, args);
  const refusing = resolved.action === "deny" ? "" : await request.refuse?.() ?? "";
  const decision: Decision = refusing === ""
    ? resolved
    : { ...resolved, action: "deny", reason: refusing };
  const { action, path, reason } = decision;
  const settle = (
    outcome: PermissionEntry["decision"],
    message: string,
    answer: Partial<PermissionEntry> = {},
  ): Authorization => ({
    granted: outcome === "granted",
    entry: { tool: tool.name, action, decision: outcome, path, ...answer },
    reason,
    message,
    paths: guard.callPaths(outcome === "granted" ? decision.outside : []),
  });

  if (action === "deny") return settle("denied", refusal(tool, reason));
  // `granted` says that a call ran (2.4), and what is left of a cancelled batch does not.
  const ended = () =>
    settle("declined", `[cancelled] The turn ended before ${tool.name} was to run`);
  if (signal.aborted) return ended();
  if (action === "allow") return settle("granted", "");
  const granter = grants.granter(decision);
  if (granter !== undefined) {
    return settle("granted", "", { scope: "always", granted_by: granter });
  }
  const answer = await beforeAbort(() => confirm(request, decision), signal);
  if (answer === undefined) return ended();
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

async function confirm(request: AuthorizationRequest, decision: Decision): Promise<ConfirmAnswer> {
  const { tool, args, operator, guard, preview, run, session, signal } = request;
  const shown = await preview(guard.callPaths(decision.outside));
  signal.throwIfAborted(); // nobody is asked about a turn that is over
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
