import { oneLine } from "../../platform/terminal.ts";
import { count } from "./facts.ts";
import type { TurnRun } from "./turn_run.ts";

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME = 100;

/** What is going on: time, the tools of every run, tokens so far (sub-agents included). */
export function statusLine(runs: TurnRun[], root: number, since: number, now: number): string {
  const frame = FRAMES[Math.floor(now / FRAME) % FRAMES.length]!;
  const tokens = runs.reduce((sum, run) => sum + run.tokens, 0);
  const about = runs.some(({ guessed }) => guessed) ? "~" : "";
  const active = runs.filter((run) => run.result === undefined);
  const deepest = active.filter((run) => run.id !== root);
  const shown = deepest.length > 0 ? deepest : active;
  return [
    `${frame} ${elapsed(now - since)}`,
    ...(tokens === 0 ? [] : [`${about}${count(tokens)} tokens`]),
    ...shown.map((run) =>
      (run.id === root ? "" : `#${run.id} ${oneLine(run.role)}: `) + doing(run, now)
    ),
  ].join(" · ");
}

function doing(run: TurnRun, now: number): string {
  const [call, ...others] = run.calls.values();
  if (call !== undefined) {
    return oneLine(call.status || call.name) + (others.length > 0 ? ` (+${others.length})` : "");
  }
  const wait = (run.retryAt ?? 0) - now;
  if (wait > 0) return `retrying in ${Math.ceil(wait / 1000)} s`;
  if (run.thinkingSince !== undefined) return "thinking";
  if (!run.begun) return "waiting for the session";
  return run.guessed ? "answering" : "waiting for the model";
}

function elapsed(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
