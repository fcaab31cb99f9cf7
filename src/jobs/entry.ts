import { decode, type EntrySpan } from "./layout.ts";
import type { HistoryEntry } from "./schema.ts";

/** How many attempts a history keeps (specification 8). */
const MAX_HISTORY = 100;

/** An entry of the register: its fields as they are in the file, and its history, which is not parsed. */
export interface Entry {
  fields: Record<string, unknown>;
  history: string;
}

/** @throws SyntaxError when the entry is no JSON object */
export function parseEntry(bytes: Uint8Array, { start, end, history }: EntrySpan): Entry {
  const text = history === undefined
    ? decode(bytes, { start, end })
    : `${decode(bytes, { start, end: history.start })}[]${
      decode(bytes, { start: history.end, end })
    }`;
  const value = JSON.parse(text);
  if (typeof value !== "object" || value === null) throw new SyntaxError("It is no object.");
  const { history: unseen, ...fields } = value;
  if (history !== undefined) return { fields, history: decode(bytes, history) };
  return { fields, history: JSON.stringify(unseen ?? []) };
}

/** The name of an entry; empty when it has none that can be read. */
export function entryName(bytes: Uint8Array, span: EntrySpan): string {
  try {
    return String(parseEntry(bytes, span).fields.name ?? "");
  } catch {
    return "";
  }
}

/** An entry as text. */
export function renderEntry({ fields, history }: Entry): string {
  const body = JSON.stringify(fields, null, 2).slice(0, -"\n}".length);
  return `${body.replaceAll("\n", "\n    ")},\n      "history": ${history}\n    }`;
}

/**
 * The text of a history with one more attempt, without the oldest ones that are too many.
 *
 * @throws SyntaxError when the history is no JSON array
 */
export function withAttempt(history: string, attempt: HistoryEntry): string {
  const before = JSON.parse(history);
  if (!Array.isArray(before)) throw new SyntaxError("It is no array.");
  const attempts = [...before, attempt].slice(-MAX_HISTORY);
  const lines = attempts.map((each) => JSON.stringify(each));
  return `[\n        ${lines.join(",\n        ")}\n      ]`;
}
