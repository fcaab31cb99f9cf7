import type { ToolDefinition } from "../../src/plugins/api.ts";

/** A tool that does nothing, with what a test wants of it. */
export function tool(definition: Partial<ToolDefinition> & { name: string }): ToolDefinition {
  return {
    description: "",
    permission: "read",
    parameters: { type: "object", properties: {} },
    handler: () => "done",
    ...definition,
  };
}
