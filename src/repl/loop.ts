import type { TurnResult } from "../engine/events.ts";
import { errorMessage, SvcError } from "../platform/error.ts";
import { oneLine } from "../platform/terminal.ts";
import { writeHint } from "../platform/write_failure.ts";
import { asSlash } from "./as_slash.ts";
import type { Completer } from "./input/completion.ts";
import { wrapped } from "./render/width.ts";
import type { Shell } from "./shell.ts";

export interface LoopOptions {
  shell: Shell;
  /** Told before each read: what happened in the meantime. */
  between(): void;
  prompt(): string;
  complete: Completer;
  /** Aborts when the process is to end. */
  ending: AbortSignal;
}

/** Reads a message or a command and does it, until the person leaves. */
export async function runLoop(options: LoopOptions): Promise<void> {
  const { shell, between, prompt, complete, ending } = options;
  let leaving = false; // Ctrl-C once at the empty prompt
  while (!shell.left && !ending.aborted) {
    between();
    shell.output.fresh();
    const read = await shell.input.read({ prompt: prompt(), complete, signal: ending });
    if (read.type === "end" || ending.aborted) return;
    if (read.type === "interrupted") {
      if (leaving) return;
      leaving = true;
      shell.io.note("Ctrl-C again leaves; so do Ctrl-D and /exit.");
      continue;
    }
    leaving = false;
    if (read.text.trim() !== "") await reported(shell, () => handle(read.text, shell));
  }
}

/** One message or one command. */
export async function handle(text: string, shell: Shell): Promise<TurnResult | undefined> {
  const [, name, rest] = COMMAND.exec(text.trim()) ?? [];
  if (name !== undefined) {
    const { runSlash } = await import("./commands/run.ts");
    await runSlash(name, rest ?? "", shell);
    return undefined;
  }
  const { runPrompt } = await import("./turn.ts");
  return await runPrompt(text, shell);
}

/** Does it, and says what went wrong; says whether it went right. */
export async function reported(shell: Shell, work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    const { output, style, io } = shell;
    output.status(undefined);
    const said = `! Error: ${asSlash(oneLine(errorMessage(error)))}`;
    output.line(style.red(wrapped(said, output.columns())));
    const hint = error instanceof SvcError ? error.hint : writeHint(error);
    if (hint !== "") io.note(`hint: ${hint}`);
    return false;
  }
}

/** A path such as /etc/hosts is no command. */
const COMMAND = /^\/([a-z?][\w-]*)(?:\s+([^]*))?$/i;
