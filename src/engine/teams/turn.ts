import { errorMessage } from "../../platform/error.ts";
import type { Operator } from "../../policy/operator.ts";
import type { Backend } from "../../providers/resolve.ts";
import type { Session, TurnLog } from "../../sessions/session.ts";
import { Agents } from "../agents/agents.ts";
import { EventQueue } from "../event_queue.ts";
import type { TurnEvent, TurnResult } from "../events.ts";
import { addUsage } from "../reply.ts";
import type { TeamPlan } from "./plan.ts";
import type { RunRegistry } from "../agents/runs.ts";
import { runTeam, type TeamEnd, teamLine, type TeamTask } from "./teams.ts";
import type { Workspace } from "../workspace.ts";

/** A team that an operator starts. */
export interface TeamTurn extends TeamTask {
  plan: TeamPlan;
  /** What the operator said, as the log has it. */
  command: string;
  session: Session;
  /** What serves the stages whose roles name no model. */
  backend: Backend;
  operator: Operator;
  headless: boolean;
  approve_models: boolean;
  /** The runs of the session's root agent, where there is one already. */
  runs?: RunRegistry;
}

/**
 * Has a team do a task as a turn of a root session, without a model of its own: the log gets the command
 * and the last stage's answer, and the stages work in sub-sessions. Yields what `Engine.turn` would; the
 * usage is that of all agents together. Aborting the signal, or leaving the iteration, cancels the stage
 * that runs.
 */
export async function* teamTurn(
  workspace: Workspace,
  request: TeamTurn,
  { signal }: { signal: AbortSignal },
): AsyncGenerator<TurnEvent, void> {
  const { plan, command, session, backend, operator, headless, approve_models } = request;
  const { config, clock } = workspace;
  const { provider, model } = backend;
  const authority = workspace.authority();
  const { mode } = authority.own;
  const runs = request.runs ?? workspace.runs();
  const root = runs.list()[0];
  const { id: run } = root === undefined
    ? runs.start({ parent: 0, role: "", session, task: command })
    : runs.resume(root.id, { task: command });
  const agents = new Agents({ workspace, runs, operator, headless, approve_models }, {
    session,
    run,
    authority,
    backend,
    lineage: [session.name],
  });
  const closing = new AbortController();
  const either = AbortSignal.any([signal, closing.signal]);
  const started = clock.now();
  const queue = new EventQueue();
  const result: TurnResult = {
    content: "",
    thinking: "",
    tool_calls: [],
    errors: [],
    duration: 0,
    usage: {},
    model,
    provider,
    session: session.name,
    status: "error",
  };
  const emit = (event: TurnEvent) => {
    if (event.type === "turn_finished") addUsage(result.usage, event.result.usage);
    queue.push(event);
  };
  let log: TurnLog | undefined;
  let work: Promise<TeamEnd> | undefined;
  try {
    const busy = `Session ${session.name} is busy with another turn; waiting for it.`;
    yield* queue.during(
      session.acquireTurn(
        either,
        () => emit({ type: "notice", run, level: "warning", message: busy }),
      ),
    );
    log = session.beginTurn({ model, provider, mode, reasoning: config.get("reasoning") });
    const { index } = log;
    yield { type: "turn_started", run, session: session.name, index, model, provider, mode };
    log.append({ type: "command", text: command });
    work = runTeam(plan, request, agents, { signal: either, emit });
    const end = yield* queue.during(work);
    const { status, content, review } = end;
    Object.assign(result, { status, content });
    log.append({ type: "text", text: content });
    yield { type: "token", run, content };
    const level = review?.passed === false ? "warning" : "info";
    yield { type: "notice", run, level, message: teamLine(plan, end) };
  } catch (error) {
    if (either.aborted) {
      result.status = "cancelled";
    } else {
      const message = `team ${JSON.stringify(plan.name)} failed: ${errorMessage(error)}`;
      result.errors.push({ code: 0, message });
      try {
        if (log !== undefined) session.recordError(0, message);
      } catch {
        // The log itself cannot be written; the result still says why.
      }
      yield { type: "notice", run, level: "error", message };
    }
  } finally {
    closing.abort(new DOMException("The turn was left.", "AbortError"));
    await work?.catch(() => {}); // its sessions are closed then
    const status = result.status === "error" && result.errors.length === 0
      ? "cancelled"
      : result.status;
    try {
      log?.end(status);
    } catch (error) {
      result.errors.push({ code: 0, message: errorMessage(error) });
      if (result.status === "ok") result.status = "error";
    }
    runs.finish(run, status);
  }
  result.duration = Math.max(0, clock.now() - started) / 1000;
  yield { type: "turn_finished", run, result };
}
