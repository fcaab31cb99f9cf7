import { dirname, join } from "node:path";
import { errorMessage, SvcError, usageError } from "../platform/error.ts";
import { makeFolder, mintId, tryRemove, writeAllSync } from "../platform/files.ts";
import {
  type Change,
  type Checkpoints,
  hasCheckpoints,
  type Kept,
  type Line,
  same,
} from "../sessions/checkpoints.ts";
import { endOf, isUndone, type TurnChanges, turnChanges } from "../sessions/changes.ts";
import { settle } from "../sessions/turn_checkpoint.ts";
import { openCheckpoints } from "./changes.ts";
import type { Workspace } from "./workspace.ts";

/** What the turns of a session changed. */
export interface SessionChanges {
  session: string;
  turns: TurnChanges[];
}

/** A file that keeps the changes of a turn from being taken back. */
export interface Obstacle {
  path: string;
  reason: string;
}

/** The changes of a turn were not taken back: nothing was written. */
export class UndoRefused extends SvcError {
  constructor(readonly turn: number, readonly files: Obstacle[], redo: boolean) {
    const shown = files.slice(0, 20).map(({ path, reason }) => `${path} (${reason})`).join(", ");
    const more = files.length > 20 ? ` and ${files.length - 20} more` : "";
    super(
      "changed_since",
      `Turn ${turn} cannot be ${redo ? "redone" : "taken back"}: ${shown}${more}.`,
      { hint: "Nothing was changed. To see what the turn changed: svc changes" },
    );
  }
}

/**
 * What the turns of a session changed.
 *
 * @param given the name or handle of a session. Default: the newest one that changed something
 * @throws SvcError `no_session`, `no_turn` (exit 2)
 */
export async function sessionChanges(
  workspace: Workspace,
  { session: given, turn }: { session?: string; turn?: number },
): Promise<SessionChanges | undefined> {
  const session = given === undefined ? newestChanged(workspace) : await recorded(workspace, given);
  if (session === undefined) return undefined;
  const checkpoints = await opened(workspace, session);
  if (checkpoints === undefined) return { session, turns: [] };
  const turns = await turnChanges(checkpoints, { turn });
  if (turn !== undefined && turns.length === 0) {
    const all = await turnChanges(checkpoints);
    throw noTurn(session, turn, all.map((each) => each.turn));
  }
  return { session, turns };
}

/** A turn that changed files. */
export interface ChangedTurn {
  undone: boolean;
  paths: string[];
}

/** Those of some turns of a session that have ended and changed files, by their numbers; contents are not compared. */
export async function changedTurns(
  workspace: Workspace,
  session: string,
  turns: readonly number[],
): Promise<Map<number, ChangedTurn>> {
  const found = new Map<number, ChangedTurn>();
  if (!hasCheckpoints(workspace.paths.state, session)) return found;
  const checkpoints = await openCheckpoints(session, workspace);
  const lines = checkpoints.lines((turn) => turns.includes(turn));
  for (const [turn, own] of Map.groupBy(lines, ({ turn }) => turn)) {
    const changes = endOf(own)?.changes ?? [];
    if (changes.length === 0) continue;
    found.set(turn, { undone: isUndone(own), paths: changes.map(({ path }) => path) });
  }
  return found;
}

export interface UndoRequest {
  session: string;
  /** Default: the last turn that changed something and is not taken back; to redo, the one that was taken back last. */
  turn?: number;
  /** Makes the changes again that were taken back. Default: takes them back. */
  redo?: boolean;
  /** Called with paths that are outside the worktree, or protected. Default: they are refused. */
  allow?: (paths: string[]) => Promise<boolean>;
}

/** What was taken back, or redone. */
export interface Undone {
  session: string;
  turn: number;
  state: "undone" | "applied";
  /** Paths. */
  files: string[];
  /** Why changes that commands made are not known, which stay; empty when they are. */
  unknown: string;
  /** The process had ended in the turn: later changes of its files may have been taken back with it. */
  interrupted: boolean;
}

/**
 * Takes back what a turn changed, all of it or nothing, and logs that as a turn of the session, from which the model
 * is told. The files must be as the turn left them.
 *
 * @throws UndoRefused for files that have changed since; SvcError `session_busy` while a turn of the session runs,
 * `no_changes`, and as {@linkcode sessionChanges}
 */
export async function undo(workspace: Workspace, request: UndoRequest): Promise<Undone> {
  const { redo = false, allow } = request;
  const name = await recorded(workspace, request.session);
  const session = workspace.sessions.open(name);
  try {
    const busy = new AbortController();
    await session.acquireTurn(busy.signal, () =>
      busy.abort(
        new SvcError("session_busy", `Session ${name} has a turn running.`, {
          hint: "Wait for its end, or cancel it.",
        }),
      ));
    const checkpoints = await opened(workspace, name, true);
    const lines = checkpoints?.lines() ?? [];
    const turn = request.turn ?? chosen(lines, redo);
    const own = lines.filter((line) => line.turn === turn);
    const end = endOf(own);
    if (checkpoints === undefined || turn === undefined || end === undefined) {
      if (request.turn !== undefined) {
        throw noTurn(name, request.turn, lines.flatMap((line) => endOf([line])?.turn ?? []));
      }
      throw nothingTo(redo);
    }
    if (end.changes.length === 0) throw nothingTo(redo);
    if (isUndone(own) !== redo) {
      throw new SvcError(
        "no_changes",
        redo ? `Turn ${turn} is not taken back.` : `Turn ${turn} is taken back already.`,
        redo ? {} : { hint: `To make its changes again: svc redo ${name} --turn ${turn}` },
      );
    }
    const steps = end.changes.map(({ path, before, after }) =>
      redo ? { path, from: before, to: after } : { path, from: after, to: before }
    );
    const found = await examine(steps, checkpoints, workspace);
    const { ready, special } = found;
    const later = lines.filter((line) => line.turn > turn && line.type === "end");
    const obstacles = found.obstacles.map((each) => {
      const by = later.find((line) => changesPath(line, each.path))?.turn;
      return by === undefined ? each : { ...each, reason: `${each.reason}, by turn ${by}` };
    });
    if (obstacles.length > 0) throw new UndoRefused(turn, obstacles, redo);
    if (special.length > 0 && !await allow?.(special)) {
      const reason = "outside the worktree, or protected";
      const files = special.map((path) => ({ path, reason }));
      throw new UndoRefused(turn, files, redo);
    }
    const log = session.beginTurn({ model: "", provider: "", mode: "", reasoning: false });
    let done = false;
    try {
      log.append({ type: "command", text: `/${redo ? "redo" : "undo"} --turn ${turn}` });
      await session.share();
      await write(ready, checkpoints);
      checkpoints.append({ type: "undo", turn, undone: !redo });
      log.append({ type: "system", text: note(turn, end.changes, redo) });
      done = true;
    } finally {
      log.end(done ? "ok" : "error");
    }
    await session.flush();
    const files = end.changes.map(({ path }) => path);
    const { unknown = "", interrupted = false } = end;
    return {
      session: name,
      turn,
      state: redo ? "applied" : "undone",
      files,
      unknown,
      interrupted,
    };
  } finally {
    session.close();
  }
}

/** What the model is told. */
function note(turn: number, changes: Change[], redo: boolean): string {
  const paths = changes.slice(0, 50).map(({ path }) => path).join(", ");
  const more = changes.length > 50 ? ` and ${changes.length - 50} more` : "";
  return redo
    ? `[The user has made the changes of turn ${turn} again, in: ${paths}${more}.]`
    : `[The user has taken back the changes of turn ${turn}: ${paths}${more}. These files are as they were before ` +
      "that turn.]";
}

/** The session whose list has the changes of a session: its own, or that of the agent that it worked for. */
async function recorded(workspace: Workspace, given: string): Promise<string> {
  const { sessions, paths: { state } } = workspace;
  const name = await sessions.locate(given);
  if (!sessions.list().includes(name)) {
    throw usageError("no_session", `There is no session ${JSON.stringify(given.slice(0, 80))}.`);
  }
  const seen = new Set<string>();
  for (let at = name; at !== "" && !seen.has(at); at = sessions.origin(at)?.parent_id ?? "") {
    if (hasCheckpoints(state, at)) return at;
    seen.add(at);
  }
  return name;
}

/** The session that was written last among those that changed something. */
export function newestChanged({ sessions, paths: { state } }: Workspace): string | undefined {
  return sessions.newest().find(({ name }) => hasCheckpoints(state, name))?.name;
}

/** @param free whether the caller knows that no turn runs. Default: it is looked up */
async function opened(
  workspace: Workspace,
  session: string,
  free = workspace.sessions.summary(session)?.running !== true,
): Promise<Checkpoints | undefined> {
  if (!hasCheckpoints(workspace.paths.state, session)) return undefined;
  const checkpoints = await openCheckpoints(session, workspace);
  if (free) {
    await settle(checkpoints).catch((error) => workspace.warn(errorMessage(error)));
  }
  return checkpoints;
}

function changesPath(line: Line, path: string): boolean {
  return line.type === "end" && line.changes.some((change) => change.path === path);
}

/** The turn that is taken back, or redone, where none is named. */
function chosen(lines: Line[], redo: boolean): number | undefined {
  const state = (turn: number) => isUndone(lines.filter((line) => line.turn === turn));
  if (redo) {
    return lines.findLast((line) => line.type === "undo" && line.undone && state(line.turn))?.turn;
  }
  return lines.findLast((line) =>
    line.type === "end" && line.changes.length > 0 && !state(line.turn)
  )?.turn;
}

/** One file, and what is to be there instead of what is. */
interface Step {
  path: string;
  from: Kept | null;
  to: Kept | null;
}

/** A step that can be done. */
interface Ready extends Step {
  content?: Uint8Array;
}

/** Finds what stands in the way, and the steps that are left to do: a file may be as it is to be already. */
async function examine(steps: Step[], checkpoints: Checkpoints, { guard }: Workspace) {
  const context = guard.context();
  const ready: Ready[] = [];
  const obstacles: Obstacle[] = [];
  const special: string[] = [];
  for (const step of steps) {
    const { path, from, to } = step;
    const absolute = checkpoints.path(path);
    const obstacle = (reason: string) => obstacles.push({ path, reason });
    try {
      const parent = context.locate(dirname(absolute)).real;
      const protection = context.protection(absolute);
      if (parent !== dirname(absolute)) {
        obstacle("a link leads elsewhere now");
        continue;
      }
      if (protection === "read") {
        obstacle("it holds keys");
        continue;
      }
      if (path.startsWith("/") || protection !== false) special.push(path);
      const now = await checkpoints.capture(absolute);
      if (now !== undefined && to?.missing === undefined && same(now, to)) continue;
      if (now === undefined || !same(now, from)) {
        obstacle("changed since");
        continue;
      }
      if (from?.missing !== undefined) { // it could not be put back
        obstacle(`not kept: ${from.missing}`);
        continue;
      }
      const content = to === null ? undefined : await checkpoints.content(to);
      if (to !== null && content === undefined) {
        obstacle(to.missing === undefined ? "no longer kept" : `not kept: ${to.missing}`);
        continue;
      }
      ready.push({ ...step, content });
    } catch (error) {
      obstacle(errorMessage(error));
    }
  }
  return { ready, obstacles, special };
}

/** Does all steps, or none. */
async function write(steps: Ready[], checkpoints: Checkpoints): Promise<void> {
  const done: Ready[] = [];
  // A file may have taken the place of a folder, and the other way round.
  const ordered = steps.toSorted((one, other) =>
    Number(one.to !== null) - Number(other.to !== null)
  );
  try {
    for (const step of ordered) {
      place(checkpoints.path(step.path), step);
      done.push(step);
      if (step.to === null) removeEmpty(dirname(checkpoints.path(step.path)), checkpoints);
    }
  } catch (error) {
    for (const { path, from, to } of done.reverse()) {
      const content = from === null ? undefined : await checkpoints.content(from);
      place(checkpoints.path(path), { path, from: to, to: from, content });
    }
    throw new SvcError("undo_failed", `Nothing was changed: ${errorMessage(error)}.`, {
      cause: error,
    });
  }
}

/** Puts a file, a link or nothing at a path; what was there is replaced at once. */
function place(path: string, { from, to, content }: Ready): void {
  if (to === null) return Deno.removeSync(path);
  makeFolder(dirname(path));
  const temporary = join(dirname(path), `.svc-undo.${mintId()}.tmp`);
  try {
    if (to.link) {
      Deno.symlinkSync(new TextDecoder().decode(content), temporary);
    } else {
      const file = Deno.openSync(temporary, { write: true, createNew: true, mode: to.mode });
      try {
        writeAllSync(file, content!);
        file.syncDataSync();
      } finally {
        file.close();
      }
      // Bits that the umask took. A mode that lets others write is left to it.
      if ((to.mode & 0o002) === 0) Deno.chmodSync(temporary, to.mode);
      const { uid, gid } = Deno.lstatSync(temporary);
      const owner = from === null ? undefined : Deno.lstatSync(path);
      if (owner !== undefined && (owner.uid !== uid || owner.gid !== gid)) {
        Deno.chownSync(temporary, owner.uid, owner.gid);
      }
    }
    Deno.renameSync(temporary, path);
  } catch (error) {
    tryRemove(temporary);
    throw error;
  }
}

/** Removes folders of the worktree that are empty, as Git does. */
function removeEmpty(folder: string, { options: { worktree } }: Checkpoints): void {
  for (let at = folder; at.startsWith(`${worktree}/`); at = dirname(at)) {
    try {
      Deno.removeSync(`${at}/`); // the slash: never a link
    } catch {
      return; // not empty
    }
  }
}

/** The error when no turn can be taken back, or redone. */
export function nothingTo(redo: boolean): SvcError {
  return new SvcError(
    "no_changes",
    redo ? "No turn of this session is taken back." : "No turn of this session can be taken back.",
    { hint: "To see what was changed: svc changes" },
  );
}

function noTurn(session: string, turn: number, known: number[]): SvcError {
  const turns = known.length === 0 ? "None did." : `Those that did: ${known.slice(-20).join(", ")}`;
  return usageError("no_turn", `Turn ${turn} of session ${session} changed no file.`, turns);
}
