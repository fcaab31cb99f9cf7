import { stripControl } from "../../platform/terminal.ts";
import { usageError } from "../../platform/error.ts";
import { STEPS } from "../focus.ts";
import type { Shell } from "../shell.ts";
import { slashCommand } from "./command.ts";

/** Lines of a run's output that are shown when nobody says how many. */
const LOG_LINES = 20;

export const command = slashCommand({
  summary: "the runs here, and where your messages go",
  usage: [
    "focus",
    "focus #<run>|#<session id>|session:<name>|root",
    `focus ${STEPS.join("|")}`,
    "focus log [n]",
  ],
  complete: { "": "runs" },
  async run(line, shell) {
    const [word, count] = line.words;
    if (word === undefined) return await tree(shell);
    if (word === "log") return log(count, shell);
    shell.focus.to(line.rest(0));
    const { focus, io } = shell;
    const run = focus.current();
    const who = run === undefined || run.role === "" ? "" : ` (${run.role})`;
    io.note(`The focus is on run #${focus.run}${who}; messages go there.`);
  },
});

async function tree({ conversation, focus, output, style, io }: Shell): Promise<void> {
  const runs = conversation.runs.list();
  if (runs.length === 0) return io.note("There are no runs yet: the first message starts one.");
  const { runTreeLines } = await import("../render/saved_turns.ts");
  for (const line of runTreeLines(runs, focus.run, style, output.columns())) output.line(line);
}

function log(count: string | undefined, { conversation, focus, output, io }: Shell): void {
  if (count !== undefined && !/^[1-9]\d{0,5}$/.test(count)) {
    throw usageError("usage", `"${count}" is no number of lines.`, "See: /help focus");
  }
  const lines = conversation.runs.output(focus.run);
  if (lines.length === 0) return io.note(`Run #${focus.run} has put out nothing yet.`);
  for (const line of lines.slice(-Number(count ?? LOG_LINES))) output.line(stripControl(line));
}
