import type { ToolRegistrar } from "../../../src/plugins/api.ts";
import { fileEdit } from "./file_edit.ts";
import { fileWrite } from "./file_write.ts";

export function register_tools(registry: ToolRegistrar): void {
  registry.register(fileWrite);
  registry.register(fileEdit);
}
