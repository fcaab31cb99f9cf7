import { structuredPatch } from "diff";
import { stripControl } from "../platform/terminal.ts";
import type { ToolArguments } from "../plugins/api.ts";
import type { Part } from "../sessions/schema.ts";

/** Milliseconds for computing a diff; after that old and new text are shown in full. */
const TIMEOUT = 200;
/** Characters of the old and of the new text that are compared. */
const LARGEST = 100_000;

/** The changes of a file by some tool calls. */
export interface FileChange {
  path: string;
  added: number;
  removed: number;
  /** Lines that begin with a space, `-`, `+`, or `⋮` where lines are left out. */
  lines: string[];
}

/** The files that calls changed, in the order of their first change. */
export function changesOf(parts: readonly Part[]): FileChange[] {
  const found = new Map<string, FileChange>();
  for (const part of parts) {
    if (part.type !== "tool" || part.is_error || typeof part.input.path !== "string") continue;
    const lines = changedLines(part.input);
    if (lines.length === 0) continue;
    const path = stripControl(part.input.path);
    const change = found.get(path) ?? { path, added: 0, removed: 0, lines: [] };
    found.set(path, change);
    if (change.lines.length > 0) change.lines.push("⋮");
    for (const line of lines) change.lines.push(line);
    change.added += lines.filter((line) => line.startsWith("+")).length;
    change.removed += lines.filter((line) => line.startsWith("-")).length;
  }
  return [...found.values()];
}

/** A line of a diff. `at` is its number: in the old file for a removed line, else in the new one. */
export interface DiffLine {
  sign: " " | "-" | "+";
  text: string;
  at?: number;
}

/** The lines of the diff of an edit; empty for calls without old and new text. */
export function changedLines(args: ToolArguments): string[] {
  return editHunks(args).flatMap((hunk, index) => [
    ...index === 0 ? [] : ["⋮"],
    ...hunk.map(({ sign, text }) => sign + text),
  ]);
}

/**
 * The diff of an edit; empty for calls without old and new text.
 *
 * @param line the number of the first line of the old text in its file; left out: lines have no numbers
 */
export function editHunks(args: ToolArguments, line?: number): DiffLine[][] {
  const { content } = args;
  const edits = editsOf(args);
  if (edits.length > 0) {
    return edits.flatMap(({ before, after }) =>
      compare(clean(before), clean(after), edits.length === 1 ? line : undefined)
    );
  }
  return typeof content === "string" && content !== "" ? [marked(clean(content), "+", line)] : [];
}

/** The old and the new texts of a call that edits a file; none for other calls. */
export function editsOf(args: ToolArguments): { before: string; after: string }[] {
  const all: ToolArguments[] = Array.isArray(args.edits) ? args.edits : [args];
  return all.flatMap((each) => {
    const [before, after] = [each?.old ?? each?.old_text, each?.new ?? each?.new_text];
    return typeof before === "string" && typeof after === "string" ? [{ before, after }] : [];
  });
}

function compare(before: string, after: string, line?: number): DiffLine[][] {
  const options = { context: 2, timeout: TIMEOUT };
  const patch = structuredPatch("", "", before, after, "", "", options);
  if (patch === undefined) return [[...marked(before, "-", line), ...marked(after, "+", line)]];
  return patch.hunks.map(({ lines, oldStart, newStart }) => {
    const at = { "-": (line ?? 1) - 1 + oldStart, "+": (line ?? 1) - 1 + newStart };
    return lines.filter((each) => !each.startsWith("\\")).map((each) => {
      const sign = each[0] as DiffLine["sign"];
      const number = sign === "-" ? at["-"]++ : at["+"]++;
      if (sign === " ") at["-"]++;
      return { sign, text: each.slice(1), ...line !== undefined && { at: number } };
    });
  });
}

function marked(text: string, sign: "-" | "+", line?: number): DiffLine[] {
  if (text === "") return [];
  return text.replace(/\n$/, "").split("\n").map((each, index) => (
    { sign, text: each, ...line !== undefined && { at: line + index } }
  ));
}

function clean(text: string): string {
  const cut = text.length <= LARGEST ? text : `${text.slice(0, LARGEST)}\n… the rest is left out`;
  return stripControl(cut).replaceAll("\t", "    ");
}
