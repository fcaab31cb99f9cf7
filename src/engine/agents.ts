import type { Catalog } from "../catalog/catalog.ts";
import { SvcError, usageError } from "../platform/error.ts";
import type { ConfigView, ToolDefinition } from "../plugins/api.ts";
import { unusableUnder, type UseOptions } from "../policy/deno_permissions.ts";
import { Grants } from "../policy/grants.ts";
import type { Operator } from "../policy/operator.ts";
import {
  type AskPolicy,
  type Authority,
  authorityUnder,
  childAuthority,
  clamped,
  CONFINED,
  dependsOnSandbox,
  openActions,
  openingObjections,
  type RolePermissions,
  rootCeiling,
} from "../policy/roles.ts";
import { approveModels } from "../providers/model_approval.ts";
import { type Backend, type ModelRef, roleBackend } from "../providers/resolve.ts";
import type { Session } from "../sessions/session.ts";
import type { Meter } from "./meter.ts";
import type { TreeChanges } from "./changes.ts";
import { type AgentPrompt, directory } from "./context.ts";
import type { TurnResult } from "./events.ts";
import type { MemorizeRequest } from "./memorize.ts";
import { Questions } from "./questions.ts";
import type { Run, RunRegistry, RunStage } from "./runs.ts";
import type { AgentLinks } from "./scope.ts";
import type { TurnTask } from "./task.ts";
import type { CallHooks, Delegation, TeamDelegation } from "./tools/core.ts";
import { Engine } from "./turn.ts";
import type { Workspace } from "./workspace.ts";

/** What the agents of one tree share. */
export interface Tree {
  workspace: Workspace;
  runs: RunRegistry;
  operator: Operator;
  headless: boolean;
  /** Whether the models that roles refer to are approved. */
  approve_models: boolean;
  /** The backends of the setting `model_fallback`. */
  fallbacks: Backend[];
  /** Whether svc's own state and settings are closed to them (specification 5.3.9). Default: false. */
  immutable?: boolean;
  changes: TreeChanges;
}

/** What a role makes of an agent (specification 2.12). */
export interface AgentRole extends RolePermissions {
  name: string;
  prompt: AgentPrompt;
  /** Its `ask_policy`; the configuration's applies for the rest. */
  ask_policy?: Partial<AskPolicy>;
  /** A model id or ref; empty: the configured one. */
  model: string;
  /** Why its role does not open categories that it allows, by category. */
  objections: Record<string, string>;
  /** The roles of its ancestors, the outermost first, where it continues without them. */
  ancestors?: RolePermissions[];
}

/** One agent of a tree. */
export interface Agent {
  session: Session;
  run: number;
  role?: AgentRole;
  /** A job's sections of the system prompt, and the memory of its runs. */
  job?: string[];
  memory?: string;
  authority: Authority;
  backend: Backend;
  /** Names of the sessions from the root's to this agent's own. */
  lineage: string[];
  /** Names of the teams that it works in, the outermost first. Default: none. */
  teams?: string[];
  /** Its grants for the rest of the session so far. */
  grants?: Grants;
  /** The agent that started this one; the root has none. */
  lead?: Lead;
}

/** An agent as the agents that it started know it. */
export type Lead = Pick<Agent, "run" | "role" | "backend" | "lead"> & {
  session: Pick<Session, "name" | "id">;
};

/** One turn of an agent under another. */
export interface Step extends Pick<Delegation, "task" | "context"> {
  role: AgentRole;
  backend: Backend;
  /** The session to continue; left out: a new session. */
  target?: Target;
  /** The stage of a team that the turn is. */
  stage?: RunStage;
  /** The schema that its answer must satisfy. Default: none. */
  terms?: Pick<TurnTask, "schema">;
}

/** The end of a step. */
export interface StepEnd {
  run: Run;
  result: TurnResult;
  /** The categories in which the agent had less than its role requests. */
  clamps: string[];
}

/**
 * What a role of the catalog makes of an agent: its prompt with further skills and its memory, its permissions.
 *
 * @throws SvcError (exit 2) when there is no such role, or no skill or file that it names
 */
export async function agentRole(
  workspace: Workspace,
  name: string,
  skills?: string[],
): Promise<AgentRole> {
  const catalog = await workspace.catalog();
  const { ask_policy, model } = catalog.need("role", name).value;
  const prompt = { ...catalog.prompt(name, skills), memory: workspace.memory.block("role", name) };
  return { name, prompt, ...await rolePermissions(workspace, catalog, name), ask_policy, model };
}

/**
 * The permissions of a role of the catalog, with `open` where its author may open a category.
 *
 * @param full whether a full sandbox is in force. Default: the workspace's sandbox is tried out, if that matters
 */
async function rolePermissions(
  workspace: Workspace,
  catalog: Catalog,
  name: string,
  full?: boolean,
): Promise<RolePermissions & Pick<AgentRole, "objections">> {
  const { tool_permission, grant_permission, accepted } = catalog.need("role", name).value;
  const own = [tool_permission, catalog.permissionOrigins(name, "tool_permission")] as const;
  const handed = [
    grant_permission ?? {},
    catalog.permissionOrigins(name, "grant_permission"),
  ] as const;
  const sandboxed = (dependsOnSandbox(...own) || dependsOnSandbox(...handed)) &&
    (full ?? await workspace.sandbox.full());
  return {
    tool_permission: openActions(...own, sandboxed),
    grant_permission: grant_permission && openActions(...handed, sandboxed),
    accepted,
    objections: openingObjections(...own, sandboxed),
  };
}

/** The Deno permissions that neither an agent nor any agent under it can use, whichever roles these have. */
export async function unusableWithRoles(
  workspace: Workspace,
  authority: Authority,
  tools: ToolDefinition[],
  use: UseOptions,
): Promise<Deno.PermissionName[]> {
  const { config } = workspace;
  const verifies = use.verifies || config.get("dev.check_cmd").trim() !== "" ||
    Object.keys(config.get("hooks")).length > 0;
  use = { ...use, verifies };
  const names = unusableUnder(authority, tools, use);
  if (names.length === 0) return [];
  // What roles open in a sandbox runs programs, and needs nothing else.
  const sandboxed = names.includes("run") && await workspace.sandbox.full();
  return unusableUnder(await withRoleOpenings(workspace, authority, sandboxed), tools, use);
}

/** An authority whose ceiling has the categories that roles may open for its sub-agents. */
async function withRoleOpenings(
  workspace: Workspace,
  authority: Authority,
  sandboxed: boolean,
): Promise<Authority> {
  const catalog = await workspace.catalog();
  const usable = catalog.list("role").filter(({ broken }) => broken === undefined);
  const roles = await Promise.all(
    usable.map(({ name }) => rolePermissions(workspace, catalog, name, sandboxed)),
  );
  const actions = roles.flatMap(({ tool_permission, grant_permission = {} }) => [
    ...Object.entries(tool_permission),
    ...Object.entries(grant_permission),
  ]);
  // Roles of plugins that are not loaded yet open the same.
  const confined = sandboxed ? CONFINED : [];
  const open = Object.fromEntries([
    ...actions.filter(([, action]) => action === "open"),
    ...confined.map((category) => [category, "open"] as const),
  ]);
  return {
    ...authority,
    ...authorityUnder(authority, { tool_permission: open }),
    own: authority.own,
  };
}

/** What a root agent may do and hand down: the settings in their mode, under its role and its ancestors' roles. */
export function authorityOf(config: ConfigView, role?: AgentRole): Authority {
  const roles = role === undefined ? [] : [...role.ancestors ?? [], role];
  const [first = { tool_permission: {} }, ...others] = roles;
  return others.reduce(
    (authority, each) => childAuthority(config, authority, each),
    authorityUnder(rootCeiling(config, config.get("mode")), first),
  );
}

/** How far down agents may start agents: one that the root starts is at depth 1. */
const MAX_DEPTH = 3;

/** The engine of an agent. */
export function agentEngine(tree: Tree, agent: Agent): Engine {
  const { workspace, runs, operator, headless, fallbacks } = tree;
  const { config, tools, clock, paths: { worktree } } = workspace;
  const guard = (tree.immutable ? workspace.guard.sealed() : workspace.guard).of(agent.lineage);
  const { session, run, role, job, memory, authority, backend, grants = new Grants() } = agent;
  const session_id = session.id || session.name;
  const others = fallbacks.filter(({ base_url, model }) =>
    base_url !== backend.base_url || model !== backend.model
  );
  const team = agent.teams?.at(-1) ?? "";
  const origin = { session: session.name, role: role?.name ?? "", team };
  const meter = workspace.spending.meter(origin);
  return new Engine({
    session,
    runs,
    run,
    provider: workspace.connect(backend, session_id, meter),
    meter,
    used: () => workspace.noteUse(backend),
    fallbacks: others.map((other) => ({
      provider: workspace.connect(other, session_id, meter),
      used: () => workspace.noteUse(other),
    })),
    tools,
    rights: { settings: authority.own, limit: authority.limit, grants, guard, operator, headless },
    prompt: { worktree, role: role?.prompt, job, memory },
    links: links(tree, agent, grants),
    config,
    clock,
    pace: workspace.pace,
    windows: workspace.windows,
    sandbox: workspace.sandbox,
    commands: workspace.commands,
    changes: tree.changes,
    mask: (text) => workspace.mask(text),
    key: (name, address) => workspace.key(name, address),
    environment: () => workspace.environmentServices(),
    // A prompt of another agent was written by a model, which has web_search where it needs it.
    search: agent.lead === undefined ? () => workspace.search() : undefined,
  });
}

function links(tree: Tree, agent: Agent, grants: Grants): AgentLinks {
  const { runs, workspace, immutable = false } = tree;
  const agents = new Agents(tree, agent);
  const questions = new Questions(tree, agent, grants);
  return {
    directory: (listed) => agents.directory(listed),
    obtainable: (categories) => questions.obtainable(categories),
    actions: (categories, hooks) => ({
      run: agent.run,
      runs,
      categories,
      immutable,
      ask: (question) => questions.direction(question, hooks),
      askHuman: (asked, signal = hooks.signal) =>
        questions.human(asked, { ...hooks, signal: AbortSignal.any([hooks.signal, signal]) }),
      askPermission: (category, question) => questions.permission(category, question, hooks),
      delegate: (delegation) => agents.delegate(delegation, hooks),
      team: (delegation) => agents.team(delegation, hooks),
      async roles() {
        const catalog = await workspace.catalog();
        return catalog.list("role").map(({ name }) => name);
      },
      catalog: () => workspace.catalog(),
      async approvalNeeded(change) {
        const { approvalNeeded } = await import("./tools/catalog_approval.ts");
        return await approvalNeeded(change, agents);
      },
      emit: hooks.emit,
    }),
  };
}

/** Starts agents under another (specification 4.8 `delegate`, 5.3.6). */
export class Agents {
  readonly #tree: Tree;
  readonly #caller: Agent;

  constructor(tree: Tree, caller: Agent) {
    this.#tree = tree;
    this.#caller = caller;
  }

  /** The roles and teams that can work for the caller, and its skills, for its prompt; see {@linkcode directory}. */
  async directory(listed: { role: boolean; team: boolean; skill: boolean }): Promise<string> {
    const starts = this.#caller.lineage.length <= MAX_DEPTH;
    const { skill } = listed;
    const [role, team] = [starts && listed.role, starts && listed.team];
    if (!(role || team || skill)) return "";
    const { worktree } = this.workspace.paths;
    return directory(await this.workspace.catalog(), { role, team, skill }, worktree);
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

  /** The caller's run. */
  get run(): number {
    return this.#caller.run;
  }

  /** What a role asks for and will be refused in a run in which no one can approve calls; see {@linkcode clamped}. */
  refusedTo(role: AgentRole): ReturnType<typeof clamped> {
    if (!this.#tree.headless) return [];
    return clamped(childAuthority(this.workspace.config, this.authority, role).own, role);
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
    if (resume) await this.workspace.sessions.current(resume);
    const target = context === "new" || !resume ? undefined : this.target(resume);
    return report(await this.perform({ role, backend: backend!, task, target, context }, hooks));
  }

  /**
   * Has a team do a task.
   *
   * @returns the last stage's answer and a line about the team, or a text that starts with `Error:`
   * @throws as {@linkcode runTeam} does
   */
  async team(
    { name, task, skills, resume, context }: TeamDelegation,
    hooks: CallHooks,
  ): Promise<string> {
    this.checkDepth();
    const { planTeam, runTeam, teamReport } = await import("./teams.ts");
    const plan = await planTeam(this, name, skills);
    return teamReport(plan, await runTeam(plan, { task, resume, context }, this, hooks));
  }

  /**
   * Runs one turn, in a sub-session of its own or in the one that is resumed. Its events are emitted with
   * its own run's number, between `run_started` and `run_finished`.
   *
   * @throws SvcError when no turn can be started
   */
  async perform(
    { role, backend, task, target, context = "continue", stage, terms }: Step,
    { signal, emit, deny, quota_wait, meter }: CallHooks,
  ): Promise<StepEnd> {
    this.checkDepth();
    const { workspace, runs } = this.#tree;
    const { session: parent, run: parentRun, lineage, authority } = this.#caller;
    const account = meter.account?.child();
    workspace.spending.checkPrices([backend], meter.account?.root.task);
    const rights = childAuthority(workspace.config, authority, role, stage?.mode);
    // What a stage's mode denies was chosen by the team: it is not reported as missing.
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
        authority: rights,
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
          await compactFirst(workspace, session, backend, signal, meter);
        }
        let result: TurnResult | undefined;
        const options = { signal, quota_wait, account, task: { ...account?.task, ...terms } };
        for await (const event of engine.turn(task, options)) {
          emit(event);
          if (event.type === "turn_finished" && event.run === run.id) result = event.result;
        }
        deny?.(result!.denied);
        const remembers = workspace.memory.enabled("role") && !rights.own.read_only;
        if (remembers && result!.status !== "cancelled") {
          const turns = (await session.turns()).slice(-1);
          const session_id = session.id || session.name;
          const ended = outcome(result!);
          this.remember({
            scope: "role",
            name: role.name,
            turns,
            ended,
            backend,
            session_id,
            session: session.name,
          });
        }
        return {
          run,
          result: result!,
          clamps: clamps.map(([category, got]) => `${category} (${got})`),
        };
      } finally {
        runs.finish(run.id, signal.aborted ? "cancelled" : "error"); // when there was no turn
        await workspace.commands.end(session.name);
        emit({ type: "run_finished", run: run.id, status: run.status });
        await engine.close();
      }
    } finally {
      session.close();
    }
  }

  /**
   * Updates the memory of a role or a team in the background (specification 2.12). Plan mode leaves it as it is.
   *
   * @param request.backend whose model writes it, asked in the name of `session_id`. Default: the caller's
   */
  remember(
    request:
      & Pick<MemorizeRequest, "scope" | "name" | "turns" | "ended">
      & Partial<Pick<MemorizeRequest, "backend" | "session_id" | "session">>,
  ): void {
    const { workspace } = this.#tree;
    const { backend, session } = this.#caller;
    if (!workspace.memory.enabled(request.scope) || this.authority.own.read_only) return;
    const session_id = session.id || session.name;
    workspace.background.start(async (signal) => {
      const { memorize } = await import("./memorize.ts");
      await memorize({ workspace, backend, session_id, session: session.name, ...request, signal });
    }, `memory of ${request.name}`);
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

/** What an agent had less than its role requests, and which of its calls were refused; empty for none. */
export function shortfall({ clamps, result: { refused } }: StepEnd): string {
  return [
    ...clamps.length > 0 ? [`had less than its role asks for: ${clamps.join(", ")}`] : [],
    ...refused.length > 0 ? [`was refused: ${refused.join(", ")}`] : [],
  ].join("; ");
}

/** Whether an agent made calls and all of them were refused. */
export function refusedThroughout({ tool_calls }: TurnResult): boolean {
  return tool_calls.length > 0 && tool_calls.every(({ refused }) => refused);
}

/** The result of the tool `delegate`. */
function report(end: StepEnd): string {
  const { run: { id, role }, result } = end;
  const { status, session, content, errors } = result;
  if (status !== "ok" && status !== "truncated") {
    const why = errors.map(({ message }) => `: ${message}`).join("");
    return `Error: the agent ${role} (#${id}, session ${session}) ended with status ${status}${why}`;
  }
  const less = shortfall(end);
  return `${content}\n\n[${role} #${id}, session ${session}${less && `; ${less}`}]`;
}

/** A session to go on in, and its run when it is one of this tree. */
export interface Target {
  session: string;
  run?: Run;
}

/**
 * What `#<run>`, `#<id>` or a session's name stands for that an agent wants to resume.
 *
 * @param lineage names of the sessions from the root's to the agent's own
 * @throws SvcError (exit 2) when there is no such run or session, it is one of the lineage, or it has not
 * finished yet
 */
export function resumed(
  handle: string,
  { workspace: { sessions }, runs }: { workspace: Workspace; runs: RunRegistry },
  lineage: readonly string[],
): Target {
  const run = runs.resolve(handle);
  const session = run?.session ?? sessions.findById(handle) ?? handle.replace(/^session:/, "");
  if (lineage.includes(session)) {
    throw usageError(
      "cycle",
      `${session} is this agent's own session, or that of one it works for, and cannot be resumed.`,
    );
  }
  if (runs.list().some((each) => each.session === session && each.status === "running")) {
    throw usageError("run_busy", `The run in session ${session} has not finished yet.`);
  }
  if (sessions.read(session) === undefined) {
    throw usageError("unknown_run", `There is no run or session ${JSON.stringify(handle)}.`);
  }
  return { session, run };
}

/** Has a session summarised before an agent continues it. */
async function compactFirst(
  workspace: Workspace,
  session: Session,
  backend: Backend,
  signal: AbortSignal,
  meter: Meter,
): Promise<void> {
  const { compact } = await import("./compaction.ts");
  const provider = workspace.connect(backend, session.id || session.name, meter);
  try {
    await compact({ provider, session, keep: workspace.config.get("compact_keep"), signal });
  } finally {
    await provider.close?.();
  }
}

/**
 * The backends that serve the models of roles, in their order; a role without a model is served by the
 * caller's. The operator is asked in one question for the models that are not approved yet, where there is one
 * (specification 5.2).
 *
 * @throws SvcError `model_not_approved` (exit 2); then none of them is approved
 */
export async function roleBackends(
  models: string[],
  { workspace, caller, operator, approve_models }: {
    workspace: Workspace;
    /** The caller's backend. */
    caller: Backend;
    operator: Operator;
    approve_models: boolean;
  },
): Promise<Backend[]> {
  const backends = models.map((model) => roleBackend(model, caller, workspace));
  const refs = backends.flatMap(({ ref }) => ref ?? []);
  const ask = approvalQuestion(operator, workspace);
  await approveModels(refs, workspace.models, { granted: approve_models, ask });
  return backends;
}

/** Asks the operator to approve models; undefined where the operator cannot be asked. */
export function approvalQuestion(
  operator: Operator,
  { config }: Workspace,
): ((models: ModelRef[]) => Promise<boolean>) | undefined {
  if (operator.approveModels === undefined || config.get("unattended")) return undefined;
  return (models) => operator.approveModels!(models.map(refText));
}

function refText({ provider, model }: ModelRef): string {
  return `${provider}/${model}`;
}

/** How a turn ended, as a memory notes it: well or not, and its answer or its errors. */
export function outcome(
  { status, content, errors }: TurnResult,
): { ok: boolean; text: string } {
  const text = content || errors.map(({ message }) => message).join("; ");
  return { ok: status === "ok" || status === "truncated", text };
}
