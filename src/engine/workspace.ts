import { Logins } from "./logins.ts";
import { loadTelemetry } from "../platform/trace.ts";
import { join, resolve } from "node:path";
import { AskStore } from "../asks/store.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { LocalEntry } from "../catalog/layers.ts";
import { Config, type ConfigScope } from "../config/config.ts";
import { MemoryStore } from "../memory/memory.ts";
import { type Clock, NO_REASON, Pace, systemClock } from "../platform/clock.ts";
import {
  type Environment,
  openPaths,
  type Paths,
  userDirectory,
  VERSION,
} from "../platform/environment.ts";
import { errorMessage, nearest } from "../platform/error.ts";
import { Sandbox } from "../platform/sandbox.ts";
import { SecretMask, secretValues } from "../platform/secrets.ts";
import type {
  EnvironmentService,
  Provider,
  ReportService,
  SearchService,
  SourceHost,
  ToolDefinition,
} from "../plugins/api.ts";
import { type DiscoveryRequest, UNTRUSTED } from "../plugins/discovery.ts";
import {
  type Contributions,
  loadPlugins,
  type LoadRequest,
  type Needs,
  type PluginInfo,
} from "../plugins/loader.ts";
import { WorktreeGuard } from "../policy/paths.ts";
import { checkMode, type PolicySettings, policySettings } from "../policy/settings.ts";
import { entryOpening, type Opening, pluginOpening } from "../policy/openings.ts";
import { Trust } from "../policy/trust.ts";
import { OpenAICompatibleProvider } from "../providers/chat_completions.ts";
import { ConnectionStore } from "../providers/connections.ts";
import { ModelStore } from "../providers/model_approval.ts";
import { QuotaStore } from "../providers/quota.ts";
import { ProviderRegistry } from "../providers/registry.ts";
import {
  type Backend,
  type BackendRequest,
  keyFor,
  requestBackend,
  resolveBackend,
  type SharedOptions,
  sharedOptions,
} from "../providers/resolve.ts";
import { endpointUrl } from "../providers/url.ts";
import { NamedWindows } from "../providers/windows.ts";
import { SessionStore } from "../sessions/store.ts";
import { type Link, storeLink } from "../store/link.ts";
import { ToolRegistry } from "../tools/registry.ts";
import type { CommandStart, SessionCommands } from "./background_commands.ts";
import { type Meter, Spending } from "./meter.ts";
import { CORE, CORE_TOOLS } from "./tools/core.ts";

/** What a workspace is opened with. */
interface WorkspaceRequest {
  /** The worktree; any path of a directory. */
  path: string;
  environment: Environment;
  /** Per-run settings, never written. */
  overrides?: Record<string, unknown>;
  clock?: Clock;
  /** Whether all openings of the worktree are trusted in this process (`--trust`). Default: false. */
  trusted?: boolean;
  /** The worktree whose `.svc` counts, where the agent works in another folder: a clone. Default: `path` */
  project?: string;
  /** Another worktree that the local plugins, and the trust in them, come from. Default: this one. */
  pluginsOf?: Workspace;
  /**
   * The link of another workspace of this worktree, which closes it; null: files alone, whatever the settings say.
   * Default: a link of its own.
   */
  store?: Link | null;
  /** Receives one-line warnings about broken files, unknown keys and plugins. */
  warn?: (message: string) => void;
}

/** What an agent may come to use of the plugins, to be passed to `Workspace.load`. */
export const AGENT_NEEDS = {
  tools: "all",
  providers: "all",
  roles: "all",
  teams: "all",
  skills: "all",
} as const;

/** The same for an interactive session, which has the commands of plugins too. */
export const SESSION_NEEDS = { ...AGENT_NEEDS, commands: "all" } as const;

/** The same for a run of a job, which is reported. */
export const JOB_NEEDS: Needs = { ...AGENT_NEEDS, services: ["report"] };

/** Milliseconds for which a use that was noted is not noted again. */
const STAMP_AGE = 3_600_000;

/**
 * Everything of one worktree: its paths, configuration, stores and registries. Passed along, never
 * global: two workspaces in one process do not see each other.
 */
export class Workspace {
  readonly paths: Paths;
  readonly config: Config;
  readonly clock: Clock;
  readonly environment: Environment;
  /** What several machines share; undefined without the setting `store`. */
  readonly store: Link | undefined;
  readonly sessions: SessionStore;
  readonly asks: AskStore;
  readonly memory: MemoryStore;
  /** What requests to models use, and may use. */
  readonly spending: Spending;
  /** Work that no turn waits for; `close` awaits it. */
  readonly background: BackgroundTasks;
  readonly guard: WorktreeGuard;
  /** Runs the commands of tools, and MCP servers. */
  readonly sandbox: Sandbox;
  /** The commands that sessions run in the background. */
  readonly commands: CommandTable;
  /** What the user has accepted of the worktree's own openings. */
  readonly trust: Trust;
  readonly tools = new ToolRegistry();
  readonly providers = new ProviderRegistry();
  readonly connections: ConnectionStore;
  readonly logins: Logins;
  readonly models: ModelStore;
  readonly quota: QuotaStore;
  readonly windows: NamedWindows;
  readonly warn: (message: string) => void;
  /** Admits the long pieces of work of the turns, one after another. */
  readonly pace = new Pace();
  readonly #plugins: WorkspacePlugins;
  readonly #ownsStore: boolean;
  readonly #mask = new SecretMask();
  /** When the use of a backend was last noted, by provider and model. */
  readonly #noted = new Map<string, number>();
  /** The folders outside of the worktree that skills may be read from. */
  readonly #skills: string[];
  #catalog: Promise<Catalog> | undefined;

  private constructor(request: WorkspaceRequest, paths: Paths, config: Config, trust: Trust) {
    this.paths = paths;
    this.config = config;
    this.trust = trust;
    this.clock = request.clock ?? systemClock;
    this.environment = request.environment;
    this.warn = request.warn ?? (() => {});
    const tokens = config.get("serve.token_file");
    this.#skills = [join(paths.user, "skills"), join(paths.user, "..", "..", ".agents", "skills")];
    this.guard = new WorktreeGuard({
      ...paths,
      skills: this.#skills,
      secrets: tokens === "" ? [] : [tokens],
    });
    this.sandbox = new Sandbox({
      worktree: paths.worktree,
      environment: this.environment,
      clock: this.clock,
      settings: () => ({
        mode: config.get("sandbox.mode"),
        deny_read: config.get("sandbox.deny_read"),
        write: config.get("sandbox.write"),
        network: config.get("sandbox.network"),
        env: config.get("sandbox.env"),
      }),
      hidden: [paths.user, ...tokens === "" ? [] : [resolve(paths.worktree, tokens)]],
      warn: this.warn,
    });
    this.commands = new CommandTable(this.sandbox, this.clock);
    this.#ownsStore = request.store === undefined;
    this.store = request.store === undefined
      ? storeLink({ paths, config, environment: this.environment, warn: this.warn })
      : request.store ?? undefined;
    if (this.store !== undefined) trust.share();
    this.connections = new ConnectionStore(paths.user, this.clock, this.warn);
    this.logins = new Logins(paths.user, this.clock, this.warn);
    this.models = new ModelStore(paths.user, this.clock, this.warn);
    this.sessions = new SessionStore({
      directory: paths.sessions,
      version: VERSION,
      clock: this.clock,
      warn: this.warn,
      shared: this.store,
    });
    const { state } = paths;
    const { clock, warn, sessions, store } = this;
    this.asks = new AskStore({ state, clock, warn, sessions, store });
    this.quota = new QuotaStore(state, clock, warn);
    this.windows = new NamedWindows(clock);
    this.background = new BackgroundTasks(clock);
    this.memory = new MemoryStore({ state, config, clock, warn, store });
    this.spending = new Spending({ state, config, clock, warn, store });
    for (const tool of CORE_TOOLS) this.tools.register(tool, CORE);
    this.#plugins = new WorkspacePlugins(this, request.pluginsOf);
  }

  /**
   * Opens the worktree at a path. Reads the configuration and nothing else.
   *
   * @throws SvcError (exit 2) when the path is no directory or the configuration is wrong.
   */
  static open(request: WorkspaceRequest): Workspace {
    const { environment, clock = systemClock, warn = () => {}, trusted } = request;
    const own = openPaths(request.project ?? request.path, userDirectory(environment));
    const trust = new Trust({ paths: own, environment, clock, warn, all: trusted });
    const config = Config.open(own, trust.screen);
    const paths = request.project === undefined || request.project === request.path
      ? own
      : { ...own, worktree: Deno.realPathSync(request.path) };
    for (const [key, value] of Object.entries(request.overrides ?? {})) config.override(key, value);
    if (request.overrides?.mode !== undefined) checkMode(config, config.get("mode"));
    const workspace = new Workspace(request, paths, config, trust);
    for (const warning of config.warnings) workspace.warn(warning);
    const { warnings } = policySettings(config, config.get("mode"));
    for (const warning of warnings) workspace.warn(warning);
    return workspace;
  }

  /**
   * Writes settings into the file of a scope. The user makes the change, so what it opens in the worktree is trusted.
   *
   * @throws SvcError (exit 2), as `Config.set` does
   */
  async set(scope: ConfigScope, values: Record<string, unknown>): Promise<void> {
    const write = async () => {
      for (const [key, value] of Object.entries(values)) await this.config.set(scope, key, value);
    };
    if (scope === "global") return await write();
    await this.trust.changing(Object.keys(values), write);
    this.config.reload();
  }

  /** The openings among the roles and teams of the worktree. */
  async entryOpenings(): Promise<Opening[]> {
    const { Catalog } = await import("../catalog/catalog.ts");
    const { paths, config } = this;
    const found: Opening[] = [];
    const accepts = (local: LocalEntry) => {
      found.push(...[entryOpening(config, local)].filter((opening) => opening !== undefined));
      return true;
    };
    const plugins = this.#plugins.contributions;
    const catalog = new Catalog({ paths, plugins, accepts, warn: () => {} });
    for (const kind of ["role", "team"] as const) catalog.list(kind);
    return found;
  }

  /** Loads the enabled plugins that `needs` calls for; what they register fills the registries. */
  async load(needs: Needs, external?: ExternalOptions): Promise<Contributions> {
    await this.config.rewriteFormer().catch((error) => {
      if (!isReadOnly(error)) this.warn(errorMessage(error));
    });
    await loadTelemetry();
    const contributions = await this.#plugins.load(needs, external);
    this.#catalog = undefined; // it may have been read before the plugins added to it
    for (const { status, path } of contributions.plugins) {
      if (status === "loaded" && path !== "") this.#skills.push(join(path, "skills"));
    }
    return contributions;
  }

  /** The tools of svc and its bundled plugins, as far as they are loaded. */
  bundledTools(): ToolDefinition[] {
    const { plugins = [] } = this.#plugins.contributions ?? {};
    const external = new Set(
      plugins.flatMap(({ name, origin, status }) =>
        origin !== "bundled" && status === "loaded" ? [name] : []
      ),
    );
    return this.tools.list().filter(({ name }) => !external.has(this.tools.owner(name)));
  }

  /** Where plugins are looked for, and which of them are wanted. */
  get discovery(): DiscoveryRequest {
    return this.#plugins.discovery;
  }

  /** How all plugins fare, loaded anew; see {@linkcode WorkspacePlugins.review}. */
  async reviewPlugins(): Promise<PluginReview> {
    const review = await this.#plugins.review();
    this.#catalog = undefined;
    return review;
  }

  /**
   * Ends the commands in the background, awaits the background tasks, then ends what tools hold beyond a call, such as
   * connections to MCP servers.
   *
   * @param signal ends the background tasks early
   */
  async close(signal?: AbortSignal): Promise<void> {
    const ended = this.commands.close();
    await this.background.settle(signal);
    await ended;
    await this.tools.close();
    await this.sandbox.close();
    await this.spending.close();
    await this.sessions.settled();
    if (this.#ownsStore) await this.store?.close();
  }

  /** What searches the web: of the services that the plugins loaded so far offer, the last. */
  search(): SearchService | undefined {
    return this.#services("search").at(-1) as SearchService | undefined;
  }

  /** The services that the plugins loaded so far have registered under `report`. */
  reporters(): ReportService[] {
    return this.#services("report") as unknown as ReportService[];
  }

  /** Those under `environment`. */
  environmentServices(): EnvironmentService[] {
    return this.#services("environment") as unknown as EnvironmentService[];
  }

  #services(name: string): Record<string, unknown>[] {
    return this.#plugins.contributions?.services.get(name) ?? [];
  }

  /** The key stored under a name, if it was stored for this address; else empty. */
  key(name: string, address: string): string {
    const connection = this.connections.get(name);
    return keyFor(address, connection?.base_url ?? "", connection);
  }

  /** Masks the keys, tokens and passwords that svc knows in a text for models, logs and errors. */
  mask(text: string): string {
    const { config, sandbox } = this;
    const keys = [...this.connections.list().values()].map(({ api_key }) => api_key ?? "");
    const servers = config.get("mcp.servers").flatMap(({ env = {}, headers = {}, oauth }) => [
      ...secretValues([...Object.entries(env), ...Object.entries(headers)]),
      oauth?.client_secret ?? "",
    ]);
    if (servers.length > 0) servers.push(...this.logins.secrets);
    const tokens = lines(config.get("serve.token_file"));
    const own = [...keys, ...tokens, config.get("report.secret"), ...this.store?.secrets ?? []];
    const secrets = [...own, ...servers, ...sandbox.secrets];
    return this.#mask.apply(text, secrets);
  }

  /** Roles, teams and skills as their files are now, those of the plugins loaded so far among them. */
  async catalog(): Promise<Catalog> {
    const { paths, warn, trust, config } = this;
    const plugins = this.#plugins.contributions;
    const accepts = (local: LocalEntry) => {
      const opening = entryOpening(config, local);
      return opening === undefined || trust.accepts(opening);
    };
    const catalog = await (this.#catalog ??= import("../catalog/catalog.ts")
      .then(({ Catalog }) => new Catalog({ paths, plugins, accepts, warn })));
    catalog.refresh();
    return catalog;
  }

  /**
   * The backend of a run, as the configuration, the flags and `asked` name it.
   *
   * @throws SvcError (exit 2), see `resolveBackend`
   */
  backend(asked?: Parameters<typeof requestBackend>[1]): Backend {
    const request = this.backendRequest(asked);
    const backend = resolveBackend(request, this);
    if (request.base_url !== "") endpointUrl(request.base_url, ""); // refused here, not by each request
    return backend;
  }

  /** The backend that the configuration names, not resolved yet; see {@linkcode requestBackend}. */
  backendRequest(asked?: Parameters<typeof requestBackend>[1]): BackendRequest {
    return requestBackend(this, asked);
  }

  /**
   * Stamps `last_used` of a backend's connection and, if it is an approved one, its model, in the background. A
   * configuration directory that is read-only by intention stays without stamps; any other failure is warned of.
   */
  noteUse({ provider, model }: Pick<Backend, "provider" | "model">): void {
    const name = JSON.stringify([provider, model]);
    const now = this.clock.now();
    const age = now - (this.#noted.get(name) ?? -Infinity);
    if (age >= 0 && age < STAMP_AGE) return;
    this.#noted.set(name, now);
    this.background.start(async () => {
      try {
        await this.connections.touch(provider);
        await this.models.touch(provider, model);
      } catch (error) {
        if (!isReadOnly(error)) this.warn(errorMessage(error));
      }
    });
  }

  /**
   * A provider for one run, bound to its session.
   *
   * @param meter counts its requests. Default: one for requests outside of an agent
   */
  connect(
    backend: Backend,
    session_id: string,
    meter: Meter = this.spending.meter({ session: session_id }),
  ): Provider {
    const { provider: name, base_url, api_key, model, cls } = backend;
    const { clock, pace } = this;
    const quota = this.quota.gate(base_url, model);
    const own = { name, base_url, api_key, model, quota, clock, pace };
    return meter.wrap(new cls({ ...this.providerOptions(session_id), ...own }));
  }

  /** What every provider is made with, whatever its backend. */
  providerOptions(session_id: string): SharedOptions {
    return sharedOptions(this.config, session_id);
  }
}

/** The lines of a file, none without one. */
function lines(file: string): string[] {
  if (file === "") return [];
  try {
    return Deno.readTextFileSync(file).split(/\s+/);
  } catch {
    return [];
  }
}

/** Whether a registry file could not be written because its directory is closed to this process. */
function isReadOnly(error: unknown): boolean {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : undefined;
  const code = cause !== undefined && "code" in cause ? String(cause.code) : "";
  return cause instanceof Deno.errors.NotCapable || ["EROFS", "EACCES", "EPERM"].includes(code);
}

/** How the plugins fare, and what they register. */
export interface PluginReview {
  contributions: Contributions;
  tools: ToolRegistry;
}

/** How plugins that are not bundled are loaded; see `LoadRequest`. */
type ExternalOptions = Pick<LoadRequest, "beforeExternal" | "external">;

interface LoadTarget extends Pick<Workspace, "tools" | "providers" | "warn">, ExternalOptions {
  needs?: Needs;
}

/** The plugins of one workspace: which there are, which of them are loaded, and what those brought. */
class WorkspacePlugins {
  /** What the plugins loaded so far have registered. */
  contributions: Contributions | undefined;
  readonly #workspace: Workspace;
  /** The workspace of the local plugins. */
  readonly #source: Workspace;
  #loaded: { needs: Needs; contributions: Promise<Contributions> } | undefined;

  constructor(workspace: Workspace, source = workspace) {
    this.#workspace = workspace;
    this.#source = source;
  }

  /** Where plugins are looked for, which of them are wanted, and which local ones are trusted. */
  get discovery(): DiscoveryRequest {
    const { paths, config } = this.#workspace;
    const { trust, paths: { state } } = this.#source;
    return {
      roots: { global: join(paths.user, "plugins"), local: join(state, "plugins") },
      enabled: config.get("plugins"),
      version: VERSION,
      trusts: (plugin) => trust.accepts(pluginOpening(plugin)),
    };
  }

  /**
   * Loads the enabled plugins that `needs` calls for, into the workspace's registries. What has been loaded
   * for the same or more is not loaded again.
   */
  async load(needs: Needs, external?: ExternalOptions): Promise<Contributions> {
    const loaded = this.#loaded;
    if (loaded !== undefined && within(needs, loaded.needs)) return await loaded.contributions;
    const { tools, providers, warn } = this.#workspace;
    const contributions = this.#load({ needs, tools, providers, warn, ...external });
    this.#loaded = { needs, contributions };
    this.contributions = await contributions;
    if (needs.tools === "all") {
      const { config } = this.#workspace;
      const own = policySettings(config, config.get("mode"));
      if (own.allow.length > 0 || own.deny.length > 0) {
        for (const warning of misnamedTools(own, tools)) warn(warning);
      }
    }
    return this.contributions;
  }

  /**
   * Loads all plugins anew, into registries of its own, and says how each fares and what it brings. Their roles,
   * teams and skills count from then on; tools and commands do from the next start (specification 4.9).
   */
  async review(): Promise<PluginReview> {
    const tools = new ToolRegistry();
    for (const tool of CORE_TOOLS) tools.register(tool, CORE);
    const providers = new ProviderRegistry();
    const contributions = await this.#load({ tools, providers, warn: () => {} });
    await tools.close();
    const { roles, teams, skills } = contributions;
    this.contributions = { ...this.contributions ?? contributions, roles, teams, skills };
    return { contributions, tools };
  }

  #load(into: LoadTarget): Promise<Contributions> {
    const { warn: warnUncaught, clock } = this.#workspace;
    return loadPlugins({
      ...this.discovery,
      ...into,
      OpenAICompatibleProvider,
      host: sourceHost(this.#workspace),
      warnUncaught,
      beforeImport: (plugins) => this.#notice(plugins),
      clock,
    });
  }

  /** Warns of the openings of the worktree that are left out, while none of its code has run. */
  async #notice(plugins: PluginInfo[]): Promise<void> {
    if (this.#source !== this.#workspace) return;
    const { trust, warn } = this.#workspace;
    const left = plugins.filter(({ reason }) => reason === UNTRUSTED).map(pluginOpening);
    await trust.notice([...left, ...trust.left], warn);
  }
}

/** Whether all that `needs` calls for was called for by `others` in full. */
function within(needs: Needs, others: Needs): boolean {
  return Object.keys(needs).every((kind) => others[kind as keyof Needs] === "all");
}

/**
 * What `tools.deny` and `tools.allow` probably mean where they name no tool, one sentence each: a denial with a
 * misspelt name denies nothing. A name that is near no tool's may be that of one that is not loaded here, and
 * one with a dot that of an MCP server's.
 */
function misnamedTools(
  { allow, deny }: Pick<PolicySettings, "allow" | "deny">,
  tools: ToolRegistry,
): string[] {
  const known = tools.list().flatMap(({ name, aliases = [] }) => [name, ...aliases]);
  const warnings = (setting: string, names: string[], effect: string) =>
    names.filter((name) => !name.includes(".") && tools.find(name) === undefined)
      .flatMap((name) => {
        const meant = nearest(name, known);
        const shown = JSON.stringify(name.slice(0, 80));
        return meant === undefined
          ? []
          : [`There is no tool ${shown}, so ${setting} ${effect}; did you mean ${meant}?`];
      });
  return [
    ...warnings("tools.deny", deny, "denies nothing with it"),
    ...warnings("tools.allow", allow, "allows nothing with it"),
  ];
}

/** What a plugin's sources of tools may use of svc. */
function sourceHost(
  { paths, config, clock, sandbox, warn, logins }: Pick<
    Workspace,
    "paths" | "config" | "clock" | "sandbox" | "warn" | "logins"
  >,
): SourceHost {
  return {
    config,
    user_agent: `svc/${VERSION}`,
    start: ({ command, cwd = ".", env, sandbox: confined = true }) =>
      sandbox.start({ command, cwd: resolve(paths.worktree, cwd), env }, { confined }),
    now: () => clock.now(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
    warn,
    logins,
  };
}

/** Milliseconds for which the commands of a session continue in a server after its last turn. */
const IDLE = 15 * 60_000;

/** The commands that sessions run in the background. Loads nothing before the first one. */
class CommandTable {
  readonly #sandbox: Sandbox;
  readonly #clock: Clock;
  readonly #sessions = new Map<string, SessionCommands>();
  readonly #idle = new Map<string, AbortController>();

  constructor(sandbox: Sandbox, clock: Clock) {
    this.#sandbox = sandbox;
    this.#clock = clock;
  }

  /** Those of a session; undefined when it has started none. */
  of(session: string): SessionCommands | undefined {
    return this.#sessions.get(session);
  }

  /** @throws SvcError as {@linkcode SessionCommands.start} */
  async start(session: string, request: CommandStart) {
    const { SessionCommands } = await import("./background_commands.ts");
    const commands = this.of(session) ?? new SessionCommands(this.#sandbox, this.#clock);
    this.#sessions.set(session, commands);
    return await commands.start(request);
  }

  /** Ends those of a session. */
  async end(session: string): Promise<void> {
    const commands = this.of(session);
    this.#sessions.delete(session);
    this.use(session);
    await commands?.end();
  }

  /** Begins a turn of a session in a server. */
  use(session: string): void {
    this.#idle.get(session)?.abort();
    this.#idle.delete(session);
  }

  /** Ends a turn of a session in a server: its commands end when no other turn begins in time. */
  leave(session: string): void {
    if (this.of(session) === undefined) return;
    this.use(session);
    const used = new AbortController();
    this.#idle.set(session, used);
    this.#clock.sleep(IDLE, used.signal).then(() => this.end(session), () => {});
  }

  /** Ends all. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#sessions.keys(), (session) => this.end(session)));
  }
}

/** Milliseconds that the end of a program waits for its background tasks. */
const PATIENCE = 30_000;

/** Work that no turn waits for: memories, `last_used` stamps. `Workspace.close` awaits it. */
class BackgroundTasks {
  readonly #clock: Clock;
  /** With what each does, for the operator; empty for what is not worth a word. */
  readonly #tasks = new Map<Promise<void>, string>();
  #stop = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts a task that never throws, and that ends soon after its signal aborts. */
  start(task: (signal: AbortSignal) => Promise<void>, name = ""): void {
    const running = task(this.#stop.signal).finally(() => this.#tasks.delete(running));
    this.#tasks.set(running, name);
  }

  /** What the running tasks do, as far as they have names. */
  get names(): string[] {
    return [...this.#tasks.values()].filter((name) => name !== "");
  }

  /** Whether a task is running. */
  get busy(): boolean {
    return this.#tasks.size > 0;
  }

  /** Resolves when all tasks have ended. They are aborted after half a minute, or when the signal aborts. */
  async settle(signal?: AbortSignal): Promise<void> {
    if (this.#tasks.size === 0) return;
    const stop = this.#stop;
    const over = new AbortController();
    const abort = (reason: string) => stop.abort(new DOMException(reason, "AbortError"));
    const interrupted = () => abort("it was interrupted");
    if (signal?.aborted) interrupted();
    signal?.addEventListener("abort", interrupted, { signal: over.signal });
    this.#clock.sleep(PATIENCE, over.signal).then(() => abort("it took too long"), () => {});
    while (this.#tasks.size > 0) await Promise.all(this.#tasks.keys());
    over.abort(NO_REASON);
    this.#stop = new AbortController();
  }
}
