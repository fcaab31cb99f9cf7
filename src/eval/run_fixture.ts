import { Account } from "../engine/budget.ts";
import { ROOT_RUN, type TurnResult } from "../engine/events.ts";
import { startAgent } from "../engine/start.ts";
import { Workspace } from "../engine/workspace.ts";
import type { Environment } from "../platform/environment.ts";
import { errorMessage } from "../platform/error.ts";
import { headlessOperator } from "../policy/operator.ts";
import type { Fixture } from "./fixture.ts";
import { canonical, judge, type TraceCall, type Verdict } from "./judge.ts";
import { judgeWork } from "./work.ts";
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
  /** Replies of the model. */
  rounds: number;
  seconds: number;
  /** What its requests cost, by the setting `prices`; null without a price. */
  cost: number | null;
  status: TurnResult["status"];
}

/** What a run has done and used. */
type Measured = Pick<
  FixtureResult,
  "trace" | "status" | "tokens" | "rounds" | "seconds" | "cost"
>;

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
    return result(fixture, { ...NOT_RUN, why }, UNJUDGED);
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
  const { config } = pluginsOf;
  const mode: string = config.get("sandbox.mode");
  const overrides = {
    ...backend,
    tool_permission: { ...PERMISSION, ...fixture.tool_permission },
    "tools.deny": [...denied, ...fixture.tools_deny],
    memory_enabled: false,
    // The command runs what the model has written.
    ...fixture.verifier.command !== undefined && mode === "auto" && { "sandbox.mode": "require" },
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
    const either = AbortSignal.any([signal, late.signal]);
    const { last: { status, errors }, trace, ...used } = await work(workspace, fixture, either)
      .finally(() => clearTimeout(timer));
    const ended = status === "ok" || status === "truncated";
    const cause = late.signal.aborted
      ? ` after ${timeout} seconds`
      : errors.map(({ message }) => `: ${message}`).join("");
    const why = ended ? undefined : `ended ${status}${cause}`;
    const same = canonical(fixture, trace, workspace.tools, workspace.paths.worktree);
    const verdict = judge(same.fixture, same.calls);
    const reasons = ended ? await judgeWork(fixture, workspace, signal) : [];
    return result(fixture, { trace, status, ...used, why }, {
      ...verdict,
      pass: verdict.pass && reasons.length === 0,
      reasons: [...verdict.reasons, ...reasons],
    });
  } finally {
    await workspace.close();
  }
}

/** What a fixture that could not be run has used. */
const NOT_RUN = {
  trace: [],
  status: "error",
  tokens: 0,
  rounds: 0,
  seconds: 0,
  cost: null,
} as const satisfies Measured;

/** The verdict on a fixture that could not be run. */
const UNJUDGED: Verdict = { accuracy: 0, pass: false, redundant: 0, errors: 0, reasons: [] };

/** @param why the reason of a failure that does not depend on the calls; left out: the verdict decides */
function result(
  { id }: Fixture,
  { why, ...measured }: Measured & { why?: string },
  verdict: Verdict,
): FixtureResult {
  return {
    id,
    ...measured,
    names: measured.trace.map(({ name }) => name),
    calls: measured.trace.length,
    ...verdict,
    pass: verdict.pass && why === undefined,
    reasons: why === undefined ? verdict.reasons : [why, ...verdict.reasons],
  };
}

/** Has an agent do the task and what follows it, each in the resumed session, until a turn fails. */
async function work(
  workspace: Workspace,
  { task, then }: Fixture,
  signal: AbortSignal,
): Promise<Omit<Measured, "status"> & { last: TurnResult }> {
  const operator = headlessOperator(false);
  const account = new Account({});
  const trace: TraceCall[] = [];
  let last: TurnResult | undefined;
  let session: string | undefined;
  let seconds = 0;
  for (const prompt of [task, ...then]) {
    if (prompt === "/compact") {
      await compactSession(workspace, session!, account, signal);
      continue;
    }
    const agent = await startAgent(workspace, { operator, headless: true, session });
    try {
      for await (const event of agent.turn(prompt, { signal, account })) {
        if (event.type === "turn_finished" && event.run === ROOT_RUN) last = event.result;
      }
    } finally {
      await agent.close();
    }
    session = last!.session;
    seconds += last!.duration;
    for (const { name, arguments: given, is_error } of last!.tool_calls) {
      trace.push({ name, arguments: given, is_error });
    }
    if (last!.status !== "ok" && last!.status !== "truncated") break;
  }
  const { turns } = workspace.sessions.read(session!)!;
  const replies = turns.flatMap(({ parts, index }) =>
    parts.flatMap((part) => "round" in part ? [`${index} ${part.round}`] : [])
  );
  const rounds = new Set(replies).size;
  return { last: last!, trace, tokens: tokens(account.usage), rounds, seconds, cost: account.cost };
}

async function compactSession(
  workspace: Workspace,
  name: string,
  account: Account,
  signal: AbortSignal,
): Promise<void> {
  const { compact } = await import("../engine/compaction.ts");
  const session = workspace.sessions.open(name);
  const meter = workspace.spending.meter({ session: name });
  meter.begin(account, {});
  const provider = workspace.connect(workspace.backend(), session.id || name, meter);
  try {
    await compact({ provider, session, keep: 0, signal });
  } finally {
    await provider.close?.();
    session.close();
  }
}

function tokens({ total_tokens, prompt_tokens = 0, completion_tokens = 0 }: TurnResult["usage"]) {
  return total_tokens ?? prompt_tokens + completion_tokens;
}
