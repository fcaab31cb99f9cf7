import { usageError } from "../../platform/error.ts";
import type { Io } from "../io.ts";

/**
 * What an agent is to do: the words that were given, or standard input for `-` or none.
 *
 * @throws SvcError `no_prompt` (exit 2) when it is empty
 */
export async function readPrompt(
  given: string | undefined,
  values: { unattended: boolean },
  io: Io,
  { missing, hint }: { missing: string; hint: string },
): Promise<string> {
  // Standard input is read only when it is the prompt: a pipe nobody closes must not block a run.
  const piped = given === "-" ||
    (given === undefined && !values.unattended && !io.isTerminal("in"));
  const prompt = (piped ? await io.readInput() : given ?? "").trim();
  if (prompt === "") {
    throw usageError("no_prompt", missing, hint);
  }
  return prompt;
}
