import { errorMessage } from "../platform/error.ts";
import type { TurnLog } from "../sessions/session.ts";
import { Account, startDeadline, turnTimeout } from "./budget.ts";
import {
  addRefused,
  EventQueue,
  failTurn,
  followLoss,
  TURN_LEFT,
  type TurnEvent,
  TurnFailure,
  unfinishedResult,
} from "./events.ts";
import { quotaWait } from "./models.ts";
import { addUsage } from "./budget.ts";
import type { StartedAgent } from "./start.ts";
import type { TurnTask } from "./task.ts";
import {
  checkEnd,
  runTeam,
  type TeamEnd,
  teamLine,
  type TeamPlan,
  type TeamTask,
} from "./teams.ts";

/** A team that an operator starts. */
interface TeamTurn extends TeamTask {
  plan: TeamPlan;
  /** What the operator typed, for the log. */
  command: string;
}

/**
 * Has a team do a task as a turn of a root agent, whose model is not asked: the log gets the command and the last
 * stage's answer, and the stages work in sub-sessions, under the agent's rights. Yields what `Engine.turn` would;
 * the usage is that of all agents together. Aborting the signal, or leaving the iteration, cancels the stage that
 * runs.
 *
 * A team that did not pass its review is an error. When the command of `verify` fails, the stage that works continues
 * with its output, and the stages after it follow. The last stage gives the answer to `schema`.
 */
export async function* teamTurn(
  agent: StartedAgent,
  request: TeamTurn,
  { signal, task: terms = {} }: { signal: AbortSignal; task?: TurnTask },
): AsyncGenerator<TurnEvent, void> {
  const { plan, command } = request;
  const { session, run, runs, agents, backend: { provider, model }, authority, workspace } = agent;
  const { changes } = agent;
  const { config, clock } = workspace;
  const { mode } = authority.own;
  runs.resume(run, { task: command });
  const closing = new AbortController();
  const deadline = startDeadline(clock, turnTimeout(terms, config));
  const either = AbortSignal.any([signal, closing.signal, deadline.signal]);
  const started = clock.now();
  const queue = new EventQueue();
  const account = new Account(terms);
  const meter = workspace.spending.meter({ session: session.name });
  const result = unfinishedResult({ model, provider, session: session.name });
  if (terms.verify !== undefined) result.verified = false;
  const emit = (event: TurnEvent) => {
    if (event.type === "turn_finished") {
      addUsage(result.usage, event.result.usage);
      addRefused(result, event.result.refused);
      result.reason = event.result.reason; // of the stage that ends last
    }
    queue.push(event);
  };
  const deny = (calls: typeof result.denied) => void result.denied.push(...calls);
  const hooks = { signal: either, emit, deny, meter, quota_wait: quotaWait(terms, config) };
  let log: TurnLog | undefined;
  let endChanges = () => Promise.resolve();
  let work: Promise<unknown> | undefined;
  const during = <T>(step: Promise<T>) => queue.during((work = step) as Promise<T>);
  /** Has the team work, and adds its end to the result and the log. */
  async function* team(task: TeamTask): AsyncGenerator<TurnEvent, TeamEnd> {
    const end = yield* during(runTeam(plan, task, agents, hooks));
    const { status, content, review } = end;
    Object.assign(result, { status, content, reason: "" });
    log!.append({ type: "text", text: content });
    yield { type: "token", run, content };
    const level = review?.passed === false || result.refused.length > 0 ? "warning" : "info";
    yield { type: "notice", run, level, message: teamLine(plan, end) };
    if (review !== undefined) result.verdict = review;
    if (review?.passed === false) throw new TurnFailure("verify", "its review did not pass");
    return end;
  }
  try {
    const busy = `Session ${session.name} is busy with another turn; waiting for it.`;
    const lost = yield* queue.during(
      session.acquireTurn(
        either,
        () => emit({ type: "notice", run, level: "warning", message: busy }),
      ),
    );
    followLoss(lost, closing);
    log = session.beginTurn({ model, provider, mode, reasoning: config.get("reasoning") });
    const { index } = log;
    endChanges = changes.begin(session.name, index);
    yield { type: "turn_started", run, session: session.name, index, model, provider, mode };
    log.append({ type: "command", text: command });
    await session.share();
    meter.begin(account, {});
    let end = yield* team(request);
    if (terms.verify !== undefined) {
      const { verification } = await import("./verify.ts");
      const { sandbox, paths: { worktree } } = workspace;
      const mask = (text: string) => workspace.mask(text);
      const verify = verification(terms, {
        ...{ run, worktree, sandbox, config, mask },
        before: () => changes.scan(session.name),
      });
      for (let question; (question = yield* verify({ log, signal: either, result })) !== "";) {
        end = yield* team(correction(request, end, question));
      }
    }
    if (terms.schema !== undefined) {
      const { dataIn } = await import("./answer.ts");
      const written = dataIn(result.content, terms.schema);
      if (written !== undefined) {
        result.data = written.data;
      } else {
        const { role, backend, mode: stageMode, session: last } = lastStage(plan, end);
        const step = yield* during(agents.perform({
          role,
          backend,
          task: DATA,
          target: agents.target(last),
          stage: { team: plan.name, mode: stageMode },
          terms: { schema: terms.schema },
        }, hooks));
        checkEnd(plan.stages.length, step);
        const { content, data } = step.result;
        Object.assign(result, { content, data });
        log.append({ type: "text", text: content });
        yield { type: "token", run, content };
      }
    }
  } catch (thrown) {
    failTurn(
      result,
      thrown,
      either,
      (error) => `team ${JSON.stringify(plan.name)} failed: ${errorMessage(error)}`,
      (message) => log && session.recordError(0, message),
    );
    for (const { message } of result.errors) yield { type: "notice", run, level: "error", message };
  } finally {
    deadline.stop();
    closing.abort(TURN_LEFT);
    await work?.catch(() => {}); // its sessions are closed then
    await endChanges();
    const status = result.status === "error" && result.errors.length === 0
      ? "cancelled"
      : result.status;
    try {
      Object.assign(result, { total_usage: account.usage, cost: account.cost });
      log?.end(status, { usage: result.usage, cost: account.cost });
      if (log !== undefined) await session.flush();
    } catch (error) {
      if (error !== either.reason) result.errors.push({ code: 0, message: errorMessage(error) });
      if (result.status === "ok") result.status = "error";
    }
    runs.finish(run, status);
  }
  const message = changes.warning();
  if (message !== "") yield { type: "notice", run, level: "warning", message };
  result.duration = Math.max(0, clock.now() - started) / 1000;
  yield { type: "turn_finished", run, result };
}

const DATA = "Give the result of the team's work as data, in the form that is asked for.";

/**
 * The task of the stage that corrects the work: the first of the loop, else the last one that may edit files, else
 * the last one.
 */
function correction({ plan, task }: TeamTurn, { stages }: TeamEnd, question: string): TeamTask {
  const works = plan.stages.findLastIndex(({ mode, agent }) =>
    mode !== "plan" && agent.tool_permission.edit !== "deny"
  );
  const at = plan.loop === undefined ? works : plan.loop.from - 1;
  // The stages that ran are the last ones of the plan.
  const { session } = stages.at(at < 0 ? -1 : at - plan.stages.length)!.run;
  return {
    task: `${question}\n\n## The task of the team\n\n${task}`,
    resume: session,
    context: "continue",
  };
}

function lastStage({ stages }: TeamPlan, end: TeamEnd) {
  const { agent, backend, mode } = stages.at(-1)!;
  return { role: agent, backend, mode, session: end.stages.at(-1)!.run.session };
}
