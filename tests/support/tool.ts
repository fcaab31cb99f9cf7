import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";
import type { PluginModule, ToolContext, ToolDefinition } from "../../src/plugins/api.ts";
import { runTool, type ToolOutcome } from "../../src/tools/execute.ts";
import { prepareCall } from "../../src/tools/prepare.ts";
import { ToolRegistry } from "../../src/tools/registry.ts";

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

/** The tools of a plugin, to be called the way a model calls them, without a policy. */
export function pluginTools(plugin: PluginModule): {
  registry: ToolRegistry;
  call(name: string, args: unknown, context: ToolContext): Promise<ToolOutcome>;
  preview(name: string, args: unknown, context: ToolContext): Promise<string>;
} {
  const registry = new ToolRegistry();
  plugin.register_tools?.({
    register: (each) => registry.register(each, "plugin"),
    source: () => assert.fail("a source needs a workspace"),
  });
  const prepare = (name: string, args: unknown) => {
    const prepared = prepareCall(registry, () => true, { name, arguments: JSON.stringify(args) });
    assert.ok(prepared.ok, prepared.ok ? "" : prepared.message);
    return prepared;
  };
  return {
    registry,
    call(name, args, context) {
      const prepared = prepare(name, args);
      const max_result_chars = Number(context.config.get("tool_max_result_chars") ?? 0);
      return runTool(prepared.tool, prepared.args, context, {
        max_result_chars,
        clock: systemClock,
      });
    },
    async preview(name, args, context) {
      const prepared = prepare(name, args);
      assert.equal(typeof prepared.tool.confirm, "function");
      const { confirm } = prepared.tool;
      return confirm ? await confirm(prepared.args, context) : "";
    },
  };
}
