import type { ToolRegistrar } from "../../../src/plugins/api.ts";
import { controlTools } from "./control_tools.ts";
import { Servers } from "./servers.ts";

export function register_tools(registry: ToolRegistrar): void {
  const servers = registry.source((host) => new Servers(host));
  for (const tool of controlTools(servers)) registry.register(tool);
}
