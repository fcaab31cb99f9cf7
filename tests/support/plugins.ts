import { join } from "node:path";
import type { ProviderClass, ToolDefinition } from "../../src/plugins/api.ts";
import { type Contributions, loadPlugins, type LoadRequest } from "../../src/plugins/loader.ts";
import { ProviderRegistry } from "../../src/providers/registry.ts";
import { ToolRegistry } from "../../src/tools/registry.ts";
import type { Project } from "./project.ts";

/** The result of a load, with the registries that it filled and its warnings. */
export interface Loaded extends Omit<Contributions, "providers"> {
  tools: ToolRegistry;
  providers: ProviderRegistry;
  warnings: string[];
}

/** The plugin roots inside a scratch project. */
export function roots({ path }: Project): { global: string; local: string } {
  return { global: join(path, "home"), local: join(path, "local") };
}

/** Loads the plugins of a scratch project's roots, without bundled plugins by default. */
export async function load(project: Project, request: Partial<LoadRequest> = {}): Promise<Loaded> {
  const warnings: string[] = [];
  const tools = new ToolRegistry();
  const providers = new ProviderRegistry();
  const contributions = await loadPlugins({
    roots: roots(project),
    enabled: [],
    version: "1.4.0",
    trusts: () => true,
    bundled: [],
    tools,
    providers,
    OpenAICompatibleProvider: class Base {},
    host: {} as LoadRequest["host"],
    warn: (message) => warnings.push(message),
    ...request,
  });
  return { ...contributions, tools, providers, warnings };
}

/** `name status` of each plugin, in order. */
export function statuses({ plugins }: Pick<Contributions, "plugins">): string[] {
  return plugins.map(({ name, origin, status }) => `${name} ${origin} ${status}`);
}

/** The source of a module that registers one tool. */
export function toolModule(name: string, result = ""): string {
  return `export function register_tools(registry) {
  registry.register(${toolSource(name, result)});
}`;
}

/** The source of a tool definition whose handler returns `result`. */
export function toolSource(name: string, result = ""): string {
  return `{ name: "${name}", description: "does ${name}", permission: "read",
    parameters: { type: "object", properties: {} }, handler: () => ${JSON.stringify(result)} }`;
}

/** The result of a registered tool's handler. */
export async function call(tools: ToolRegistry, name: string): Promise<string> {
  const tool = tools.find(name) as ToolDefinition;
  return await tool.handler({}, {} as Parameters<ToolDefinition["handler"]>[1]);
}

/** A minimal provider class that can be registered. */
export const PROVIDER = class {
  static DEFAULT_BASE_URL = "http://127.0.0.1:1/v1";
  static DEFAULT_MODEL = "m";
  static HOST_PATTERNS = [];
  static ECHO_REASONING = false;
} as unknown as ProviderClass;
