import { SvcError } from "../../platform/error.ts";
import { Grants } from "../../policy/gate.ts";
import { type Authority, childAuthority, clamped } from "../../policy/roles.ts";
import type { Backend } from "../../providers/resolve.ts";
import { Engine } from "../engine.ts";
import type { TurnResult } from "../events.ts";
import { Questions } from "../questions/questions.ts";
import type { Workspace } from "../workspace.ts";
import {
  type Agent,
  agentRole,
  type CallHooks,
  type Delegation,
  type Step,
  type StepEnd,
  type Tree,
} from "./agent.ts";
import { directory } from "./directory.ts";
import type { MemorizeRequest } from "./memorize.ts";
import { outcome } from "./outcome.ts";
import { compactFirst, resumed, type Target } from "./resume.ts";
import { roleBackends } from "./role_backend.ts";

/** How far down agents may start agents: one that the root starts is at depth 1. */
const MAX_DEPTH = 3;

/** The engine of an agent. */
export function agentEngine(tree: Tree, agent: Agent): Engine {
  const { workspace, runs, operator, headless } = tree;
  const { config, tools, clock } = workspace;
  const guard = tree.immutable ? workspace.guard.sealed() : workspace.guard;
  const { session, run, role, job, authority, backend, grants = new Grants() } = agent;
  return new Engine({
    worktree: workspace.paths.worktree,
    config,
    clock,
    tools,
    guard,
    runs,
    operator,
    headless,
    session,
    run,
    role: role?.prompt,
    job,
    settings: authority.own,
    limit: authority.limit,
    grants,
    questions: new Questions(tree, agent, grants),
    provider: workspace.connect(backend, session.id || session.name),
    used: () => workspace.noteUse(backend),
    agents: new Agents(tree, agent),
    key: (name, address) => workspace.key(name, address),
    // What an agent is told by another was written by a model, which has web_search where it needs it.
    search: agent.lead === undefined ? () => workspace.search() : undefined,
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

  /** Who can work for the caller, for its prompt; see {@linkcode directory}. */
  async directory(offered: { delegate: boolean; team: boolean }): Promise<string> {
    if (this.#caller.lineage.length > MAX_DEPTH || !(offered.delegate || offered.team)) return "";
    return directory(await this.#tree.workspace.catalog(), offered);
  }

  /** Names of the teams that the caller works in, the outermost first. */
  get teams(): readonly string[] {
    return this.#caller.teams ?? [];
  }

  get workspace(): Workspace {
    return this.#tree.workspace;
  }

  /** What the caller may do and hand down. */
  get authority(): Authority {
    return this.#caller.authority;
  }

  /** Whether no agent of this tree may change svc's own state and settings. */
  get immutable(): boolean {
    return this.#tree.immutable ?? false;
  }

  /** The caller's run. */
  get run(): number {
    return this.#caller.run;
  }

  /** @throws SvcError `too_deep` when the caller may start no agent */
  checkDepth(): void {
    if (this.#caller.lineage.length <= MAX_DEPTH) return;
    throw new SvcError("too_deep", `Agents start agents ${MAX_DEPTH} levels deep at most.`);
  }

  /**
   * Has an agent do a task.
   *
   * @returns the agent's answer and its handle, or a text that starts with `Error:` and names how the
   * turn ended and its session.
   * @throws SvcError when no turn can be started: the role, its model, the target of `resume`, the depth
   */
  async delegate(
    { role: name, task, skills, resume, context }: Delegation,
    hooks: CallHooks,
  ): Promise<string> {
    this.checkDepth();
    const role = await agentRole(this.workspace, name, skills);
    const [backend] = await this.backends([role.model]);
    const target = context === "new" || !resume ? undefined : this.target(resume);
    return report(await this.perform({ role, backend: backend!, task, target, context }, hooks));
  }

  /**
   * Runs one turn, in a sub-session of its own or in the one that is resumed. Its events are emitted with
   * its own run's number, between `run_started` and `run_finished`.
   *
   * @throws SvcError when no turn can be started
   */
  async perform(
    { role, backend, task, target, context = "continue", stage }: Step,
    { signal, emit }: CallHooks,
  ): Promise<StepEnd> {
    this.checkDepth();
    const { workspace, runs } = this.#tree;
    const { session: parent, run: parentRun, lineage, authority } = this.#caller;
    // A stage's mode is the team's own choice, and nothing that its role lacks.
    const clamps = clamped(childAuthority(workspace.config, authority, role).own, role);
    const session = target === undefined
      ? workspace.sessions.create("sub", { parent_id: parent.name, role: role.name })
      : workspace.sessions.open(target.session);
    try {
      if (target === undefined) parent.addSubSession(session.name);
      const run = target?.run
        ? runs.resume(target.run.id, { role: role.name, task, stage }, parentRun)
        : runs.start({ parent: parentRun, role: role.name, session, task, stage });
      const engine = agentEngine(this.#tree, {
        session,
        run: run.id,
        role,
        authority: childAuthority(workspace.config, authority, role, stage?.mode),
        backend,
        lineage: [...lineage, session.name],
        teams: stage === undefined ? [...this.teams] : [...this.teams, stage.team],
        lead: this.#caller,
      });
      emit({
        type: "run_started",
        run: run.id,
        parent: parentRun,
        role: role.name,
        session: session.name,
        task,
      });
      try {
        if (target !== undefined && context === "compact") {
          await compactFirst(workspace, session, backend, signal);
        }
        let result: TurnResult | undefined;
        for await (const event of engine.turn(task, { signal })) {
          emit(event);
          if (event.type === "turn_finished" && event.run === run.id) result = event.result;
        }
        if (workspace.memory.enabled("role") && result!.status !== "cancelled") {
          const turns = (await session.turns()).slice(-1);
          const session_id = session.id || session.name;
          const ended = outcome(result!);
          this.remember({ scope: "role", name: role.name, turns, ended, backend, session_id });
        }
        return { run, result: result!, clamps };
      } finally {
        runs.finish(run.id, signal.aborted ? "cancelled" : "error"); // when there was no turn
        emit({ type: "run_finished", run: run.id, status: run.status });
        await engine.close();
      }
    } finally {
      session.close();
    }
  }

  /**
   * Has a role or a team remember what has ended, beside what the caller does next (specification 2.12).
   *
   * @param request.backend whose model writes it, asked in the name of `session_id`. Default: the caller's
   */
  remember(
    request:
      & Pick<MemorizeRequest, "scope" | "name" | "turns" | "ended">
      & Partial<Pick<MemorizeRequest, "backend" | "session_id">>,
  ): void {
    const { workspace } = this.#tree;
    const { backend, session } = this.#caller;
    if (!workspace.memory.enabled(request.scope)) return;
    const session_id = session.id || session.name;
    workspace.background.start(async (signal) => {
      const { memorize } = await import("./memorize.ts");
      await memorize({ workspace, backend, session_id, ...request, signal });
    });
  }

  /** The backends of roles that the caller starts; see {@linkcode roleBackends}. */
  backends(models: string[]): Promise<Backend[]> {
    const { workspace, operator, approve_models } = this.#tree;
    const caller = this.#caller.backend;
    return roleBackends(models, { workspace, operator, approve_models, caller });
  }

  /**
   * What a handle stands for that is to be resumed; see {@linkcode resumed}.
   *
   * @throws SvcError (exit 2)
   */
  target(resume: string): Target {
    return resumed(resume, this.#tree, this.#caller.lineage);
  }
}

/** What the caller's model reads. */
function report({ run: { id, role }, result, clamps }: StepEnd): string {
  const { status, session, content, errors } = result;
  if (status !== "ok" && status !== "truncated") {
    const why = errors.map(({ message }) => `: ${message}`).join("");
    return `Error: the agent ${role} (#${id}, session ${session}) ended with status ${status}${why}`;
  }
  const less = clamps.length === 0 ? "" : `; had less than its role asks for: ${clamps.join(", ")}`;
  return `${content}\n\n[${role} #${id}, session ${session}${less}]`;
}
