import type { UseOptions } from "../policy/deno_permissions.ts";
import type { Grants } from "../policy/grants.ts";
import type { Operator } from "../policy/operator.ts";
import { type Authority, childAuthority } from "../policy/roles.ts";
import { approveModels } from "../providers/model_approval.ts";
import type { Backend } from "../providers/resolve.ts";
import type { Session } from "../sessions/session.ts";
import type { SessionStore } from "../sessions/store.ts";
import {
  type Agent,
  agentEngine,
  type AgentRole,
  agentRole,
  Agents,
  approvalQuestion,
  authorityOf,
  type Lead,
  roleBackends,
  type Tree,
  unusableWithRoles,
} from "./agents.ts";
import { TreeChanges } from "./changes.ts";
import type { TurnEvent } from "./events.ts";
import { type Run, RunRegistry } from "./runs.ts";
import type { TurnTask } from "./task.ts";
import type { Engine, TurnOptions } from "./turn.ts";
import type { Workspace } from "./workspace.ts";

/**
 * How a front end wants its agent. Everything else is the same for all of them.
 *
 * | front end     | session             | role       | operator           | in addition                      |
 * | ------------- | ------------------- | ---------- | ------------------ | -------------------------------- |
 * | `svc run`     | `--session-id`, new | `--role`   | `--yes` or none    | `withdraw`                       |
 * | `serve`       | of the request, new | the owner  | none               | `immutable`                      |
 * | REPL          | its own, kept open  | `--role`   | the terminal       | `runs` and `grants` of before    |
 * | `acp`         | of the request, new | `--role`   | the editor's user  | `runs` and `grants` of before    |
 * | job           | the job's           | the job's  | none               | `immutable`, `job`               |
 * | `teams run`   | `--session-id`, new | the owner  | `--yes`, terminal  | `withdraw` outside a REPL        |
 * | `eval`        | new                 | none       | none               |                                  |
 *
 * MCP clients call tools without an agent, except for `run_agent`, whose agents are those of `serve`.
 */
export interface AgentRequest {
  /** Name or handle of the session to continue, or name of one to create. Default, and where empty: a new one. */
  session?: string;
  /** The role that the operator named. Default: the role that owns the session. */
  role?: string;
  operator: Operator;
  /** Whether no one can approve calls. The prompt then names what will be refused. */
  headless: boolean;
  /** Whether the operator named the model, which approves it (specification 5.2). Default: false. */
  model_named?: boolean;
  /** Whether all models that configuration and roles refer to are approved (5.2). Default: false. */
  approve_models?: boolean;
  /** Whether svc's own files and settings are closed to the agents, whatever is approved (5.3.9). Default: false. */
  immutable?: boolean;
  /**
   * Gives up the Deno permissions that the agent cannot use, for the rest of the process: for processes that
   * serve one agent. Default: false.
   */
  withdraw?: boolean;
  /** Whether the task has a command that verifies the work, which svc runs. Default: no. */
  verifies?: boolean;
  /** A job's sections of the system prompt, and the memory of its runs. */
  job?: string[];
  memory?: string;
  /** The task of the turns, whose cost budget needs a price. */
  task?: TurnTask;
  /** The runs and grants of an agent of this session that this one replaces. Default: none yet. */
  runs?: RunRegistry;
  grants?: Grants;
}

/**
 * Starts an agent: the role (with the rights of its session's owner), the backend, its approval, the session,
 * the run, and the engine. Plugins have been loaded by the caller.
 *
 * @throws SvcError (exit 2) for an unknown role, no backend, or a model that is not approved: no session has been
 * created then. As `SessionStore.open` does
 */
export async function startAgent(
  workspace: Workspace,
  request: AgentRequest,
): Promise<StartedAgent> {
  return await (await prepareAgent(workspace, request)).start();
}

/**
 * The first half of {@linkcode startAgent}, which creates nothing but the record of an approved model: for front
 * ends that check more before a session exists, or that keep an agent for as long as nothing has changed.
 */
export async function prepareAgent(
  workspace: Workspace,
  given: AgentRequest,
): Promise<PreparedAgent> {
  const session = given.session ? await workspace.sessions.locate(given.session) : undefined;
  const approve_models = given.approve_models || workspace.config.get("approve_models");
  const request = { ...given, session, approve_models };
  const { operator, model_named = false } = request;
  const role = await sessionRole(workspace, request);
  const backend = workspace.backend({ role_model: role?.model });
  workspace.spending.checkPrices([backend], request.task);
  await approveModels(backend.ref === undefined ? [] : [backend.ref], workspace.models, {
    granted: model_named || approve_models,
    ask: approvalQuestion(operator, workspace),
  });
  const fallbacks = await roleBackends(workspace.config.get("model_fallback"), {
    workspace,
    caller: backend,
    operator,
    approve_models,
  });
  workspace.spending.checkPrices(fallbacks, request.task);
  const prepared = new PreparedAgent(workspace, request, role, backend, fallbacks);
  if (request.withdraw) {
    const { headless, verifies } = request;
    await withdrawFor(workspace, prepared.authority, { yes: !headless, verifies });
  }
  return prepared;
}

/** Gives up the Deno permissions that neither an agent nor any agent under it can use, for the rest of the process. */
export async function withdrawFor(
  workspace: Workspace,
  authority: Authority,
  use: UseOptions,
): Promise<void> {
  for (const name of await unusableWithRoles(workspace, authority, workspace.tools.list(), use)) {
    Deno.permissions.revokeSync({ name });
  }
}

/**
 * Gives up the Deno permissions that the settings refuse to every tool, for the rest of the process, before code of
 * an external plugin is imported. To be passed to `Workspace.load` by a process that serves one agent.
 *
 * @param yes whether each `ask` is approved
 * @param verifies see {@linkcode AgentRequest}
 */
export function withdrawFirst(
  workspace: Workspace,
  yes: boolean,
  verifies = false,
): { beforeExternal(): Promise<void> } {
  return {
    beforeExternal: () =>
      withdrawFor(workspace, authorityOf(workspace.config), { yes, external: true, verifies }),
  };
}

/** An agent whose role, rights and backend are settled, and that has no session yet. */
export class PreparedAgent {
  readonly workspace: Workspace;
  readonly role: AgentRole | undefined;
  readonly authority: Authority;
  readonly backend: Backend;
  /** The teams that it works in: none. */
  readonly teams: readonly string[] = [];
  readonly #request: AgentRequest;
  readonly #fallbacks: Backend[];

  /** Only `prepareAgent` makes one. */
  constructor(
    workspace: Workspace,
    request: AgentRequest,
    role: AgentRole | undefined,
    backend: Backend,
    fallbacks: Backend[],
  ) {
    this.workspace = workspace;
    this.role = role;
    this.authority = authorityOf(workspace.config, role);
    this.backend = backend;
    this.#fallbacks = fallbacks;
    this.#request = request;
  }

  /** The backends of roles that the agent starts; see {@linkcode roleBackends}. */
  async backends(models: string[]): Promise<Backend[]> {
    const { workspace, backend } = this;
    const { operator, approve_models = false, task } = this.#request;
    const request = { workspace, caller: backend, operator, approve_models };
    const backends = await roleBackends(models, request);
    workspace.spending.checkPrices(backends, task);
    return backends;
  }

  /** The second half of {@linkcode startAgent}. */
  async start(): Promise<StartedAgent> {
    const agent = this.open();
    try {
      await agent.engine.load();
      return agent;
    } catch (error) {
      await agent.close();
      throw error;
    }
  }

  /**
   * As `start`, without reading the log before the first turn.
   *
   * @param opened the requested session where the caller has opened it, and closes it itself
   */
  open(opened?: Session): StartedAgent {
    const { workspace, role, authority, backend } = this;
    const { session: name, job, memory, grants } = this.#request;
    const { sessions } = workspace;
    workspace.background.start(() => workspace.trust.begin());
    const session = opened ??
      (name === undefined
        ? sessions.create("ses", { role: role?.name })
        : sessions.open(name, { role: role?.name }));
    const tree = this.#tree();
    const run = tree.runs.list()[0] ??
      tree.runs.start({ parent: 0, role: role?.name ?? "", session, task: "" });
    const lineage = [session.name];
    const agent = { session, run: run.id, role, job, memory, authority, backend, lineage, grants };
    return new StartedAgent(tree, agent, opened === undefined);
  }

  /**
   * Opens an agent that the requested one, or one that it started, has started: with the rights, the model and
   * the session that it had when it last began to work for another (specification 3.6).
   *
   * @throws SvcError when a role between the two is gone, or its model is not approved
   */
  async openRun(run: Run): Promise<StartedAgent> {
    const { workspace } = this;
    const tree = this.#tree();
    const line = [...tree.runs.line(run.id), run];
    let { role, authority, backend } = this;
    let lead: Lead | undefined;
    for (const [parent, each] of line.slice(1).entries()) {
      const { id: number, session: name, session_id: id } = line[parent]!;
      lead = { run: number, session: { name, id }, role, backend, lead };
      role = each.role === "" ? undefined : await agentRole(workspace, each.role);
      authority = childAuthority(workspace.config, authority, role, each.stage?.mode);
      const request = { ...tree, caller: backend };
      [backend] = await roleBackends([role?.model ?? ""], request) as [Backend];
    }
    await workspace.sessions.current(run.session);
    const session = workspace.sessions.open(run.session);
    const lineage = line.map((each) => each.session);
    const teams = line.flatMap(({ stage }) => stage === undefined ? [] : [stage.team]);
    const { grants } = this.#request;
    const agent = { session, run: run.id, role, authority, backend, lineage, teams, lead, grants };
    return new StartedAgent(tree, agent, true);
  }

  #tree(): Tree {
    const { workspace } = this;
    const { operator, headless, approve_models = false, immutable, runs } = this.#request;
    return {
      workspace,
      operator,
      headless,
      approve_models,
      fallbacks: this.#fallbacks,
      immutable,
      changes: new TreeChanges(workspace),
      runs: runs ?? new RunRegistry(workspace.config.get("run_buffer_max_lines")),
    };
  }
}

/** An agent on its session. Turns run one after another. */
export class StartedAgent {
  readonly workspace: Workspace;
  readonly session: Session;
  readonly run: number;
  readonly runs: RunRegistry;
  readonly backend: Backend;
  readonly authority: Authority;
  readonly changes: TreeChanges;
  /** Starts agents under this one. */
  readonly agents: Agents;
  readonly engine: Engine;
  readonly #owned: boolean;

  /** @param owned whether the session is closed with the agent */
  constructor(tree: Tree, agent: Agent, owned: boolean) {
    this.workspace = tree.workspace;
    this.runs = tree.runs;
    this.session = agent.session;
    this.run = agent.run;
    this.backend = agent.backend;
    this.authority = agent.authority;
    this.changes = tree.changes;
    this.agents = new Agents(tree, agent);
    this.engine = agentEngine(tree, agent);
    this.#owned = owned;
  }

  /** See {@linkcode Engine.turn}. */
  turn(prompt: string, options: TurnOptions = {}): AsyncGenerator<TurnEvent, void> {
    return this.engine.turn(prompt, options);
  }

  /** Releases the provider, and the session that it opened. Background tasks continue. */
  async close(): Promise<void> {
    await this.engine.close();
    if (this.#owned) this.session.close();
  }
}

/**
 * The role that an agent on a session runs as: the named one, else the one that owns the session, under the
 * roles that it worked for: their denials still hold.
 *
 * @throws SvcError (exit 2) when one of them is not in the catalog
 */
export async function sessionRole(
  workspace: Workspace,
  { role, session = "" }: Pick<AgentRequest, "role" | "session">,
): Promise<AgentRole | undefined> {
  if (role) return await agentRole(workspace, role);
  const owners = await ownersOf(workspace.sessions, session);
  const roles = await Promise.all(owners.map((name) => agentRole(workspace, name)));
  const own = roles.pop();
  return own && { ...own, ancestors: roles };
}

/** The names of the ancestor roles of a session's agent and its own role, which is last; may be empty. */
async function ownersOf(sessions: SessionStore, name: string): Promise<string[]> {
  const roles: string[] = [];
  const seen = new Set<string>();
  for (let at = name; at !== "" && !seen.has(at);) {
    seen.add(at);
    if (at !== name) await sessions.current(at);
    const origin = sessions.origin(at);
    if (origin === undefined) break;
    if (origin.role !== "") roles.unshift(origin.role);
    at = origin.parent_id;
  }
  return roles;
}
