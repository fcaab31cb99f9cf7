import { ROOT_RUN, type TurnEvent, type TurnResult } from "../engine/events.ts";
import { errorMessage, SvcError, writeHint } from "../platform/error.ts";
import { oneLine } from "../platform/terminal.ts";
import { backgroundWork } from "./background.ts";
import { asSlash } from "./commands/table.ts";
import type { Completer } from "./input/completion.ts";
import { wrapped } from "../platform/text.ts";
import type { NewAttachment } from "../sessions/attachments.ts";
import { COMMAND, writeMessages } from "./messages.ts";
import type { Shell } from "./shell.ts";

export interface LoopOptions {
  shell: Shell;
  /** Called before each read to report what happened meanwhile. */
  between(): void;
  prompt(): string;
  complete: Completer;
  /** Aborts when the process must end. */
  ending: AbortSignal;
}

/** Reads and runs messages and commands until the operator leaves. */
export async function runLoop(options: LoopOptions): Promise<void> {
  const { shell, between, prompt, complete, ending } = options;
  let leaving = false; // Ctrl-C once at the empty prompt
  while (!shell.left && !ending.aborted) {
    between();
    shell.output.fresh();
    const next = shell.waiting.next();
    // The terminal is still being read since the turn: only after Enter has another program all of its keys.
    if (next?.trimStart().startsWith("!!")) shell.input.giveBack(next);
    else if (next !== undefined) {
      shell.output.line(prompt() + next.replaceAll("\n", "\n  "));
      await reported(shell, () => handle(next, shell));
      continue;
    }
    const read = await shell.input.read({ prompt: prompt(), complete, signal: ending });
    if (read.type === "end" || ending.aborted) return;
    if (read.type !== "line") {
      if (leaving) return;
      leaving = true;
      shell.io.note("Ctrl-C again leaves; so do Ctrl-D and /exit.");
      continue;
    }
    leaving = false;
    if (read.text.trim() !== "") await reported(shell, () => handle(read.text, shell));
  }
}

/** Runs one message or one slash command. */
export async function handle(text: string, shell: Shell): Promise<TurnResult | undefined> {
  // Only a person runs commands so: what is piped in may come from anywhere.
  if (shell.output.isTerminal && text.trimStart().startsWith("!")) {
    const { runOwnCommand } = await import("./commands/own_command.ts");
    await runOwnCommand(text.trim(), shell);
    return undefined;
  }
  const [, name, rest] = COMMAND.exec(text.trim()) ?? [];
  if (name !== undefined) {
    const { runSlash } = await import("./commands/slash.ts");
    await runSlash(name, rest ?? "", shell);
    return undefined;
  }
  return await runPrompt(text, shell);
}

/** Runs the work and prints its error; returns whether it succeeded. */
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

/** Milliseconds between two updates of the status line. */
const TICK = 100;

/** Runs a turn of the focused run's agent and renders its events. Files that the prompt names as `@path` go with it. */
export async function runPrompt(prompt: string, shell: Shell): Promise<TurnResult | undefined> {
  const { conversation, focus: { run }, workspace: { config } } = shell;
  const attachments = await namedFiles(prompt, shell);
  return await showTurn(
    run,
    (signal, take) => {
      const messages = () =>
        Promise.all(
          (config.get("repl.typed") === "next_round" ? take() : []).map(async (text) => {
            let attachments: NewAttachment[] = [];
            await reported(shell, async () => attachments = await namedFiles(text, shell));
            return { text, attachments };
          }),
        );
      return conversation.turn(run, prompt, { signal, messages, attachments });
    },
    shell,
  );
}

/** The files that a message of a person names as `@path`; a piped one may come from anywhere, and names none. */
async function namedFiles(
  message: string,
  { workspace: { paths: { worktree } }, io, output }: Shell,
): Promise<NewAttachment[]> {
  if (!message.includes("@") || !output.isTerminal) return [];
  const { attachmentAt, namedIn } = await import("../engine/attachments.ts");
  const named = namedIn(message, worktree);
  const found = named.map((path) => attachmentAt(path, worktree));
  if (named.length > 0) io.note(`attached: ${named.join(", ")}`);
  return found;
}

/**
 * Renders the events of a turn; Escape and Ctrl-C cancel it. The operator can write messages meanwhile. Those that
 * the turn does not take are sent after it, or return to the editor when it did not end well.
 *
 * @param turn may take the messages for the model's next reply
 */
export async function showTurn(
  run: number,
  turn: (signal: AbortSignal, take: () => string[]) => AsyncIterable<TurnEvent>,
  shell: Shell,
): Promise<TurnResult | undefined> {
  const { workspace: { config, clock }, output, style } = shell;
  const { TurnView } = await import("./render/turn_view.ts");
  const settings = () => ({
    show_thinking: config.get("show_thinking"),
    show_errors: config.get("show_errors"),
    show_notes: config.get("show_notes"),
    status_spinner: config.get("status_spinner"),
    word_streaming: config.get("word_streaming"),
    delegate_echo: config.get("delegate_echo"),
    subrun_verbosity: config.get("subrun_verbosity"),
  });
  let running = (): string[] => [];
  const background = backgroundWork(shell); // loaded while the turn runs
  const view = new TurnView(output, style, settings, clock, {
    root: run,
    background: () => running(),
  });
  let result: TurnResult | undefined;
  let started: number | undefined;
  let handed: number | "done" | undefined;
  await shell.cancellable(async (signal) => {
    const timer = setInterval(() => view.tick(), TICK);
    const writing = await writeMessages(shell);
    try {
      for await (const event of turn(signal, () => writing.take())) {
        if (event.type === "turn_finished" && event.run === run) running = await background;
        view.event(event);
        if (event.type === "turn_finished" && event.run === run) result = event.result;
        if (event.type === "run_started" && event.parent === run) started = event.run;
        if (event.type === "handoff" && (event.target !== "done" || event.run === run)) {
          handed = event.target;
        }
      }
    } finally {
      clearInterval(timer);
      await writing.end(result?.status === "ok" || result?.status === "truncated");
      view.end();
    }
  });
  if (handed !== undefined) handOver(handed, shell);
  else if (started !== undefined) await followDelegation(started, shell);
  return result;
}

/** Applies a `handoff`: focuses its target run, or the parent of a finished run (specification 3.6). */
function handOver(target: number | "done", { focus, conversation, io }: Shell): void {
  const { run } = focus;
  if (target !== "done") focus.attach(target);
  else focus.attach(conversation.runs.list()[run - 1]?.parent || ROOT_RUN);
  if (focus.run !== run) io.note(`The focus is on run #${focus.run} now; /focus #${run} returns.`);
}

/** Applies `focus_on_delegate` to a started sub-agent: focuses it, asks, or does nothing (specification 3.6). */
async function followDelegation(
  run: number,
  { workspace: { config }, focus, io }: Shell,
): Promise<void> {
  const setting = config.get("focus_on_delegate");
  if (setting === "off" || config.get("unattended")) return;
  if (setting === "ask" && !await io.confirm(`Focus run #${run}?`)) return;
  focus.attach(run);
  io.note(`The focus is on run #${run}; /focus back returns.`);
}
