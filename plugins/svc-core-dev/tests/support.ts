import type { ProcessRequest } from "../../../src/plugins/api.ts";
import type { ToolOutcome } from "../../../src/tools/execute.ts";
import type { Project } from "../../../tests/support/project.ts";
import { pluginTools } from "../../../tests/support/tool.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import * as plugin from "../src/plugin.ts";

export const tools = pluginTools(plugin);

export interface Ended {
  code?: number;
  output?: string;
  timed_out?: boolean;
  cancelled?: boolean;
}

/** Makes one call with a runner that returns `ended`. Returns the request to the runner and the result. */
export async function recorded(
  work: Pick<Project, "path">,
  name: string,
  args: Record<string, unknown>,
  { config, ended = {} }: { config?: Record<string, unknown>; ended?: Ended } = {},
): Promise<ToolOutcome & { request: ProcessRequest | undefined }> {
  let request: ProcessRequest | undefined;
  const context = {
    ...toolContext({ worktree: work.path, config }),
    run: (asked: ProcessRequest) => {
      request = asked;
      const result = { code: 0, output: "", timed_out: false, cancelled: false, ...ended };
      return Promise.resolve(result);
    },
  };
  const outcome = await tools.call(name, args, context);
  return { request, ...outcome };
}
