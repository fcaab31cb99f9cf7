import type { ToolRegistrar } from "../../../src/plugins/api.ts";
import { fileRead } from "./file_read.ts";
import { globTool } from "./glob_tool.ts";
import { grep } from "./grep_tool.ts";
import { listDir } from "./list_dir.ts";

export function register_tools(registry: ToolRegistrar): void {
  for (const tool of [fileRead(), listDir, globTool, grep()]) registry.register(tool);
}
