import { join, resolve } from "node:path";
import { AskStore } from "../asks/store.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { Config } from "../config/config.ts";
import { MemoryStore } from "../memory/memory.ts";
import type { Provider, SearchService, SourceHost } from "../plugins/api.ts";
import type { DiscoveryRequest } from "../plugins/discovery.ts";
import { type Contributions, loadPlugins, type Needs, type PluginInfo } from "../plugins/loader.ts";
import { startChild } from "../platform/child.ts";
import type { Clock } from "../platform/clock.ts";
import { systemClock } from "../platform/clock.ts";
import { type Environment, userDirectory } from "../platform/environment.ts";
import { openPaths, type Paths } from "../platform/paths.ts";
import { VERSION } from "../platform/version.ts";
import type { AskPolicy } from "../policy/ask_policy.ts";
import type { Grants } from "../policy/gate.ts";
import type { Operator } from "../policy/operator.ts";
import { exposures } from "../policy/exposure.ts";
import { type Authority, authorityUnder, type RoleCarve } from "../policy/carve.ts";
import { checkMode, policySettings } from "../policy/settings.ts";
import { WorktreeGuard } from "../policy/worktree.ts";
import { OpenAICompatibleProvider } from "../providers/compatible.ts";
import { ModelStore } from "../providers/approvals.ts";
import { ConnectionStore } from "../providers/connections.ts";
import { type SharedOptions, sharedOptions } from "../providers/options.ts";
import type { ModelRef } from "../providers/refs.ts";
import { ProviderRegistry } from "../providers/registry.ts";
import { adoptModel, type RequestedBackend, requestedBackend } from "../providers/requested.ts";
import { type Backend, keyFor, resolveBackend } from "../providers/resolve.ts";
import { endpointUrl } from "../providers/url.ts";
import { appendUserOnce } from "../sessions/append_once.ts";
import type { Session } from "../sessions/session.ts";
import { SessionStore } from "../sessions/store.ts";
import { ToolRegistry } from "../tools/registry.ts";
import { agentEngine } from "./agents/agents.ts";
import type { Engine } from "./engine.ts";
import { CORE, CORE_TOOLS } from "./tools/core.ts";
import { Beside } from "./beside.ts";
import { firstLook } from "./first_look.ts";
import { misnamedTools } from "./misnamed_tools.ts";
import type { AgentPrompt } from "./prompt.ts";
import { RunRegistry } from "./agents/runs.ts";

/** What a workspace is opened with. */
export interface WorkspaceRequest {
  /** The worktree; any path of a directory. */
  path: string;
  environment: Environment;
  /** Per-run settings, never written. */
  overrides?: Record<string, unknown>;
  clock?: Clock;
  /** The folder of local plugins, of a worktree that has been looked at already. Default: `.svc/plugins`. */
  plugins?: string;
  /** Receives one-line warnings about broken files, unknown keys and plugins. */
  warn?: (message: string) => void;
}

/** How the plugins fare, and what they register. */
export interface PluginReview {
  contributions: Contributions;
  tools: ToolRegistry;
  providers: ProviderRegistry;
}

type LoadTarget = Pick<Workspace, "tools" | "providers" | "warn">;

/** What a role makes of an agent (specification 2.12). */
export interface AgentRole extends RoleCarve {
  name: string;
  prompt: AgentPrompt;
  /** What it says of its questions; the rest is the configuration's. */
  ask_policy?: Partial<AskPolicy>;
  /** A model id or ref; empty: the configured one. */
  model: string;
}

/**
 * Everything of one worktree: its paths, configuration, stores and registries. Passed along, never
 * global: two workspaces in one process do not see each other.
 */
export class Workspace {
  readonly paths: Paths;
  readonly config: Config;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly sessions: SessionStore;
  readonly asks: AskStore;
  readonly memory: MemoryStore;
  /** What is still being done after turns have ended; whoever ends the program settles it. */
  readonly beside: Beside;
  readonly guard: WorktreeGuard;
  readonly tools = new ToolRegistry();
  readonly providers = new ProviderRegistry();
  readonly connections: ConnectionStore;
  readonly models: ModelStore;
  readonly warn: (message: string) => void;
  readonly #plugins: string;
  readonly #familiar: boolean;
  #contributions: Contributions | undefined;
  #loaded: { needs: Needs; contributions: Promise<Contributions> } | undefined;
  #catalog: Promise<Catalog> | undefined;

  private constructor(request: WorkspaceRequest, paths: Paths, config: Config) {
    this.paths = paths;
    this.config = config;
    this.clock = request.clock ?? systemClock;
    this.environment = request.environment;
    this.#familiar = request.plugins !== undefined;
    this.#plugins = request.plugins ?? join(paths.state, "plugins");
    this.warn = request.warn ?? (() => {});
    this.guard = new WorktreeGuard(paths);
    this.connections = new ConnectionStore(paths.user, this.clock, this.warn);
    this.models = new ModelStore(paths.user, this.clock, this.warn);
    this.sessions = new SessionStore({
      directory: paths.sessions,
      version: VERSION,
      clock: this.clock,
      warn: this.warn,
    });
    const { state } = paths;
    const { clock, warn, sessions } = this;
    this.asks = new AskStore({
      state,
      clock,
      warn,
      sessions: { appendUserOnce: (name, part) => appendUserOnce(sessions, name, part) },
    });
    this.beside = new Beside(clock);
    this.memory = new MemoryStore({ state, config, clock, warn });
    for (const tool of CORE_TOOLS) this.tools.register(tool, CORE);
  }

  /**
   * Opens the worktree at a path. Reads the configuration and nothing else.
   *
   * @throws SvcError (exit 2) when the path is no directory or the configuration is wrong.
   */
  static open(request: WorkspaceRequest): Workspace {
    const paths = openPaths(request.path, userDirectory(request.environment));
    const config = Config.open(paths);
    for (const [key, value] of Object.entries(request.overrides ?? {})) config.override(key, value);
    if (request.overrides?.mode !== undefined) checkMode(config, config.get("mode"));
    const workspace = new Workspace(request, paths, config);
    for (const warning of config.warnings) workspace.warn(warning);
    for (const warning of workspace.authority().own.warnings) workspace.warn(warning);
    return workspace;
  }

  /**
   * Loads the enabled plugins that `needs` calls for; what they register fills the registries. What has been
   * loaded for the same or more is not loaded again.
   */
  async load(needs: Needs): Promise<Contributions> {
    const loaded = this.#loaded;
    if (loaded !== undefined && within(needs, loaded.needs)) return await loaded.contributions;
    const contributions = this.#load(needs);
    this.#loaded = { needs, contributions };
    this.#contributions = await contributions;
    if (needs.tools === "all") {
      for (const warning of misnamedTools(this.authority().own, this.tools)) this.warn(warning);
    }
    return this.#contributions;
  }

  /** Where plugins are looked for, and which of them are wanted. */
  get discovery(): DiscoveryRequest {
    return {
      roots: { global: join(this.paths.user, "plugins"), local: this.#plugins },
      enabled: this.config.get("plugins"),
      version: VERSION,
    };
  }

  /**
   * Loads all plugins anew, into registries of its own, and says how each fares and what it brings. Their roles,
   * teams and skills count from then on; tools and commands do from the next start (specification 4.9).
   */
  async reviewPlugins(): Promise<PluginReview> {
    const tools = new ToolRegistry();
    for (const tool of CORE_TOOLS) tools.register(tool, CORE);
    const providers = new ProviderRegistry();
    const contributions = await this.#load(undefined, { tools, providers, warn: () => {} });
    await tools.close();
    const { roles, teams, skills } = contributions;
    this.#contributions = { ...this.#contributions ?? contributions, roles, teams, skills };
    this.#catalog = undefined;
    return { contributions, tools, providers };
  }

  #load(needs: Needs | undefined, into: LoadTarget = this): Promise<Contributions> {
    const { tools, providers, warn } = into;
    return loadPlugins({
      ...this.discovery,
      tools,
      providers,
      OpenAICompatibleProvider,
      host: this.#host(),
      warn,
      strayed: this.warn,
      beforeImport: (plugins) => this.look(plugins),
      needs,
      clock: this.clock,
    });
  }

  /** Ends what tools hold beyond a call, such as connections to MCP servers. */
  close(): Promise<void> {
    return this.tools.close();
  }

  #host(): SourceHost {
    const { config, clock, environment, warn } = this;
    const inherited = new Map([
      ["HOME", environment.get("HOME")],
      ["PATH", environment.get("PATH")],
      ["LANG", environment.get("LANG")],
      ["TMPDIR", environment.get("TMPDIR")],
      ["USER", environment.get("USER")],
    ]);
    const own = [...inherited].filter((pair): pair is [string, string] => pair[1] !== undefined);
    return {
      config,
      user_agent: `svc/${VERSION}`,
      start: ({ command, cwd = ".", env }) =>
        startChild({
          command,
          cwd: resolve(this.paths.worktree, cwd),
          env: { ...Object.fromEntries(own), ...env },
        }, clock),
      now: () => clock.now(),
      sleep: (ms, signal) => clock.sleep(ms, signal),
      warn,
    };
  }

  /** What searches the web: of the services that the plugins loaded so far offer, the last. */
  search(): SearchService | undefined {
    return this.#contributions?.services.get("search")?.at(-1) as SearchService | undefined;
  }

  /** The key stored under a name, if it was stored for this address; else empty. */
  key(name: string, address: string): string {
    const connection = this.connections.get(name);
    return keyFor(address, connection?.base_url ?? "", connection);
  }

  /** Roles, teams and skills, those of the plugins loaded so far among them. */
  catalog(): Promise<Catalog> {
    const { paths, warn } = this;
    const plugins = this.#contributions;
    return this.#catalog ??= import("../catalog/catalog.ts")
      .then(({ Catalog }) => new Catalog({ paths, plugins, warn }));
  }

  /**
   * What a role of the catalog brings to an agent, with skills beside its own and what it remembers.
   *
   * @throws SvcError (exit 2) when there is no such role, or a skill or file that it names.
   */
  async role(name: string, skills?: string[]): Promise<AgentRole> {
    const catalog = await this.catalog();
    const { value } = catalog.need("role", name);
    const { tool_permission, grant_permission, ask_policy, model } = value;
    const prompt = { ...catalog.prompt(name, skills), memory: this.memory.block("role", name) };
    return { name, prompt, tool_permission, grant_permission, ask_policy, model };
  }

  /**
   * The backend that the configuration names, ready to be asked, and the ref that its model came from.
   *
   * @throws SvcError (exit 2), see `resolveBackend`
   */
  backend(): Backend & Pick<RequestedBackend, "ref"> {
    const request = this.backendRequest();
    const backend = resolveBackend(request, this.providers, this.connections);
    if (request.base_url !== "") endpointUrl(request.base_url, ""); // refused here, not by each request
    return { ...backend, ref: request.ref };
  }

  /** What the configuration says of the backend; see {@linkcode requestedBackend}. */
  backendRequest(): RequestedBackend {
    return requestedBackend(this);
  }

  /** Takes a role's model for this run; see {@linkcode adoptModel}. */
  adoptModel(model: string): ModelRef | undefined {
    return adoptModel(model, this);
  }

  /** An agent on a session: the configured backend, tools and policy, its role, and someone to ask. */
  engine(request: {
    session: Session;
    operator: Operator;
    headless: boolean;
    /** Left out: the one that the configuration names. */
    backend?: Backend;
    role?: AgentRole;
    /** A job's sections of the system prompt. */
    job?: string[];
    /** Whether the models that roles refer to are approved beforehand (specification 5.2). */
    approve_models?: boolean;
    /**
     * Whether neither the agent nor those that it starts may change svc's own state and settings, whoever
     * approves it (specification 5.3.9). Default: they may, as far as the policy lets them.
     */
    immutable?: boolean;
    /** The runs and approvals of an engine of this session whose place this one takes. */
    runs?: RunRegistry;
    grants?: Grants;
  }): Engine {
    const { session, role, job, operator, headless, approve_models = false, immutable, grants } =
      request;
    const backend = request.backend ?? this.backend();
    const runs = request.runs ?? this.runs();
    const run = runs.list()[0]?.id ??
      runs.start({ parent: 0, role: role?.name ?? "", session, task: "" }).id;
    const tree = { workspace: this, runs, operator, headless, approve_models, immutable };
    const lineage = [session.name];
    return agentEngine(tree, {
      session,
      run,
      role,
      job,
      authority: this.authority(role),
      backend,
      lineage,
      grants,
    });
  }

  /** A registry for the runs of one root agent. */
  runs(): RunRegistry {
    return new RunRegistry(this.config.get("run_buffer_max_lines"));
  }

  /** What the configuration and its mode let the root agent do and hand down, and what a role leaves of it. */
  authority(role?: AgentRole): Authority {
    const settings = policySettings(this.config, this.config.get("mode"));
    return authorityUnder(settings, role ?? { tool_permission: {} });
  }

  /** Warns of what the worktree itself opens, while none of its code has run. */
  private look(plugins: PluginInfo[]): Promise<void> {
    if (this.#familiar) return Promise.resolve();
    const { config, connections, clock, warn } = this;
    const { worktree, user } = this.paths;
    const local = plugins.filter(({ origin, status }) => origin === "local" && status === "loaded");
    const names = local.map(({ name }) => name);
    const known = () => Array.from(connections.list().values(), ({ base_url }) => base_url);
    return firstLook({ worktree, exposures: exposures(config, names, known), user, clock, warn });
  }

  /** A provider for one run, bound to its session. */
  connect(backend: Backend, session_id: string): Provider {
    const { provider: name, base_url, api_key, model, cls } = backend;
    return new cls({ ...this.providerOptions(session_id), name, base_url, api_key, model });
  }

  /** What every provider is made with, whatever its backend. */
  providerOptions(session_id: string): SharedOptions {
    return sharedOptions(this.config, session_id);
  }
}

/** Whether all that `needs` calls for was called for by `others` in full. */
function within(needs: Needs, others: Needs): boolean {
  return Object.keys(needs).every((kind) => others[kind as keyof Needs] === "all");
}
