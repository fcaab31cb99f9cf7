import type { ConfigView, ToolArguments } from "../plugins/api.ts";
import type { ToolOutcome } from "../tools/execute.ts";
import type { CallScope } from "./call_scope.ts";

/** Writes the tool part, with the output as the log's settings want it (specification 2.13, 8). */
export async function logCall(
  name: string,
  input: ToolArguments,
  outcome: ToolOutcome,
  scope: CallScope,
): Promise<void> {
  const { config } = scope;
  let analysis = "";
  if (config.get("tool_analysis")) {
    const { analyse } = await import("./analysis.ts");
    analysis = await analyse(name, input, outcome, scope);
  }
  scope.log.append({
    type: "tool",
    name,
    input,
    output: loggedOutput(name, outcome, config),
    is_error: outcome.is_error,
    ...(analysis === "" ? {} : { analysis }),
  });
}

function loggedOutput(name: string, outcome: ToolOutcome, config: ConfigView): string {
  const { output, is_error } = outcome;
  const noise: string[] = config.get("noise_tools");
  if (noise.includes(name) && !is_error) {
    return `[${name} result excluded from log, see tool call above for parameters]`;
  }
  const cap: number = config.get("session_tool_max_chars");
  if (cap <= 0 || output.length <= cap) return output;
  return `${output.slice(0, cap).toWellFormed()}… (truncated from ${output.length} chars)`;
}
