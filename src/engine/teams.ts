import type { Stage, Team } from "../catalog/schema.ts";
import { SvcError, usageError } from "../platform/error.ts";
import { checkMode } from "../policy/settings.ts";
import type { Backend } from "../providers/resolve.ts";
import {
  type AgentRole,
  agentRole,
  type Agents,
  refusedThroughout,
  shortfall,
  type StepEnd,
  type Target,
} from "./agents.ts";
import { TurnFailure } from "./events.ts";
import {
  earlierSessions,
  passes,
  rememberTeam,
  stageBrief,
  stageOf,
  type StageResult,
} from "./team_brief.ts";
import type { CallHooks } from "./tools/core.ts";
import type { Workspace } from "./workspace.ts";

/** A team whose stages can all run. */
export interface TeamPlan {
  name: string;
  stages: PlannedStage[];
  loop: Team["loop"];
}

interface PlannedStage extends Stage {
  agent: AgentRole;
  backend: Backend;
}

/** The agent that starts a team. */
interface TeamCaller {
  workspace: Workspace;
  /** Names of the teams that the caller works in, the outermost first. */
  teams: readonly string[];
  /** The backends of roles' models, approved all at once. */
  backends(models: string[]): Promise<Backend[]>;
}

/**
 * Looks up everything that a team needs, so that no team starts that cannot finish (specification 7.4).
 *
 * @param skills names of skills that every stage gets in addition to its own and its role's
 * @throws SvcError for an unknown team, one without stages, an unknown role, skill or mode of a stage, a
 * team that is at work already, teams that nest too deep, and models that are not approved
 */
export async function planTeam(
  caller: TeamCaller,
  name: string,
  skills: string[] = [],
): Promise<TeamPlan> {
  const { workspace, teams } = caller;
  const catalog = await workspace.catalog();
  const { stages, loop } = catalog.need("team", name).value;
  checkNesting(teams, name, workspace.config.get("max_team_depth"));
  if (stages.length === 0) {
    throw usageError("no_stages", `The team ${name} has no stages.`);
  }
  const agents: AgentRole[] = [];
  for (const [index, stage] of stages.entries()) {
    try {
      if (stage.mode !== "") checkMode(workspace.config, stage.mode);
      agents.push(await agentRole(workspace, stage.role, [...stage.skills, ...skills]));
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      const { code, message, hint } = error;
      throw usageError(code, `Stage ${index + 1} of the team ${name} cannot run: ${message}`, hint);
    }
  }
  const served = await caller.backends(agents.map(({ model }) => model));
  return {
    name,
    loop,
    stages: stages.map((stage, index) => ({
      ...stage,
      agent: agents[index]!,
      backend: served[index]!,
    })),
  };
}

function checkNesting(teams: readonly string[], name: string, most: number): void {
  if (teams.includes(name)) {
    const way = [...teams.slice(teams.indexOf(name)), name].join(" > ");
    throw usageError("team_cycle", `A team cannot be started from within itself: ${way}.`);
  }
  if (teams.length < most) return;
  throw usageError(
    "team_depth",
    most === 0
      ? "No teams may run (setting max_team_depth)."
      : `Teams start teams ${most} levels deep at most (setting max_team_depth).`,
  );
}

/** The task of a team. */
export interface TeamTask {
  task: string;
  /** The session of the stage to continue from. */
  resume?: string;
  context?: "continue" | "compact" | "new";
}

/** The result of a team. */
export interface TeamEnd {
  /** How its last stage ended. */
  status: "ok" | "truncated";
  /** The last stage's answer. */
  content: string;
  /** The newest run of each stage, in the stages' order. */
  stages: StepEnd[];
  /** The outcome of its review; undefined for a team without a loop. */
  review?: { rounds: number; passed: boolean };
}

/**
 * Runs the stages of a team on a task in their order, each as an agent under the caller. The stages of a loop are
 * repeated until the last of them passes the work, at most `max_iterations` times; then the team continues.
 *
 * In a further round every stage starts in a new session: its prompt (with its own last result and the findings)
 * is bounded, however long the earlier rounds were, and the work is reviewed as it is, not as it is remembered.
 * The results of the stages become part of the team's memory.
 *
 * @throws SvcError `team_failed` when a stage ends in another status than `ok` or `truncated`, or cannot
 * start; the other stages do not run then. `not_a_stage` for a `resume` that is none of the team's
 */
export async function runTeam(
  plan: TeamPlan,
  task: TeamTask,
  agents: Agents,
  hooks: CallHooks,
): Promise<TeamEnd> {
  const steps: StepEnd[] = [];
  try {
    return await runStages(plan, task, agents, hooks, steps);
  } finally {
    if (!hooks.signal.aborted) rememberTeam({ name: plan.name, task: task.task, steps }, agents);
  }
}

async function runStages(
  plan: TeamPlan,
  { task, resume, context }: TeamTask,
  agents: Agents,
  hooks: CallHooks,
  steps: StepEnd[],
): Promise<TeamEnd> {
  const { name, stages, loop } = plan;
  const { workspace } = agents;
  const results = new Map<number, StageResult>();
  let number = 1;
  let target: Target | undefined;
  if (resume && context !== "new") {
    await workspace.sessions.current(resume);
    target = agents.target(resume);
    number = await resumedStage(agents, plan, target, results);
  }
  warnOfRefusals(plan, agents, hooks);
  const ends = new Map<number, StepEnd>();
  let round = 1;
  let review: TeamEnd["review"];
  while (number <= stages.length) {
    const stage = stages[number - 1]!;
    hooks.signal.throwIfAborted();
    announce(agents, hooks, plan, number, round);
    const findings = round > 1 && number <= loop!.until ? results.get(loop!.until) : undefined;
    const prompt = target !== undefined ? task : stageBrief({
      team: name,
      number,
      stages: stages.length,
      task,
      results: earlier(results, number, findings),
      findings,
      handoff_note: stage.handoff_note,
      memory: workspace.memory.block("team", name),
      task_hint: stage.task_hint,
    });
    const end = await agents.perform({
      role: stage.agent,
      backend: stage.backend,
      task: prompt,
      target,
      context,
      stage: { team: name, mode: stage.mode },
    }, hooks);
    target = undefined;
    steps.push(end);
    checkEnd(number, end);
    ends.set(number, end);
    const { session, content } = end.result;
    results.set(number, { number, session, text: content, stale: false });
    if (number === loop?.until) {
      review = { rounds: round, passed: passes(content, loop.verdict) };
      if (!review.passed && round < loop.max_iterations) {
        round++;
        for (let n = loop.from; n <= loop.until; n++) {
          const old = results.get(n);
          if (old !== undefined) results.set(n, { ...old, stale: true });
        }
        number = loop.from;
        continue;
      }
    }
    number++;
  }
  const done = [...ends].sort(([one], [other]) => one - other).map(([, end]) => end);
  const { status, content } = done.at(-1)!.result;
  return { status: status as TeamEnd["status"], content, stages: done, review };
}

/** The result of the tool `team`: the answer, and a line about the team's work. */
export function teamReport(plan: TeamPlan, end: TeamEnd): string {
  return `${end.content}\n\n[${teamLine(plan, end)}]`;
}

/** The stages, the outcome of the review, and the stages that had less than their role requests, or were refused. */
export function teamLine({ name, loop }: TeamPlan, { stages, review }: TeamEnd): string {
  const chain = stages.map(({ run: { id, role, session } }) =>
    `${role} #${id}, session ${session}`
  );
  const rounds = review?.rounds === 1 ? "the first round" : `round ${review?.rounds}`;
  const judged = review === undefined
    ? []
    : review.passed
    ? [`passed in ${rounds}`]
    : [`not passed in ${loop!.max_iterations} rounds, which is the most`];
  const less = stages.flatMap((stage) => {
    const text = shortfall(stage);
    return text === "" ? [] : [`${stage.run.role} ${text}`];
  });
  return `team ${name}: ${[chain.join(" > "), ...judged, ...less].join("; ")}`;
}

/**
 * The stage that a session belongs to; the results of the stages before it are added to `results`.
 *
 * @throws SvcError `not_a_stage`
 */
async function resumedStage(
  { workspace: { sessions } }: Agents,
  { name, stages }: TeamPlan,
  { session }: Target,
  results: Map<number, StageResult>,
): Promise<number> {
  const document = sessions.read(session)!; // a target can be read
  const number = stageOf(document, name);
  if (number === undefined || stages[number - 1]?.role !== document.role) {
    throw usageError("not_a_stage", `The session ${session} is none of the team's stages.`);
  }
  for (const [earlier, other] of earlierSessions(document)) {
    await sessions.current(other);
    const found = sessions.read(other);
    // A result may contain such a heading too: only stages of the same team's task count.
    if (found?.parent_id !== document.parent_id || stageOf(found, name) !== earlier) continue;
    const texts = found.turns.at(-1)?.parts.filter((part) => part.type === "text") ?? [];
    const text = texts.at(-1)?.text ?? "";
    if (earlier < number) {
      results.set(earlier, { number: earlier, session: other, text, stale: false });
    }
  }
  return number;
}

/** The results in a stage's prompt: of the others and, in a further round, its own; not the review's. */
function earlier(
  results: Map<number, StageResult>,
  number: number,
  findings?: StageResult,
): StageResult[] {
  return [...results.values()].filter((each) =>
    each !== findings && (each.number < number || findings !== undefined)
  ).sort((one, other) => one.number - other.number);
}

function announce(
  { run }: Agents,
  { emit }: CallHooks,
  { name, stages, loop }: TeamPlan,
  number: number,
  round: number,
): void {
  const again = round > 1 && number <= loop!.until
    ? `, round ${round} of ${loop!.max_iterations}`
    : "";
  const message = `Team ${name}: stage ${number} of ${stages.length}, ` +
    `${stages[number - 1]!.role}${again}.`;
  emit({ type: "notice", run, level: "info", message });
}

/** Warns of what stages ask for and will be refused, since no one can approve calls. */
function warnOfRefusals({ name, stages }: TeamPlan, agents: Agents, { emit }: CallHooks): void {
  const roles = new Map(stages.map(({ agent }) => [agent.name, agent]));
  const refused = [...roles.values()].flatMap((role) =>
    agents.refusedTo(role).map(([category, got]) => ({
      label: `${category} (${got})`,
      role: role.name,
      reason: got === "ask" && role.objections[category] || "the configuration does not allow it",
    }))
  );
  for (const [reason, group] of Map.groupBy(refused, (each) => each.reason)) {
    const list = (field: "label" | "role") =>
      [...new Set(group.map((each) => each[field]))].join(", ");
    const message =
      `Team ${name}: calls of ${list("role")} will be refused (${list("label")}), and no one can ` +
      `approve them: ${reason}. See: svc roles show ${group[0]!.role}`;
    emit({ type: "notice", run: agents.run, level: "warning", message });
  }
}

/** @throws SvcError `team_failed`, or TurnFailure `refused`, when the turn of a stage did not end well */
export function checkEnd(number: number, { run, result }: StepEnd): void {
  const { status, errors } = result;
  const stage = `Stage ${number}, ${run.role} (#${run.id}, session ${run.session}),`;
  if (status === "ok" || status === "truncated") {
    if (!refusedThroughout(result)) return;
    const reason = `could do nothing: all its calls were refused: ${result.refused.join(", ")}`;
    throw new TurnFailure("refused", `${stage} ${reason}`);
  }
  const why = errors.map(({ message }) => `: ${message}`).join("");
  throw new SvcError("team_failed", `${stage} ended with status ${status}${why}`);
}
