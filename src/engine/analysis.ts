import type { ToolArguments } from "../plugins/api.ts";
import type { ToolOutcome } from "../tools/execute.ts";
import type { CallScope } from "./call_scope.ts";

const LONGEST_OUTPUT = 4000;

/**
 * One line of insight on a tool result, asked of the model itself (`tool_analysis`). Empty when the
 * model cannot be asked: an analysis is never worth failing a turn.
 */
export async function analyse(
  name: string,
  input: ToolArguments,
  outcome: ToolOutcome,
  { provider, signal, spend }: Pick<CallScope, "provider" | "signal" | "spend">,
): Promise<string> {
  const question =
    `A tool was called: ${name} ${JSON.stringify(input)}. Its result follows. Say in ` +
    `one short line what it tells.\n\n${outcome.output.slice(0, LONGEST_OUTPUT)}`;
  try {
    const answer = await provider.chat_nonstreaming([{ role: "user", content: question }], {
      signal,
      spend,
    });
    return answer.trim().split("\n")[0]!.trim();
  } catch {
    return "";
  }
}
