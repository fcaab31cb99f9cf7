import { jsonOr } from "../platform/files.ts";
import { checkDocument, isError, isPart, isPermission, isTurn } from "./check.ts";
import { REGIONS, TURN_START } from "./document.ts";
import type { Part, SessionDocument, Turn } from "./schema.ts";

/** What can be kept of a damaged log. */
export interface Repair {
  document: SessionDocument;
  /** The lines of the file, from 1, that cannot be kept. */
  lost: number[];
}

/**
 * Reads a damaged file that svc wrote line by line, and keeps each entry that is whole. A turn whose end is damaged
 * gets the status `error`.
 *
 * @returns undefined for a file that svc did not write
 */
export function repairLog(name: string, text: string): Repair | undefined {
  const lost: number[] = [];
  const turns: Turn[] = [];
  const entries: Record<string, unknown[]> = { sub_sessions: [], errors: [], permissions: [] };
  const valid: Record<string, (entry: unknown) => boolean> = {
    sub_sessions: (entry) => typeof entry === "string",
    errors: isError,
    permissions: isPermission,
  };
  let head: Record<string, unknown> | undefined;
  let updated_at = "";
  let region = "";
  let parts: Part[] | undefined;
  const endTurn = (rest: Record<string, unknown> | undefined) => {
    if (parts === undefined) return;
    const at = parts[0]?.timestamp ?? turns.at(-1)?.ended_at ?? "";
    const unknown = { model: "", provider: "", mode: "", reasoning: "" };
    const ended_at = parts.at(-1)?.timestamp ?? at;
    const turn = {
      ...{ status: "error", started_at: at, ended_at, ...unknown },
      ...rest,
      index: turns.length + 1,
      parts,
    };
    if (turn.status === "running") Object.assign(turn, { status: "error", ended_at });
    if (isTurn(turn)) turns.push(turn);
    parts = undefined;
  };
  for (const [index, line] of text.split("\n").map((each) => each.trim()).entries()) {
    const number = index + 1;
    const json = line.replace(/,$/, "");
    if (line === "") continue;
    const marker = /^(?:\],)?"(\w+)":\[$/.exec(line)?.[1];
    if (marker !== undefined && (marker === "turns" || REGIONS.some((each) => each === marker))) {
      region = marker;
    } else if (index === 0) {
      head = jsonOr(`${json}}`, undefined);
      if (head === undefined) lost.push(number);
    } else if (region !== "turns") {
      const entry = jsonOr(json, undefined);
      if (valid[region]?.(entry)) entries[region]!.push(entry);
      else lost.push(number);
    } else if (json === TURN_START) {
      endTurn(undefined);
      parts = [];
    } else if (line.startsWith('],"index":')) {
      const rest = jsonOr(`{${json.slice(2)}`, undefined);
      if (rest === undefined) lost.push(number);
      endTurn(rest);
    } else if (line.startsWith('],"updated_at":')) {
      endTurn(undefined);
      updated_at = String(jsonOr(`{${json.slice(2)}`, undefined)?.updated_at ?? "");
    } else {
      const part = jsonOr(json, undefined);
      if (isPart(part)) (parts ??= []).push(part);
      else lost.push(number);
    }
  }
  if (region === "") return undefined;
  endTurn(undefined);
  updated_at ||= turns.at(-1)?.ended_at ?? "";
  const created_at = turns[0]?.started_at ?? updated_at;
  const document = {
    ...{ session_id: "", created_at, parent_id: "", role: "", version: "" },
    ...head,
    ...{ session_name: name, ...entries, turns, updated_at },
  };
  const checked = checkDocument(document);
  return checked.kind === "document" ? { document: checked.document, lost } : undefined;
}
