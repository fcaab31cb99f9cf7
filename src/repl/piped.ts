import type { TurnResult } from "../engine/events.ts";
import { errorMessage, SvcError } from "../platform/error.ts";
import { handle } from "./loop.ts";
import { onSignals, type Opened } from "./shell.ts";

/** Runs each input line as a message or command; the exit code is that of the last one. */
export async function runPiped(
  { shell, cancellation, process }: Opened,
): Promise<number> {
  const { conversation, input } = shell;
  const signals = onSignals(cancellation);
  let code = 0;
  try {
    while (!shell.left && !signals.ending.aborted) {
      const read = await input.read({ prompt: "", signal: signals.ending });
      if (read.type !== "line") break;
      if (read.text.trim() === "") continue;
      try {
        code = exitCode(await handle(read.text, shell));
      } catch (error) {
        process.note(`svc: ${errorMessage(error)}`);
        code = error instanceof SvcError ? error.exit : 1;
        if (error instanceof SvcError && error.hint !== "") process.note(`hint: ${error.hint}`);
      }
    }
  } finally {
    await conversation.close();
    input.close();
    signals.release();
  }
  return signals.code() || code;
}

function exitCode(result: TurnResult | undefined): number {
  if (result === undefined || result.status === "ok" || result.status === "truncated") return 0;
  return result.status === "cancelled" ? 130 : 1;
}
