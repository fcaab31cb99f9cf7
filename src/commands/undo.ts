import type { Workspace } from "../engine/workspace.ts";
import { oneLine, stripControl, terminalColumns } from "../platform/terminal.ts";
import type { FileChange, TurnChanges } from "../sessions/changes.ts";
import { defineCommand, outputOption, pathOption } from "./command.ts";
import { moment } from "./format.ts";
import { type Io, toJson } from "./io.ts";
import { nameOf } from "./names.ts";
import { argument, command, integer, option, optional } from "./options.ts";
import { noSession, openWorkspace } from "./workspace.ts";

const which = {
  name: optional(argument(
    nameOf("sessions", "SESSION"),
    "Its name, or #<id>. Default: the focused one of a terminal session, else the newest one that changed something.",
  )),
  turn: optional(option("--turn", integer("N", 1), "The number of a turn.")),
  output: outputOption,
  path: pathOption,
};

/** `svc changes`, `/changes`: what the turns of a session changed in files. */
export const changes = defineCommand({
  parser: command(
    "changes",
    which,
    "Show what an agent changed in files, turn by turn, as a diff. The changes of sub-agents belong to the turn " +
      "that started them. Changes that commands made are known in a Git worktree.",
  ),
  examples: ["svc changes", "svc changes nightly --turn 3", "svc changes --output json"],
  async run({ name, turn, output, path }, io) {
    const { sessionChanges } = await import("../engine/undo.ts");
    const workspace = openWorkspace(path, io);
    const session = await target(name, workspace, io);
    const found = await sessionChanges(workspace, { session, turn });
    if (output === "json") {
      io.out(toJson(found ?? { session: "", turns: [] }, 2) + "\n");
      return 0;
    }
    if (found === undefined || found.turns.length === 0) {
      io.note(
        found === undefined
          ? "No session has changed a file."
          : `Session ${found.session} has changed no file.`,
      );
      if (workspace.config.get("checkpoints.max_size") === 0) {
        io.note("Changes are not kept (setting checkpoints.max_size).");
      }
      return 0;
    }
    const now = workspace.clock.now();
    const rows = io.isTerminal("out") ? await diffPrinter(workspace, io) : undefined;
    const shown = found.turns.map((each) => turnText(each, found.session, now, rows));
    io.out(shown.join("\n"));
    return 0;
  },
});

/** Prints unified diffs for the terminal of standard output. */
async function diffPrinter(
  { config }: Workspace,
  io: Io,
): Promise<(patch: string) => string> {
  const { patchRows } = await import("./diff.ts");
  const { terminalStyle } = await import("../platform/style.ts");
  const setting = () => config.get("repl.theme");
  const style = terminalStyle({ isTerminal: true, environment: io.environment, setting });
  const columns = io.columns?.() ?? terminalColumns() ?? 80;
  return (patch) => `${patchRows(patch, { style, columns })?.join("\n") ?? patch}\n`;
}

/** @param print how a diff is shown; left out: as it is, for `git apply` */
function turnText(
  turn: TurnChanges,
  session: string,
  now: number,
  print = (patch: string) => patch,
): string {
  const { files, at, state, interrupted, unknown } = turn;
  const count = files.length === 1 ? "1 file" : `${files.length} files`;
  const note = { applied: "", undone: ", taken back", running: ", still running" }[state];
  const lines = [
    `Turn ${turn.turn} of ${oneLine(session)}, ${moment(at, now)}: ${count}${note}`,
    ...interrupted
      ? ["  The process ended in this turn. Later changes of these files may be among them."]
      : [],
    ...unknown === "" ? [] : [`  What commands changed is not known: ${oneLine(unknown)}.`],
    ...files.map((file) => `  ${fileLine(file)}`),
  ];
  const diffs = files.map(({ diff }) => diff && print(stripControl(diff)));
  return `${lines.join("\n")}\n${diffs.map((diff) => diff && `\n${diff}`).join("")}`;
}

function fileLine({ path, change, from, added, removed, agents, note, diff }: FileChange): string {
  const counts = diff === "" ? [] : [`+${added} -${removed}`];
  const by = agents.length === 0 ? [] : [`by ${agents.join(", ")}`];
  const about = [...counts, ...note === "" ? [] : [note], ...by].join("; ");
  const name = from === "" ? path : `${from} -> ${path}`;
  return oneLine(`${change === "mode" ? "changed" : change} ${name}${about && ` (${about})`}`);
}

/** `svc undo`, `/undo`: take back what a turn changed. */
export const undoTurn = defineCommand({
  parser: command(
    "undo",
    which,
    "Take back what a turn changed in files: all of it, or nothing when a file has changed since. Default: the last " +
      "turn that changed something. The model is told at its next turn.",
  ),
  examples: ["svc undo", "svc undo nightly --turn 3", "/undo"],
  run: (values, io) => take(values, io, false),
});

/** `svc redo`, `/redo`: make the changes again that were taken back. */
export const redoTurn = defineCommand({
  parser: command(
    "redo",
    which,
    "Make the changes of a turn again that were taken back. Default: those that were taken back last.",
  ),
  examples: ["svc redo", "svc redo nightly --turn 3"],
  run: (values, io) => take(values, io, true),
});

async function take(
  { name, turn, output, path }: { name?: string; turn?: number; output: string; path: string },
  io: Io,
  redo: boolean,
): Promise<number> {
  const { newestChanged, nothingTo, undo, UndoRefused } = await import("../engine/undo.ts");
  const workspace = openWorkspace(path, io);
  // In a terminal session that has not begun, the newest one may be of another terminal.
  const session = await target(name, workspace, io) ??
    (io.session === undefined ? newestChanged(workspace) : undefined);
  if (session === undefined) throw nothingTo(redo);
  const allow = async (paths: string[]) => {
    if (!io.isTerminal("in")) return false;
    const named = paths.map((each) => oneLine(each)).join(", ");
    return await io.confirm(`These are outside the worktree or protected: ${named}. Go on?`);
  };
  try {
    const done = await undo(workspace, { session, turn, redo, allow });
    if (output === "json") io.out(toJson(done, 2) + "\n");
    else {
      const files = done.files.map((each) => `  ${oneLine(each)}\n`).join("");
      const count = done.files.length === 1 ? "1 file" : `${done.files.length} files`;
      const what = redo ? "made again" : "taken back";
      io.out(`The changes of turn ${done.turn} of ${done.session} are ${what}: ${count}\n${files}`);
    }
    if (done.unknown !== "") {
      io.note(`What its commands changed is not known and stays: ${done.unknown}.`);
    }
    if (done.interrupted && !redo) {
      io.note(
        "The process had ended in that turn: what was changed later in these files may be taken back too.",
      );
      io.note(`To make the changes again: svc redo ${oneLine(done.session)} --turn ${done.turn}`);
    }
    return 0;
  } catch (error) {
    if (output !== "json" || !(error instanceof UndoRefused)) throw error;
    io.out(toJson({ session, turn: error.turn, refused: error.files }, 2) + "\n");
    throw error;
  }
}

/** The session that a command means; undefined for the newest one that changed something. */
async function target(
  given: string | undefined,
  workspace: Workspace,
  io: Io,
): Promise<string | undefined> {
  const name = given ?? io.session?.();
  if (name === undefined) return undefined;
  const session = await workspace.sessions.locate(name);
  if (!workspace.sessions.list().includes(session)) throw noSession(name, workspace);
  return session;
}
