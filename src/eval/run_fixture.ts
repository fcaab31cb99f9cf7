import { ROOT_RUN, type TurnResult } from "../engine/events.ts";
import { startAgent } from "../engine/start.ts";
import { Workspace } from "../engine/workspace.ts";
import type { Environment } from "../platform/environment.ts";
import { errorMessage } from "../platform/error.ts";
import { headlessOperator } from "../policy/operator.ts";
import type { Fixture } from "./fixture.ts";
import { canonical, judge, type TraceCall, type Verdict } from "./judge.ts";
import type { TemporaryWorktrees } from "./worktrees.ts";

/** How one fixture went. */
export interface FixtureResult extends Verdict {
  id: string;
  trace: TraceCall[];
  names: string[];
  /** Number of calls. */
  calls: number;
  /** Tokens in all, as the backend reports them. */
  tokens: number;
  status: TurnResult["status"];
}

/** What a run needs beside the fixture. */
export interface EvalRequest {
  environment: Environment;
  /** The backend: per-run settings such as provider and model. */
  backend: Record<string, unknown>;
  /** Tools that no fixture gets. */
  denied: string[];
  /** The folder of local plugins. */
  plugins: string;
  worktrees: TemporaryWorktrees;
  /** Receives what is left behind; of configuration and plugins their own workspace has warned. */
  warn: (message: string) => void;
  /** Seconds that the task may take; what hangs longer is ended and has failed. */
  timeout: number;
  signal: AbortSignal;
}

/** Looking is allowed; what changes, runs or reaches out is not. */
const PERMISSION = {
  read: "allow",
  list: "allow",
  web: "allow",
  edit: "deny",
  bash: "deny",
  mcp: "deny",
};

/**
 * Has an agent do a fixture's task in a worktree of its own, which is removed afterwards, and judges its
 * calls. What cannot be begun, as on a full disk, has failed like any other.
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
  { environment, backend, denied, plugins, timeout, signal }: EvalRequest,
): Promise<FixtureResult> {
  const overrides = {
    ...backend,
    tool_permission: { ...PERMISSION, ...fixture.tool_permission },
    "tools.deny": [...denied, ...fixture.tools_deny],
    memory_enabled: false,
  };
  const workspace = Workspace.open({ path, environment, overrides, plugins });
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

/** Of a run that there was none of, or that cannot be judged. */
const UNJUDGED: Verdict = { accuracy: 0, pass: false, redundant: 0, errors: 0, reasons: [] };

/** @param why it has failed whatever its calls are worth; left out: they decide */
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
