import { SvcError, usageError } from "../platform/error.ts";
import { type Authority, authorityUnder, clamped } from "../policy/carve.ts";
import type { Grants } from "../policy/gate.ts";
import type { Operator } from "../policy/operator.ts";
import { approveModels } from "../providers/approvals.ts";
import { parseModelRef } from "../providers/refs.ts";
import { type Backend, resolveBackend } from "../providers/resolve.ts";
import type { Session } from "../sessions/session.ts";
import { Engine } from "./engine.ts";
import type { TurnEvent, TurnResult } from "./events.ts";
import type { Run, RunRegistry } from "./runs.ts";
import type { AgentRole, Workspace } from "./workspace.ts";

/** How far down agents may start agents: one that the root starts is at depth 1. */
const MAX_DEPTH = 3;

/** What the agents of one tree have in common. */
export interface Tree {
  workspace: Workspace;
  runs: RunRegistry;
  operator: Operator;
  headless: boolean;
  /** Models that a role refers to count as approved by the operator. */
  approve_models: boolean;
}

/** One agent of a tree. */
export interface Agent {
  session: Session;
  run: number;
  role?: AgentRole;
  authority: Authority;
  backend: Backend;
  /** Names of the sessions from the root's to this agent's own. */
  lineage: string[];
  /** What its operator has approved for the rest of the session so far. */
  grants?: Grants;
}

/** What an agent is to do for another. */
export interface Delegation {
  role: string;
  task: string;
  skills?: string[];
  /** An agent to go on with. */
  resume?: string;
  context?: "continue" | "compact" | "new";
}

/** The engine of an agent. */
export function agentEngine(tree: Tree, agent: Agent): Engine {
  const { workspace, runs, operator, headless } = tree;
  const { config, tools, guard, clock, asks } = workspace;
  const { session, run, role, authority, backend, grants } = agent;
  return new Engine({
    worktree: workspace.paths.worktree,
    config,
    clock,
    tools,
    guard,
    asks,
    runs,
    operator,
    headless,
    session,
    run,
    role: role?.prompt,
    grants,
    settings: authority.own,
    provider: workspace.connect(backend, session.id || session.name),
    agents: new Agents(tree, agent),
  });
}

/** Starts agents under another (specification 4.8 `delegate`, 5.3.6). */
export class Agents {
  readonly #tree: Tree;
  readonly #caller: Agent;

  constructor(tree: Tree, caller: Agent) {
    this.#tree = tree;
    this.#caller = caller;
  }

  /** The names of the roles there are. */
  async roles(): Promise<string[]> {
    const catalog = await this.#tree.workspace.catalog();
    return catalog.list("role").map(({ name }) => name);
  }

  /**
   * Has an agent run one turn on a task, in a sub-session of its own or in the one that is resumed. Its
   * events are emitted with its own run's number, between `run_started` and `run_finished`.
   *
   * @returns the agent's answer and its handle, or a text that starts with `Error:` and names how the
   * turn ended and its session.
   * @throws SvcError when no turn can be started: the role, its model, the target of `resume`, the depth
   */
  async delegate(
    { role: name, task, skills, resume, context = "continue" }: Delegation,
    { signal, emit }: { signal: AbortSignal; emit: (event: TurnEvent) => void },
  ): Promise<string> {
    const { workspace, runs } = this.#tree;
    const { lineage, authority: { ceiling } } = this.#caller;
    if (lineage.length > MAX_DEPTH) {
      throw new SvcError("too_deep", `Agents start agents ${MAX_DEPTH} levels deep at most.`);
    }
    const role = await workspace.role(name, skills);
    const backend = await backendFor(role.model, this.#caller.backend, this.#tree);
    const target = context === "new" || !resume ? undefined : this.#target(resume);
    const { session: parent, run: parentRun } = this.#caller;
    const session = target === undefined
      ? workspace.sessions.create("sub", { parent_id: parent.name, role: name })
      : workspace.sessions.open(target.session);
    try {
      if (target === undefined) parent.addSubSession(session.name);
      const run = target?.run
        ? runs.resume(target.run.id, { role: name, task })
        : runs.start({ parent: parentRun, role: name, session, task });
      // Sub-agents run in build mode, whatever the root's: what that denies is in the ceiling (5.3.2).
      const authority = authorityUnder({ ...ceiling, mode: "build" }, role);
      const engine = agentEngine(this.#tree, {
        session,
        run: run.id,
        role,
        authority,
        backend,
        lineage: [...lineage, session.name],
      });
      emit({
        type: "run_started",
        run: run.id,
        parent: parentRun,
        role: name,
        session: session.name,
        task,
      });
      try {
        if (target !== undefined && context === "compact") {
          await this.#compact(session, backend, signal);
        }
        let result: TurnResult | undefined;
        for await (const event of engine.turn(task, { signal })) {
          emit(event);
          if (event.type === "turn_finished" && event.run === run.id) result = event.result;
        }
        return report(run, result!, clamped(authority.own, role));
      } finally {
        runs.finish(run.id, signal.aborted ? "cancelled" : "error"); // when there was no turn
        emit({ type: "run_finished", run: run.id, status: run.status });
        await engine.close();
      }
    } finally {
      session.close();
    }
  }

  /** The session that is resumed, and its run when it is one of this tree. */
  #target(resume: string): { session: string; run?: Run } {
    const { workspace: { sessions }, runs } = this.#tree;
    const run = runs.resolve(resume);
    const session = run?.session ?? sessions.findById(resume) ?? resume.replace(/^session:/, "");
    if (this.#caller.lineage.includes(session)) {
      throw usageError(
        "cycle",
        `${session} is this agent's own session, or that of one it works for, and cannot be resumed.`,
      );
    }
    if (runs.list().some((each) => each.session === session && each.status === "running")) {
      throw usageError("run_busy", `The run in session ${session} has not finished yet.`);
    }
    if (sessions.read(session) === undefined) {
      throw usageError("unknown_run", `There is no run or session ${JSON.stringify(resume)}.`);
    }
    return { session, run };
  }

  async #compact(session: Session, backend: Backend, signal: AbortSignal): Promise<void> {
    const { workspace } = this.#tree;
    const { compact } = await import("./compaction.ts");
    const provider = workspace.connect(backend, session.id || session.name);
    try {
      await compact({ provider, session, keep: workspace.config.get("compact_keep"), signal });
    } finally {
      await provider.close?.();
    }
  }
}

/** The caller's backend, or the one that the role's model is served by. */
export async function backendFor(model: string, own: Backend, tree: Tree): Promise<Backend> {
  if (model === "") return own;
  const { providers, connections, models } = tree.workspace;
  const ref = parseModelRef(model, providers, connections);
  if (ref.provider === "") return { ...own, model };
  await approveModels([ref], models, { granted: tree.approve_models });
  if (ref.provider === own.provider) return { ...own, model: ref.model };
  return resolveBackend({ ...ref, base_url: "" }, providers, connections);
}

/** What the caller's model reads. */
function report({ id, role }: Run, result: TurnResult, clamps: string[]): string {
  const { status, session, content, errors } = result;
  if (status !== "ok" && status !== "truncated") {
    const why = errors.map(({ message }) => `: ${message}`).join("");
    return `Error: the agent ${role} (#${id}, session ${session}) ended with status ${status}${why}`;
  }
  const less = clamps.length === 0 ? "" : `; had less than its role asks for: ${clamps.join(", ")}`;
  return `${content}\n\n[${role} #${id}, session ${session}${less}]`;
}
