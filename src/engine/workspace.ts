import { AskStore } from "../asks/store.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { Config } from "../config/config.ts";
import { MemoryStore } from "../memory/memory.ts";
import { type Clock, systemClock } from "../platform/clock.ts";
import {
  type Environment,
  openPaths,
  type Paths,
  userDirectory,
  VERSION,
} from "../platform/environment.ts";
import { errorMessage } from "../platform/error.ts";
import type { Provider, SearchService } from "../plugins/api.ts";
import type { DiscoveryRequest } from "../plugins/discovery.ts";
import type { Contributions, Needs } from "../plugins/loader.ts";
import { WorktreeGuard } from "../policy/paths.ts";
import { checkMode, policySettings } from "../policy/settings.ts";
import { ModelStore } from "../providers/model_approval.ts";
import { ConnectionStore } from "../providers/connections.ts";
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
import { SessionStore } from "../sessions/store.ts";
import { ToolRegistry } from "../tools/registry.ts";
import { BackgroundTasks } from "./background.ts";
import { CORE, CORE_TOOLS } from "./tools/core.ts";
import { type PluginReview, WorkspacePlugins } from "./workspace_plugins.ts";

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
  readonly sessions: SessionStore;
  readonly asks: AskStore;
  readonly memory: MemoryStore;
  /** Work that no turn waits for; `close` awaits it. */
  readonly background: BackgroundTasks;
  readonly guard: WorktreeGuard;
  readonly tools = new ToolRegistry();
  readonly providers = new ProviderRegistry();
  readonly connections: ConnectionStore;
  readonly models: ModelStore;
  readonly warn: (message: string) => void;
  readonly #plugins: WorkspacePlugins;
  /** When the use of a backend was last noted, by provider and model. */
  readonly #noted = new Map<string, number>();
  #catalog: Promise<Catalog> | undefined;

  private constructor(request: WorkspaceRequest, paths: Paths, config: Config) {
    this.paths = paths;
    this.config = config;
    this.clock = request.clock ?? systemClock;
    this.environment = request.environment;
    this.warn = request.warn ?? (() => {});
    const tokens = config.get("serve.token_file");
    this.guard = new WorktreeGuard({ ...paths, secrets: tokens === "" ? [] : [tokens] });
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
      sessions,
    });
    this.background = new BackgroundTasks(clock);
    this.memory = new MemoryStore({ state, config, clock, warn });
    for (const tool of CORE_TOOLS) this.tools.register(tool, CORE);
    this.#plugins = new WorkspacePlugins(this, request.plugins);
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
    const { warnings } = policySettings(config, config.get("mode"));
    for (const warning of warnings) workspace.warn(warning);
    return workspace;
  }

  /** Loads the enabled plugins that `needs` calls for; what they register fills the registries. */
  load(needs: Needs): Promise<Contributions> {
    return this.#plugins.load(needs);
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
   * Awaits the background tasks, then ends what tools hold beyond a call, such as connections to MCP servers.
   *
   * @param signal ends the background tasks early
   */
  async close(signal?: AbortSignal): Promise<void> {
    await this.background.settle(signal);
    await this.tools.close();
  }

  /** What searches the web: of the services that the plugins loaded so far offer, the last. */
  search(): SearchService | undefined {
    return this.#plugins.contributions?.services.get("search")?.at(-1) as SearchService | undefined;
  }

  /** The key stored under a name, if it was stored for this address; else empty. */
  key(name: string, address: string): string {
    const connection = this.connections.get(name);
    return keyFor(address, connection?.base_url ?? "", connection);
  }

  /** Roles, teams and skills, those of the plugins loaded so far among them. */
  catalog(): Promise<Catalog> {
    const { paths, warn } = this;
    const plugins = this.#plugins.contributions;
    return this.#catalog ??= import("../catalog/catalog.ts")
      .then(({ Catalog }) => new Catalog({ paths, plugins, warn }));
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

/** Whether a registry file could not be written because its directory is closed to this process. */
function isReadOnly(error: unknown): boolean {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : undefined;
  const code = cause !== undefined && "code" in cause ? String(cause.code) : "";
  return cause instanceof Deno.errors.NotCapable || ["EROFS", "EACCES", "EPERM"].includes(code);
}
