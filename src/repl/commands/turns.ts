import { textOption } from "../../commands/command.ts";
import { nameOf } from "../../commands/names.ts";
import { SESSION_NEEDS } from "../../engine/workspace.ts";
import { usageError } from "../../platform/error.ts";
import { stripControl } from "../../platform/terminal.ts";
import type { Shell } from "../shell.ts";
import type { Target } from "../targets.ts";
import type { SlashCommand } from "./table.ts";
import {
  argument,
  choice,
  command,
  type InferValue,
  integer,
  option,
  optional,
  string,
  withDefault,
} from "../../commands/options.ts";

const run = textOption(
  "--run",
  nameOf("targets", "TARGET"),
  "#<session id>, #<run>, a role, session:<name>, or a session's name; nothing is switched.",
);

const historyParser = command("history", {
  count: withDefault(
    argument(string("N", /^(all|[1-9]\d{0,8})$/), "How many turns, or all; default: 10."),
    "10",
  ),
  thoughts: {
    ...optional(option(
      "--thoughts",
      choice(["first", "all"]),
      "With the first line of each turn's reasoning, or all of it.",
    )),
    implied: "first",
  },
  run,
}, "List the turns of this session, or of another run.");

/** `/history` */
export const history: SlashCommand<InferValue<typeof historyParser>> = {
  parser: historyParser,
  examples: ["/history", "/history all --thoughts", "/history --run #2"],
  async run({ count, thoughts, run }, shell) {
    const { document: { turns } } = await targetOf(run, shell);
    const { historyLines } = await import("../render/saved_turns.ts");
    const shown = count === "all" ? turns : turns.slice(-Number(count));
    for (
      const each of historyLines(shown, thoughts ?? "none", shell.style, shell.output.columns())
    ) {
      shell.output.line(each);
    }
    const left = turns.length - shown.length;
    if (left > 0) shell.io.note(`${left} earlier: /history all`);
    if (turns.length === 0) shell.io.note("There are no turns yet.");
  },
};

const printParser = command("print", {
  turn: argument(
    string("TURN[.PART]", /^#?\d{1,9}(\.\d{1,9})?$/),
    "The number of a turn in /history, and of one of its parts.",
  ),
  full: option("--full", "Without the cap of print_max_chars."),
  run,
}, "Print a turn again, or one part of it.");

/** `/print` */
export const print: SlashCommand<InferValue<typeof printParser>> = {
  parser: printParser,
  examples: ["/print 3", "/print 3.2 --full"],
  async run({ turn: place, full, run }, shell) {
    const [turnNumber, partNumber] = place.replace("#", "").split(".").map(Number);
    const { document: { turns } } = await targetOf(run, shell);
    const { turnLines } = await import("../render/saved_turns.ts");
    const turn = turns.find(({ index }) => index === turnNumber);
    if (turn === undefined) {
      throw usageError(
        "no_turn",
        `There is no turn ${turnNumber}.`,
        `The session has ${turns.length}.`,
      );
    }
    if (partNumber !== undefined && turn.parts[partNumber - 1] === undefined) {
      throw usageError(
        "no_part",
        `Turn ${turnNumber} has no part ${partNumber}.`,
        `It has ${turn.parts.length}.`,
      );
    }
    const most = full ? 0 : shell.workspace.config.get("print_max_chars");
    const { output, style } = shell;
    const columns = output.isTerminal ? output.columns() : undefined;
    for (const each of turnLines(turn, { part: partNumber, most, style, columns })) {
      output.line(each);
    }
  },
};

/** The session that `--run` names, or that of the focused run; nothing is switched (specification 4.7). */
export async function targetOf(given: string | undefined, shell: Shell): Promise<Target> {
  const { workspace: { sessions }, workspace, conversation, focus } = shell;
  if (given !== undefined) {
    const { resolveTarget } = await import("../targets.ts");
    return await resolveTarget(given, {
      runs: conversation.runs.list(),
      sessions,
      roles: async () => {
        await workspace.load(SESSION_NEEDS);
        return (await workspace.catalog()).list("role").map(({ name }) => name);
      },
    });
  }
  const run = focus.current();
  const session = run?.session ?? conversation.name;
  const document = session === undefined ? undefined : sessions.read(session);
  if (session === undefined || document === undefined) {
    throw usageError(
      "no_target",
      "The session has no turns yet.",
      "See saved ones with: /sessions",
    );
  }
  return { session, run, document };
}

const focusParser = command(
  "focus",
  {
    action: "to",
    target: optional(argument(
      nameOf("runs", "TARGET"),
      "#<run>, #<session id>, session:<name> or root; or back, child, parent, sibling, next, prev.",
    )),
  },
  "Show the tree of runs, or focus the run that your messages go to.",
  [
    command("log", {
      action: "log",
      count: withDefault(argument(integer("N", 1, 999_999), "Lines; default: 20."), 20),
    }, "Print the end of the focused run's output."),
  ],
);

/** `/focus` */
export const focus: SlashCommand<InferValue<typeof focusParser>> = {
  parser: focusParser,
  examples: ["/focus", "/focus #2", "/focus parent", "/focus log 50"],
  async run(values, shell) {
    if (values.action === "log") return showLog(values.count, shell);
    if (values.target === undefined) return await showTree(shell);
    shell.focus.to(values.target);
    const { focus, io } = shell;
    const run = focus.current();
    const role = run === undefined || run.role === "" ? "" : ` (${run.role})`;
    io.note(`The focus is on run #${focus.run}${role}; messages go there.`);
  },
};

async function showTree({ conversation, focus, output, style, io }: Shell): Promise<void> {
  const runs = conversation.runs.list();
  if (runs.length === 0) return io.note("There are no runs yet: the first message starts one.");
  const { runTreeLines } = await import("../render/saved_turns.ts");
  for (const line of runTreeLines(runs, focus.run, style, output.columns())) output.line(line);
}

function showLog(count: number, { conversation, focus, output, io }: Shell): void {
  const lines = conversation.runs.output(focus.run);
  if (lines.length === 0) return io.note(`Run #${focus.run} has no output yet.`);
  for (const line of lines.slice(-count)) output.line(stripControl(line));
}
