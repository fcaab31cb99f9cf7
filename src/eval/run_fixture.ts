import { ROOT_RUN, type TurnResult } from "../engine/events.ts";
import { startAgent } from "../engine/start.ts";
import { Workspace } from "../engine/workspace.ts";
import type { Environment } from "../platform/environment.ts";
import { errorMessage } from "../platform/error.ts";
import { headlessOperator } from "../policy/operator.ts";
import type { Fixture } from "./fixture.ts";
import { canonical, judge, type TraceCall, type Verdict } from "./judge.ts";
import type { TemporaryWorktrees } from "./worktrees.ts";

/** The result of one fixture. */
export interface FixtureResult extends Verdict {
  id: string;
  trace: TraceCall[];
  names: string[];
  /** Number of calls. */
  calls: number;
  /** All tokens that the backend reported. */
  tokens: number;
  status: TurnResult["status"];
}

/** The parameters of a run other than the fixture. */
export interface EvalRequest {
  environment: Environment;
  /** The backend: per-run settings such as provider and model. */
  backend: Record<string, unknown>;
  /** Tools that are denied to all fixtures. */
  denied: string[];
  /** The worktree whose local plugins are used. */
  pluginsOf: Workspace;
  worktrees: TemporaryWorktrees;
  /** Receives warnings about worktrees that could not be removed. */
  warn: (message: string) => void;
  /** Seconds that the task may take. A longer one is cancelled and has failed. */
  timeout: number;
  signal: AbortSignal;
}

/** The default permissions of a fixture: reading is allowed, changing and running are not. */
const PERMISSION = {
  read: "allow",
  list: "allow",
  web: "allow",
  edit: "deny",
  bash: "deny",
  mcp: "deny",
};

/**
 * Lets an agent do a fixture's task in a temporary worktree, and judges its calls. A fixture that cannot be run,
 * such as on a full disk, has failed.
 */
export async function runFixture(fixture: Fixture, request: EvalRequest): Promise<FixtureResult> {
  const { worktrees, warn } = request;
  try {
    return await measured(fixture, worktrees.make(fixture.files), request);
  } catch (error) {
    const why = `could not be run: ${errorMessage(error)}`;
    return result(fixture, { trace: [], status: "error", tokens: 0, why }, UNJUDGED);
  } finally {
    try {
      worktrees.clear();
    } catch (error) {
      warn(`The worktree of the fixture ${fixture.id} is left behind: ${errorMessage(error)}`);
    }
  }
}

async function measured(
  fixture: Fixture,
  path: string,
  { environment, backend, denied, pluginsOf, timeout, signal }: EvalRequest,
): Promise<FixtureResult> {
  const overrides = {
    ...backend,
    tool_permission: { ...PERMISSION, ...fixture.tool_permission },
    "tools.deny": [...denied, ...fixture.tools_deny],
    memory_enabled: false,
  };
  const workspace = Workspace.open({
    ...{ path, environment, overrides, pluginsOf },
    trusted: true,
    store: null, // its worktree is gone afterwards
  });
  try {
    await workspace.load({ tools: "all", providers: "all" });
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), timeout * 1000);
    const { status, errors, usage, tool_calls } = await turn(
      workspace,
      fixture.task,
      AbortSignal.any([signal, late.signal]),
    ).finally(() => clearTimeout(timer));
    const trace = tool_calls.map(({ name, arguments: given, is_error }) => ({
      name,
      arguments: given,
      is_error,
    }));
    const ended = status === "ok" || status === "truncated";
    const cause = late.signal.aborted
      ? ` after ${timeout} seconds`
      : errors.map(({ message }) => `: ${message}`).join("");
    const why = ended ? undefined : `ended ${status}${cause}`;
    const same = canonical(fixture, trace, workspace.tools, workspace.paths.worktree);
    const verdict = judge(same.fixture, same.calls);
    return result(fixture, { trace, status, tokens: tokens(usage), why }, verdict);
  } finally {
    await workspace.close();
  }
}

/** The verdict on a fixture that could not be run. */
const UNJUDGED: Verdict = { accuracy: 0, pass: false, redundant: 0, errors: 0, reasons: [] };

/** @param why the reason of a failure that does not depend on the calls; left out: the verdict decides */
function result(
  { id }: Fixture,
  { trace, status, tokens, why }: Pick<FixtureResult, "trace" | "status" | "tokens"> & {
    why?: string;
  },
  verdict: Verdict,
): FixtureResult {
  return {
    id,
    trace,
    names: trace.map(({ name }) => name),
    calls: trace.length,
    tokens,
    status,
    ...verdict,
    pass: verdict.pass && why === undefined,
    reasons: why === undefined ? verdict.reasons : [why, ...verdict.reasons],
  };
}

async function turn(workspace: Workspace, task: string, signal: AbortSignal): Promise<TurnResult> {
  const operator = headlessOperator(false);
  const agent = await startAgent(workspace, { operator, headless: true });
  try {
    let result: TurnResult | undefined;
    for await (const event of agent.turn(task, { signal })) {
      if (event.type === "turn_finished" && event.run === ROOT_RUN) result = event.result;
    }
    return result!;
  } finally {
    await agent.close();
  }
}

function tokens({ total_tokens, prompt_tokens = 0, completion_tokens = 0 }: TurnResult["usage"]) {
  return total_tokens ?? prompt_tokens + completion_tokens;
}
