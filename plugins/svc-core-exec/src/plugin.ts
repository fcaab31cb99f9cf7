import type { ToolRegistrar } from "../../../src/plugins/api.ts";
import { runCommand } from "./run_command.ts";

export function register_tools(registry: ToolRegistrar): void {
  registry.register(runCommand);
}
