import { SvcError, usageError } from "../../platform/error.ts";
import type { CallHooks, StepEnd } from "../agents/agent.ts";
import type { Agents } from "../agents/agents.ts";
import type { Target } from "../agents/resume.ts";
import { earlierSessions, stageBrief, stageOf, type StageResult } from "./brief.ts";
import { rememberTeam } from "./memory.ts";
import type { TeamPlan } from "./plan.ts";
import { passes } from "./verdict.ts";

/** What a team is to do. */
export interface TeamTask {
  task: string;
  /** A stage's session to go on from. */
  resume?: string;
  context?: "continue" | "compact" | "new";
}

/** What a team came to. */
export interface TeamEnd {
  /** How its last stage ended. */
  status: "ok" | "truncated";
  /** The last stage's answer. */
  content: string;
  /** The newest run of each stage, in the stages' order. */
  stages: StepEnd[];
  /** How its review went; undefined for a team without a loop. */
  review?: { rounds: number; passed: boolean };
}

/**
 * Has the stages of a team work on a task in their order, each as an agent under the caller. Where the team
 * has a loop, its stages are gone through again until the last of them passes the work; when that does not
 * come within `max_iterations`, the team goes on all the same.
 *
 * In a further round every stage starts in a session of its own again: what it is told (its own last
 * result and the findings among it) is bounded, however long the rounds before were, and the work is
 * reviewed as it is, not as it is remembered. What the stages came to, the team remembers.
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
    target = agents.target(resume);
    number = resumedStage(agents, plan, target, results);
  }
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

/** What the caller's model reads: the answer, and a line about who worked on it. */
export function teamReport(plan: TeamPlan, end: TeamEnd): string {
  return `${end.content}\n\n[${teamLine(plan, end)}]`;
}

/** Who worked on it, how the review went, and who had less than its role asks for. */
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
  const less = stages.filter(({ clamps }) => clamps.length > 0).map(({ run, clamps }) =>
    `${run.role} had less than its role asks for: ${clamps.join(", ")}`
  );
  return `team ${name}: ${[chain.join(" > "), ...judged, ...less].join("; ")}`;
}

/**
 * The stage that a session belongs to; what the stages before it had come to then is added to `results`.
 *
 * @throws SvcError `not_a_stage`
 */
function resumedStage(
  { workspace: { sessions } }: Agents,
  { name, stages }: TeamPlan,
  { session }: Target,
  results: Map<number, StageResult>,
): number {
  const document = sessions.read(session)!; // a target can be read
  const number = stageOf(document, name);
  if (number === undefined || stages[number - 1]?.role !== document.role) {
    throw usageError("not_a_stage", `The session ${session} is none of the team's stages.`);
  }
  for (const [earlier, other] of earlierSessions(document)) {
    const found = sessions.read(other);
    // A result may hold what looks like a heading: only a stage of the same team's work is meant.
    if (found?.parent_id !== document.parent_id || stageOf(found, name) !== earlier) continue;
    const texts = found.turns.at(-1)?.parts.filter((part) => part.type === "text") ?? [];
    const text = texts.at(-1)?.text ?? "";
    if (earlier < number) {
      results.set(earlier, { number: earlier, session: other, text, stale: false });
    }
  }
  return number;
}

/** What a stage is shown of the others and, in a further round, of itself; the review stands apart. */
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

/** @throws SvcError `team_failed` */
function checkEnd(number: number, { run, result }: StepEnd): void {
  const { status, errors } = result;
  if (status === "ok" || status === "truncated") return;
  const why = errors.map(({ message }) => `: ${message}`).join("");
  throw new SvcError(
    "team_failed",
    `Stage ${number}, ${run.role} (#${run.id}, session ${run.session}), ended with status ` +
      `${status}${why}`,
  );
}
