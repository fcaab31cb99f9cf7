import { join } from "node:path";
import type { DiscoveryRequest } from "../plugins/discovery.ts";
import { type Contributions, loadPlugins, type Needs, type PluginInfo } from "../plugins/loader.ts";
import { VERSION } from "../platform/environment.ts";
import { trustNotice } from "../policy/trust.ts";
import { policySettings } from "../policy/settings.ts";
import { OpenAICompatibleProvider } from "../providers/chat_completions.ts";
import { ProviderRegistry } from "../providers/registry.ts";
import { ToolRegistry } from "../tools/registry.ts";
import { sourceHost } from "./source_host.ts";
import { CORE, CORE_TOOLS } from "./tools/core.ts";
import type { Workspace } from "./workspace.ts";

/** How the plugins fare, and what they register. */
export interface PluginReview {
  contributions: Contributions;
  tools: ToolRegistry;
}

interface LoadTarget extends Pick<Workspace, "tools" | "providers" | "warn"> {
  needs?: Needs;
}

/** The plugins of one workspace: which there are, which of them are loaded, and what those brought. */
export class WorkspacePlugins {
  /** What the plugins loaded so far have registered. */
  contributions: Contributions | undefined;
  readonly #workspace: Workspace;
  readonly #local: string;
  readonly #familiar: boolean;
  #loaded: { needs: Needs; contributions: Promise<Contributions> } | undefined;

  /** @param local the folder of local plugins, of a worktree that has been looked at already */
  constructor(workspace: Workspace, local?: string) {
    this.#workspace = workspace;
    this.#local = local ?? join(workspace.paths.state, "plugins");
    this.#familiar = local !== undefined;
  }

  /** Where plugins are looked for, and which of them are wanted. */
  get discovery(): DiscoveryRequest {
    const { paths, config } = this.#workspace;
    return {
      roots: { global: join(paths.user, "plugins"), local: this.#local },
      enabled: config.get("plugins"),
      version: VERSION,
    };
  }

  /**
   * Loads the enabled plugins that `needs` calls for, into the workspace's registries. What has been loaded
   * for the same or more is not loaded again.
   */
  async load(needs: Needs): Promise<Contributions> {
    const loaded = this.#loaded;
    if (loaded !== undefined && within(needs, loaded.needs)) return await loaded.contributions;
    const { tools, providers, warn } = this.#workspace;
    const contributions = this.#load({ needs, tools, providers, warn });
    this.#loaded = { needs, contributions };
    this.contributions = await contributions;
    if (needs.tools === "all") {
      const { config } = this.#workspace;
      const own = policySettings(config, config.get("mode"));
      if (own.allow.length > 0 || own.deny.length > 0) {
        const { misnamedTools } = await import("./misnamed_tools.ts");
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
      beforeImport: (plugins) => this.#look(plugins),
      clock,
    });
  }

  /** Warns of what the worktree itself opens, while none of its code has run. */
  async #look(plugins: PluginInfo[]): Promise<void> {
    if (this.#familiar) return;
    const { config, connections, clock, warn } = this.#workspace;
    const { worktree, user } = this.#workspace.paths;
    const local = plugins.filter(({ origin, status }) => origin === "local" && status === "loaded");
    const names = local.map(({ name }) => name);
    const known = () => Array.from(connections.list().values(), ({ base_url }) => base_url);
    await trustNotice({ config, plugins: names, known, worktree, user, clock, warn });
  }
}

/** Whether all that `needs` calls for was called for by `others` in full. */
function within(needs: Needs, others: Needs): boolean {
  return Object.keys(needs).every((kind) => others[kind as keyof Needs] === "all");
}
