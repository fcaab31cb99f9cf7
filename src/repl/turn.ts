import { ROOT_RUN, type TurnEvent, type TurnResult } from "../engine/events.ts";
import type { Shell } from "./shell.ts";

/** Milliseconds between two looks of the status line. */
const TICK = 100;

/** Sends a message to the focused run's agent and shows what happens, until the turn ends. */
export function runPrompt(prompt: string, shell: Shell): Promise<TurnResult | undefined> {
  const { conversation, focus: { run } } = shell;
  return showTurn(run, (signal) => conversation.turn(run, prompt, signal), shell);
}

/** Shows what happens in a turn of a run; Ctrl-C cancels it. */
export async function showTurn(
  run: number,
  turn: (signal: AbortSignal) => AsyncIterable<TurnEvent>,
  shell: Shell,
): Promise<TurnResult | undefined> {
  const { workspace: { config, clock, connections }, output, style } = shell;
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
  const view = new TurnView(output, style, settings, clock, { root: run });
  let result: TurnResult | undefined;
  let started: number | undefined;
  let handed: number | "done" | undefined;
  await shell.cancellable(async (signal) => {
    const timer = setInterval(() => view.tick(), TICK);
    try {
      for await (const event of turn(signal)) {
        view.event(event);
        if (event.type === "turn_finished" && event.run === run) result = event.result;
        if (event.type === "run_started" && event.parent === run) started = event.run;
        if (event.type === "handoff" && (event.target !== "done" || event.run === run)) {
          handed = event.target;
        }
      }
    } finally {
      clearInterval(timer);
      view.end();
    }
  });
  if (result !== undefined) await connections.touch(result.provider);
  if (handed !== undefined) handOver(handed, shell);
  else if (started !== undefined) await followDelegation(started, shell);
  return result;
}

/** Where `handoff` sent the person: to another run, or away from one that is done (specification 3.6). */
function handOver(target: number | "done", { focus, conversation, io }: Shell): void {
  const { run } = focus;
  if (target !== "done") focus.attach(target);
  else focus.attach(conversation.runs.list()[run - 1]?.parent || ROOT_RUN);
  if (focus.run !== run) io.note(`The focus is on run #${focus.run} now; /focus #${run} returns.`);
}

/** The focus goes to an agent that was started, or does when the operator says so (specification 3.6). */
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
