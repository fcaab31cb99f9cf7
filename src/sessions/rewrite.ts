import {
  encode,
  firstLine,
  layOut,
  type LogState,
  type ReadAt,
  type RegionName,
  renderTail,
  renderTurn,
  turnsStart,
} from "./layout.ts";
import type { SessionDocument, SessionError } from "./schema.ts";

/** A session file to be, and the state it is then in. */
export interface Rewritten {
  bytes: Uint8Array;
  state: LogState;
}

/** The error entry of a turn whose process ended before it did (specification 2.3). */
export function ownerGone(index: number, timestamp: string): SessionError {
  return { code: 0, message: `The process ended before turn ${index} did.`, timestamp };
}

/** A file without turns. `head` is the fields of its first line. */
export function freshFile(head: Record<string, unknown>, updated_at: string): Rewritten {
  const nothing = new Uint8Array();
  const entries = { sub_sessions: nothing, errors: nothing, permissions: nothing };
  return render(firstLine(head), entries, () => 0, "", { turns: 0, after: "", updated_at });
}

/** The same file with more room in the arrays that `next` fills, without parsing any of it. */
export function grownFile(state: LogState, next: LogState, size: number, at: ReadAt): Rewritten {
  const { sub_sessions, errors, permissions } = state.regions;
  const used = ({ start, used }: { start: number; used: number }) => at(start, used);
  const from = turnsStart(state);
  const first = at(0, at(0, sub_sessions.start).lastIndexOf(0x0a));
  const { bytes, regions } = layOut(
    first,
    { sub_sessions: used(sub_sessions), errors: used(errors), permissions: used(permissions) },
    (name) => {
      const wanted = next.regions[name].used;
      const { capacity } = state.regions[name];
      // A part of the whole file, so that a long log is not rewritten for every few entries.
      return wanted > capacity ? Math.max(2 * wanted, wanted + (size >> 5)) : capacity;
    },
    [at(from, state.settled - from), encode(renderTail(state))],
  );
  const grown = { ...state, regions };
  grown.settled += turnsStart(grown) - from;
  return { bytes, state: grown };
}

/**
 * A file in this service's layout for a document that came from elsewhere; unknown fields stay. A turn
 * that runs in it has lost its journal and so its owner: it is closed, at `now`.
 */
export function adoptedFile(document: SessionDocument, now: string): Rewritten {
  const { sub_sessions = [], permissions = [], updated_at, ...rest } = document;
  const { errors: known = [], turns: found, ...head } = rest;
  const lost = found.filter(({ status }) => status === "running");
  const errors = [...known, ...lost.map(({ index }) => ownerGone(index, now))];
  const turns = found.map((turn) =>
    turn.status === "running" ? { ...turn, status: "error" as const, ended_at: now } : turn
  );
  const entries = (list: unknown[]) =>
    encode(list.map((entry) => `\n${JSON.stringify(entry)}`).join(","));
  return render(
    firstLine(head),
    {
      sub_sessions: entries(sub_sessions),
      errors: entries(errors),
      permissions: entries(permissions),
    },
    () => 0,
    turns.map((turn, i) => renderTurn(turn, i === 0)).join(""),
    { turns: turns.at(-1)?.index ?? 0, after: "", updated_at },
  );
}

function render(
  first: Uint8Array,
  entries: Record<RegionName, Uint8Array>,
  room: (name: RegionName) => number,
  turns: string,
  rest: Pick<LogState, "turns" | "after" | "updated_at">,
): Rewritten {
  const state: LogState = { ...rest, regions: {} as LogState["regions"], settled: 0 };
  const text = encode(turns);
  const { bytes, regions } = layOut(first, entries, room, [text, encode(renderTail(state))]);
  state.regions = regions;
  state.settled = turnsStart(state) + text.length;
  return { bytes, state };
}
