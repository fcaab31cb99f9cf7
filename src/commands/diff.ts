import { diffWordsWithSpace } from "diff";
import { highlighter, languageName } from "../platform/highlight.ts";
import type { Style } from "../platform/style.ts";
import { hardWrapped, SGR } from "../platform/text.ts";
import type { DiffLine } from "./changes.ts";

/** How a diff is shown: its colours, the width in cells, and the file, whose extension names its language. */
export interface DiffView {
  style: Style;
  columns: number;
  path?: string;
  /** Unchanged lines before and after each part that changed. Default: all there are. */
  context?: number;
}

/**
 * A diff for people: line numbers where they are known, the changed words marked, the code in the colours of its
 * language. Long lines are wrapped. The text must have no control characters.
 */
export function diffRows(
  hunks: DiffLine[][],
  { style, columns, path = "", context = Infinity }: DiffView,
): string[] {
  const digits = Math.max(0, ...hunks.flat().map(({ at }) => String(at ?? "").length));
  const margin = digits === 0 ? 2 : digits + 3;
  const room = Math.max(8, columns - margin);
  const rows: string[] = [];
  for (const [index, hunk] of hunks.entries()) {
    if (index > 0) rows.push(style.dim("⋮".padStart(Math.max(1, digits))));
    // Both sides are read as programs of their own, since a comment may begin on one of them.
    const before = highlighter(languageName(path), style);
    const after = highlighter(languageName(path), style);
    const words = style.enabled ? changedWords(hunk) : new Map<DiffLine, Range[]>();
    const start = hunk.findIndex(({ sign }) => sign !== " ") - context;
    const end = hunk.findLastIndex(({ sign }) => sign !== " ") + context;
    for (const [place, line] of hunk.entries()) {
      if (place < start || place > end) continue;
      const text = expanded(line.text);
      const old = line.sign === "-" ? before(text) : undefined;
      const code = old ?? after(text);
      if (line.sign === " ") before(text);
      const paint = { "-": style.red, "+": style.green, " ": style.dim }[line.sign];
      const marks = words.get(line) ?? [];
      const shown = marked(code, marks, line.sign === "-" ? style.removed : style.added);
      const number = digits === 0 ? "" : `${String(line.at ?? "").padStart(digits)} `;
      const [first = "", ...more] = hardWrapped(shown, room);
      rows.push(`${paint(`${number}${line.sign} `)}${first}`.trimEnd());
      for (const row of more) rows.push(" ".repeat(margin - 1) + row);
    }
  }
  return rows;
}

const TAB = "    ";

/** A unified diff as {@linkcode diffRows}, with the names of its files; undefined for any other text. */
export function patchRows(patch: string, view: DiffView): string[] | undefined {
  if (!/^--- [^\n]*\n\+\+\+ /.test(patch)) return undefined;
  const rows: string[] = [];
  let [path, before, after] = ["", 0, 0];
  let hunks: DiffLine[][] = [];
  const flush = () => {
    rows.push(...diffRows(hunks, { ...view, path }));
    hunks = [];
  };
  let left = { old: 0, new: 0 };
  for (const line of patch.replace(/\n$/, "").split("\n")) {
    const sign = line[0] as DiffLine["sign"];
    const inside = left.old > 0 || left.new > 0;
    if (inside && (sign === " " || sign === "-" || sign === "+")) {
      const at = sign === "-" ? before : after;
      hunks.at(-1)!.push({ sign, text: line.slice(1), at });
      if (sign !== "+") [before, left.old] = [before + 1, left.old - 1];
      if (sign !== "-") [after, left.new] = [after + 1, left.new - 1];
      continue;
    }
    const hunk = HUNK.exec(line);
    if (hunk !== null) {
      [before, after] = [Number(hunk[1]), Number(hunk[3])];
      left = { old: Number(hunk[2] ?? 1), new: Number(hunk[4] ?? 1) };
      hunks.push([]);
    } else if (line.startsWith("--- ")) {
      flush();
      path = line.slice(4).replace(/^a\//, "");
    } else if (line.startsWith("+++ ")) {
      const name = line.slice(4);
      if (name !== "/dev/null") path = name.replace(/^b\//, "");
      rows.push(...hardWrapped(view.style.bold(path), view.columns));
    } else {
      flush();
      rows.push(...hardWrapped(view.style.dim(line), view.columns));
    }
  }
  flush();
  return rows;
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/**
 * What a confirmation shows of a call: a diff as {@linkcode diffRows}, a new file and a command in the colours of
 * their language, any other text as it is. The text must have no control characters.
 */
export function previewRows(preview: string, view: DiffView): string[] {
  const patch = patchRows(preview, view);
  if (patch !== undefined) return patch;
  const { style, columns } = view;
  const { head, path, appended, replaced, body } = FILE.exec(preview)?.groups ?? {};
  const plain = (text: string, paint = (line: string) => line) =>
    text.replace(/\n$/, "").split("\n")
      .flatMap((line) => hardWrapped(paint(expanded(line)), columns));
  if (body !== undefined) {
    const lines = body.replace(/\n$/, "").split("\n");
    const hunk = lines.map((text, index): DiffLine => (
      { sign: "+", text, at: appended === undefined ? index + 1 : undefined }
    ));
    return [
      ...plain(head!, style.bold),
      ...diffRows([hunk], { ...view, path: path ?? appended ?? replaced }),
    ];
  }
  const command = /^(in [^\n]*\n)?\$ ([^]*)$/.exec(preview);
  if (command === null) return plain(preview);
  return [
    ...plain(command[1] ?? "", style.dim).filter((row) => row !== ""),
    ...plain(`$ ${command[2]}`, highlighter("sh", style)),
  ];
}

/** What the tools that write files say of a call, before the content. */
const FILE =
  /^(?<head>(?:New file (?<path>.+)|Append to (?<appended>.+)|(?<replaced>.+) is replaced by):)\n(?<body>[^]*)$/;

/**
 * As many rows of a preview as fit, and what is folded. Each run of removed, added and other rows keeps its beginning,
 * so that a long change shows both sides.
 *
 * @param fold the row for what is folded, such as `… 190 more removed lines`
 */
export function foldedRows(rows: string[], most: number, fold: (more: string) => string): string[] {
  if (rows.length <= most) return rows;
  const runs: { kind: string; rows: string[] }[] = [];
  for (const row of rows) {
    const plain = row.replaceAll(new RegExp(SGR, "g"), "");
    const kind = KINDS[/^ *\d+ ([-+])/.exec(plain)?.[1] as "-" | "+"] ?? "";
    const last = runs.at(-1);
    const more = last !== undefined && (last.kind === kind || /^ {3}/.test(plain));
    if (more) last.rows.push(row);
    else runs.push({ kind, rows: [row] });
  }
  const shown = (each: number) =>
    runs.flatMap(({ kind, rows }) => {
      const left = rows.length - each;
      if (left <= 1) return rows;
      return [...rows.slice(0, each), fold(`… ${left} more ${kind}lines`)];
    });
  let each = most;
  while (each > 1 && shown(each).length > most) each--;
  const folded = shown(each);
  if (folded.length <= most) return folded;
  return [...rows.slice(0, most - 1), fold(`… ${rows.length - most + 1} more lines`)];
}

const KINDS = { "-": "removed ", "+": "added " };

/** Offsets in a text. */
type Range = [from: number, to: number];

/** Characters of the longest line whose changed words are marked, and lines of one side that are compared. */
const MAX_LINE = 500;
const MAX_LINES = 50;
/** The share of words that two lines have in common at least when one replaces the other. */
const LEAST_ALIKE = 0.4;

/** The words that differ between removed lines and those that replace them, by line. */
function changedWords(hunk: DiffLine[]): Map<DiffLine, Range[]> {
  const found = new Map<DiffLine, Range[]>();
  for (let at = 0; at < hunk.length;) {
    const [removed, added]: DiffLine[][] = [[], []];
    while (hunk[at]?.sign === "-") removed!.push(hunk[at++]!);
    while (hunk[at]?.sign === "+") added!.push(hunk[at++]!);
    if (removed!.length === 0 && added!.length === 0) at++;
    let from = 0;
    for (const one of removed!.slice(0, MAX_LINES)) {
      // The line that replaces it, after those of the lines before.
      const candidates = added!.slice(from, from + MAX_LINES);
      const alike = candidates.map((other) => similarity(one.text, other.text));
      const best = alike.indexOf(Math.max(...alike));
      const other = candidates[best];
      if (other === undefined || alike[best]! < LEAST_ALIKE) continue;
      from += best + 1;
      const [before, after] = wordRanges(expanded(one.text), expanded(other.text));
      found.set(one, before);
      found.set(other, after);
    }
  }
  return found;
}

/** The offsets of what two lines do not have in common; none for long lines. */
function wordRanges(one: string, other: string): [Range[], Range[]] {
  if (Math.max(one.length, other.length) > MAX_LINE) return [[], []];
  const [before, after]: Range[][] = [[], []];
  let [left, right] = [0, 0];
  for (const { value, added, removed } of diffWordsWithSpace(one, other)) {
    if (added) after!.push([right, right + value.length]);
    else if (removed) before!.push([left, left + value.length]);
    if (!added) left += value.length;
    if (!removed) right += value.length;
  }
  return [before!, after!];
}

/** The share of words that two lines have in common, 0 to 1. */
function similarity(one: string, other: string): number {
  const [left, right] = [one, other].map((line) =>
    new Set(line.slice(0, MAX_LINE).match(/\w+|[^\w\s]/g))
  );
  const all = left!.size + right!.size;
  return all === 0 ? 0 : 2 * left!.intersection(right!).size / all;
}

function expanded(text: string): string {
  return text.replaceAll("\t", TAB);
}

/** Marks ranges of a text that may have colours. */
function marked(styled: string, ranges: Range[], mark: (text: string) => string): string {
  if (ranges.length === 0) return styled;
  let [shown, at] = ["", 0];
  for (const piece of styled.split(SGR)) {
    if (piece.startsWith("\x1b")) {
      shown += piece;
      continue;
    }
    let from = 0;
    for (const [start, end] of ranges) {
      const [first, last] = [Math.max(start - at, from), Math.min(end - at, piece.length)];
      if (first >= last) continue;
      shown += piece.slice(from, first) + mark(piece.slice(first, last));
      from = last;
    }
    shown += piece.slice(from);
    at += piece.length;
  }
  return shown;
}
