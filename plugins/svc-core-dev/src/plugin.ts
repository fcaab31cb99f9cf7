import type { ToolRegistrar } from "../../../src/plugins/api.ts";
import { codeFormat, codeLint, codeTest } from "./tools.ts";

export function register_tools(registry: ToolRegistrar): void {
  for (const tool of [codeTest, codeLint, codeFormat]) registry.register(tool);
}
