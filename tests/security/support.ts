import * as editPlugin from "../../plugins/svc-core-edit/src/plugin.ts";
import * as fsPlugin from "../../plugins/svc-core-fs/src/plugin.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { ToolArguments } from "../../src/plugins/api.ts";
import { authorize } from "../../src/policy/gate.ts";
import { Grants } from "../../src/policy/grants.ts";
import { headlessOperator } from "../../src/policy/operator.ts";
import type { WorktreeGuard } from "../../src/policy/paths.ts";
import { Policy } from "../../src/policy/policy.ts";
import { runTool } from "../../src/tools/execute.ts";
import { prepareCall } from "../../src/tools/prepare.ts";
import { ToolRegistry } from "../../src/tools/registry.ts";
import { config, settings, type Site } from "../policy/support.ts";
import { toolContext } from "../support/tool_context.ts";

/** The content of files that no call may return. */
export const CANARY = "secret canary";

/** Calls a file tool as a model does: cleaned arguments, policy, approval, handler. Returns its result. */
export type FileTools = (tool: string, args: ToolArguments) => Promise<string>;

/** @param yes whether the operator approves every call that needs it */
export function fileTools(
  place: Site,
  options: { guard?: WorktreeGuard; yes?: boolean },
): FileTools {
  const { guard = place.guard, yes = false } = options;
  const registry = new ToolRegistry();
  for (const plugin of [fsPlugin, editPlugin]) {
    plugin.register_tools({
      register: (tool) => registry.register(tool, "x"),
      source: () => never(),
    });
  }
  const policy = new Policy(settings(), guard, config());
  const operator = headlessOperator(yes);
  const grants = new Grants();
  const context = toolContext({ worktree: place.worktree, config: { tool_max_result_chars: 0 } });
  const { signal } = context;
  return async (name, given) => {
    const call = { name, arguments: JSON.stringify(given) };
    const prepared = prepareCall(registry, () => true, call);
    if (!prepared.ok) return `Error: ${prepared.message}`;
    const { tool, args } = prepared;
    const { granted, message, paths } = await authorize({
      ...{ tool, args, policy, operator, grants, guard, signal, run: 1, session: "test" },
      async preview(paths) {
        if (typeof tool.confirm !== "function") return "";
        return await Promise.try(tool.confirm, args, { ...context, paths }).catch(() => "");
      },
    });
    if (!granted) return message;
    const limits = { max_result_chars: 0, clock: systemClock };
    return (await runTool(tool, args, { ...context, paths }, limits)).output;
  };
}

function never(): never {
  throw new Error("no file tool has a source");
}

/** Whether a result tells the model that the call did not happen. */
export function isRefusal(result: string): boolean {
  return result.startsWith("Error:") || result.startsWith("[cancelled]");
}

/** Paths and contents of everything under the directories; links and special files by their kind. */
export function snapshot(...roots: string[]): string[] {
  return roots.flatMap((root) =>
    Array.from(Deno.readDirSync(root)).flatMap(({ name, isDirectory, isFile }) => {
      const path = `${root}/${name}`;
      if (isDirectory) return [path, ...snapshot(path)];
      return [isFile ? `${path}: ${Deno.readTextFileSync(path)}` : path];
    })
  ).sort();
}
