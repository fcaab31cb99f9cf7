import { errorMessage } from "../../platform/error.ts";
import type { TurnLog } from "../../sessions/session.ts";
import { EventQueue } from "../event_queue.ts";
import type { TurnEvent, TurnResult } from "../events.ts";
import { addUsage } from "../reply.ts";
import type { TeamPlan } from "./plan.ts";
import { runTeam, type TeamEnd, teamLine, type TeamTask } from "./teams.ts";
import type { StartedAgent } from "../start.ts";

/** A team that an operator starts. */
export interface TeamTurn extends TeamTask {
  plan: TeamPlan;
  /** What the operator typed, for the log. */
  command: string;
}

/**
 * Has a team do a task as a turn of a root agent, whose model is not asked: the log gets the command and the last
 * stage's answer, and the stages work in sub-sessions, under the agent's rights. Yields what `Engine.turn` would;
 * the usage is that of all agents together. Aborting the signal, or leaving the iteration, cancels the stage that
 * runs.
 */
export async function* teamTurn(
  agent: StartedAgent,
  request: TeamTurn,
  { signal }: { signal: AbortSignal },
): AsyncGenerator<TurnEvent, void> {
  const { plan, command } = request;
  const { session, run, runs, agents, backend: { provider, model }, authority } = agent;
  const { config, clock } = agent.workspace;
  const { mode } = authority.own;
  runs.resume(run, { task: command });
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
