import { dirname, join } from "node:path";
import { ROOT_RUN, type TurnResult } from "../engine/events.ts";
import { Workspace } from "../engine/workspace.ts";
import type { Environment } from "../platform/environment.ts";
import { headlessOperator } from "../policy/operator.ts";
import type { Fixture } from "./fixture.ts";
import { judge, type TraceCall, type Verdict } from "./judge.ts";

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
  /** The folder of local plugins. */
  plugins: string;
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

/** Has an agent do a fixture's task in a worktree of its own, which is removed afterwards, and judges its calls. */
export async function runFixture(fixture: Fixture, request: EvalRequest): Promise<FixtureResult> {
  const { environment, backend, plugins, warn, timeout, signal } = request;
  const path = await Deno.makeTempDir({ prefix: "svc-eval-" });
  try {
    for (const [name, content] of Object.entries(fixture.files)) {
      await Deno.mkdir(dirname(join(path, name)), { recursive: true });
      await Deno.writeTextFile(join(path, name), content, { createNew: true });
    }
    const overrides = {
      ...backend,
      tool_permission: { ...PERMISSION, ...fixture.tool_permission },
      "tools.deny": fixture.tools_deny,
      memory_enabled: false,
    };
    const workspace = Workspace.open({ path, environment, overrides, plugins, warn });
    await workspace.load({ tools: "all", providers: "all" });
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), timeout * 1000);
    const result = await turn(workspace, fixture.task, AbortSignal.any([signal, late.signal]))
      .finally(() => clearTimeout(timer));
    const trace = result.tool_calls.map(({ name, arguments: given, is_error }) => ({
      name,
      arguments: given,
      is_error,
    }));
    const verdict = judge(fixture, trace);
    const ended = result.status === "ok" || result.status === "truncated";
    const why = late.signal.aborted
      ? ` after ${timeout} seconds`
      : result.errors.map(({ message }) => `: ${message}`).join("");
    return {
      id: fixture.id,
      trace,
      names: trace.map(({ name }) => name),
      calls: trace.length,
      tokens: tokens(result.usage),
      status: result.status,
      ...verdict,
      pass: verdict.pass && ended,
      reasons: ended ? verdict.reasons : [`ended ${result.status}${why}`, ...verdict.reasons],
    };
  } finally {
    await Deno.remove(path, { recursive: true });
  }
}

async function turn(workspace: Workspace, task: string, signal: AbortSignal): Promise<TurnResult> {
  const session = workspace.sessions.create("ses", {});
  const engine = workspace.engine({ session, operator: headlessOperator(false), headless: true });
  try {
    let result: TurnResult | undefined;
    for await (const event of engine.turn(task, { signal })) {
      if (event.type === "turn_finished" && event.run === ROOT_RUN) result = event.result;
    }
    return result!;
  } finally {
    await engine.close();
    session.close();
    await workspace.close();
  }
}

function tokens({ total_tokens, prompt_tokens = 0, completion_tokens = 0 }: TurnResult["usage"]) {
  return total_tokens ?? prompt_tokens + completion_tokens;
}
