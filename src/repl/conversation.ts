import { CONFIG_KEYS } from "../config/keys.ts";
import type { Engine } from "../engine/engine.ts";
import { ROOT_RUN, type TurnEvent } from "../engine/events.ts";
import { goOn, type OpenAgent } from "../engine/agents/go_on.ts";
import { ownerRole, ownersOf } from "../engine/agents/owner.ts";
import type { RunRegistry } from "../engine/agents/runs.ts";
import type { AgentRole } from "../engine/agents/agent.ts";
import type { Workspace } from "../engine/workspace.ts";
import { usageError } from "../platform/error.ts";
import { Grants } from "../policy/gate.ts";
import type { Operator } from "../policy/operator.ts";
import { approveModels } from "../providers/model_approval.ts";
import type { ModelRef } from "../providers/resolve.ts";
import type { Backend } from "../providers/resolve.ts";
import type { Session } from "../sessions/session.ts";

export interface ConversationOptions {
  workspace: Workspace;
  operator: Operator;
  /** A session to go on in, or to make under this name; otherwise one gets a name with its first turn. */
  session?: string;
  /** The role of new sessions. */
  role?: string;
  /** Whether the model that the configuration refers to counts as approved (specification 5.2). */
  granted: boolean;
  /** Whether a person is there who can be asked. */
  attended: boolean;
}

/**
 * The active session and its agents. An engine is made when a turn needs it, and again when settings,
 * connection or role have changed since; runs and approvals stay.
 */
export class Conversation {
  readonly #options: ConversationOptions;
  #name: string | undefined;
  #session: Session | undefined;
  /** See `ownersOf`; looked up once, as the log may be long. */
  #owners: string[] | undefined;
  #runs: RunRegistry;
  #agents = new Map<number, { agent: OpenAgent; made: string }>();
  #grants = new Map<number, Grants>();

  constructor(options: ConversationOptions) {
    this.#options = options;
    this.#name = options.session;
    this.#runs = options.workspace.runs();
  }

  /** The session's name; undefined until it has one. */
  get name(): string | undefined {
    return this.#name;
  }

  get runs(): RunRegistry {
    return this.#runs;
  }

  /** The role that the root runs as; empty for none. */
  get role(): string {
    return this.#runs.list()[0]?.role ?? this.#options.role ?? "";
  }

  /** Goes over to another session; without a name to a new one, made with its first turn. */
  async switchTo(name: string | undefined): Promise<void> {
    await this.close();
    this.#name = name;
    this.#session = undefined;
    this.#owners = undefined;
    this.#runs = this.#options.workspace.runs();
    this.#grants.clear();
  }

  /** Opens the session, and makes it where it is not there yet. */
  open(): Session {
    const { workspace: { sessions }, role } = this.#options;
    this.#session ??= this.#name === undefined
      ? sessions.create("ses", { role })
      : sessions.open(this.#name, { role });
    this.#name = this.#session.name;
    return this.#session;
  }

  /** A turn of the focused run's agent; the others' events have their own numbers. */
  async *turn(run: number, prompt: string, signal: AbortSignal): AsyncGenerator<TurnEvent> {
    const engine = await this.engine(run);
    yield* engine.turn(prompt, { signal });
  }

  /** The engine of a run as the settings are now. */
  async engine(run: number): Promise<Engine> {
    const { workspace } = this.#options;
    await workspace.load(EVERYTHING);
    const role = await this.#role();
    const backend = workspace.backend({ role_model: role?.model });
    const made = this.#signature(run, role, backend);
    const there = this.#agents.get(run);
    if (there?.made === made) return there.agent.engine;
    const { granted, operator } = this.#options;
    await approveModels(backend.ref === undefined ? [] : [backend.ref], workspace.models, {
      granted,
      ask: (models) => Promise.resolve(operator.approveModels?.(models.map(refText)) ?? false),
    });
    await there?.agent.close();
    this.#agents.delete(run);
    const agent = run === ROOT_RUN ? this.#root(role, backend) : await this.#below(run, role);
    this.#agents.set(run, { agent, made });
    return agent.engine;
  }

  /** Lets go of the session; what was said is in its log. */
  async close(): Promise<void> {
    for (const { agent } of this.#agents.values()) await agent.close();
    this.#agents.clear();
    this.#session?.close();
    this.#session = undefined;
  }

  #root(role: AgentRole | undefined, backend: Backend): OpenAgent {
    const { workspace, operator } = this.#options;
    const engine = workspace.engine({
      session: this.open(),
      backend,
      operator,
      headless: this.headless,
      role,
      runs: this.#runs,
      grants: this.#grantsOf(ROOT_RUN),
    });
    return { engine, close: () => engine.close() };
  }

  #below(id: number, root: AgentRole | undefined): Promise<OpenAgent> {
    const { workspace, operator } = this.#options;
    const run = this.#runs.list()[id - 1];
    if (run === undefined) throw usageError("focus_target", `There is no run #${id}.`);
    const headless = this.headless;
    const tree = { workspace, runs: this.#runs, operator, headless, approve_models: false };
    return goOn(tree, run, { root, grants: this.#grantsOf(id) });
  }

  /** Whether nobody is there to approve calls. */
  get headless(): boolean {
    const { workspace, attended } = this.#options;
    return !attended || workspace.config.get("unattended");
  }

  #grantsOf(run: number): Grants {
    const grants = this.#grants.get(run) ?? new Grants();
    this.#grants.set(run, grants);
    return grants;
  }

  /** The role of the session that is there, or the one that a new session is to have. */
  async #role(): Promise<AgentRole | undefined> {
    const { workspace, role } = this.#options;
    if (role) return await workspace.role(role);
    this.#owners ??= ownersOf(workspace.sessions, this.#name ?? "");
    return await ownerRole(workspace, this.#owners);
  }

  /** The backend of the root agent as the settings and its role are now. */
  async backend(): Promise<Backend> {
    const role = await this.#role();
    return this.#options.workspace.backend({ role_model: role?.model });
  }

  /** Changes whenever an engine made before would no longer be the one to use. */
  #signature(run: number, role: AgentRole | undefined, backend: Backend): string {
    const { config } = this.#options.workspace;
    // Another agent may have had the run go on since, as another role and under less rights.
    const line = [...this.#runs.line(run), this.#runs.list()[run - 1]]
      .map((each) => [each?.id, each?.role, each?.stage]);
    const { provider, base_url, api_key, model } = backend;
    const settings = CONFIG_KEYS.map((key) => config.get(key));
    return JSON.stringify([settings, provider, base_url, api_key, model, role, line]);
  }
}

function refText({ provider, model }: ModelRef): string {
  return `${provider}/${model}`;
}

/** What a session may come to use of the plugins. */
export const EVERYTHING = {
  tools: "all",
  providers: "all",
  commands: "all",
  roles: "all",
  teams: "all",
  skills: "all",
} as const;
