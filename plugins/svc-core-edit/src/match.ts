import { type Replacement, replaceText } from "./replace.ts";

/** What a forgiving match has done, for the result of the call. */
export interface Forgiven extends Replacement {
  how: string;
}

/** Characters of the largest file whose lines are compared. */
const LARGEST = 4_000_000;

/** Files in which blanks mean something: any doubt refuses there. */
const STRICT = /(\.(py|pyi|ya?ml|mk|md|markdown|rst|haml|pug|coffee|nim)|\bMakefile)$/i;

/**
 * The edit of a text that `old` names almost: the line numbers of a reader, one level of escapes or entities are
 * removed from `old` and `new`, and whole lines are compared without trailing blanks, look-alike characters and
 * indentation, which is mapped level by level. Lines that `old` and `new` share stay as they are in the file. Each step
 * is tried alone, from the strictest on; one with several places ends the search. There is no similarity.
 *
 * @returns a sentence when the place is not certain; undefined when there is none
 */
export function forgivingEdit(
  path: string,
  text: string,
  old: string,
  replacement: string,
): Forgiven | string | undefined {
  if (text.length > LARGEST) return undefined;
  const strict = STRICT.test(path);
  const given: [how: string, old: string, replacement: string][] = [["", old, replacement]];
  for (const [how, undo] of WRAPPINGS) {
    const bare = undo(old);
    if (bare === undefined || bare === old || bare.trim() === "") continue;
    const meant = undo(replacement, true);
    if (meant === undefined) continue;
    // Numbered lines are whole ones, which are compared below.
    const exact = undo === withoutNumbers ? undefined : replaceText(text, bare, meant, 1);
    if (exact !== undefined && exact.total > 1) return severalPlaces(exact.total);
    if (exact !== undefined && indentedText(text, bare, meant) === meant) return { ...exact, how };
    given.push([how, bare, meant]);
  }
  const file = linesOf(text);
  for (const step of [false, true]) {
    for (const [how, from, to] of given) {
      const found = lineEdit(file, from, to, { strict, blanks: step });
      if (found === undefined) continue;
      if (typeof found === "string") return found;
      return { ...found, how: [how, found.how].filter((each) => each !== "").join("; ") };
    }
  }
  return undefined;
}

/**
 * The text for `old`, which is one line and begins behind an indentation, when `new` has further lines: these may have
 * the indentation of the file, or lack it. Undefined when neither is certain.
 */
export function indentedText(text: string, old: string, replacement: string): string | undefined {
  const [first = "", ...others] = replacement.split(/\r?\n/);
  const start = text.indexOf(old);
  const indent = text.slice(text.lastIndexOf("\n", start - 1) + 1, Math.max(0, start));
  const second = others.find((line) => line.trim() !== "");
  if (start < 0 || second === undefined || old.includes("\n") || /^\s/.test(old)) {
    return replacement;
  }
  if (indent === "" || indent.trim() !== "") return replacement;
  const own = indentOf(second);
  const opens = /([{([:]|=>|\bthen|\bdo)$/.test(first.trimEnd());
  if (own.startsWith(indent) && (own === indent) !== opens) return replacement;
  if (opens ? own === "" || width(own) > width(indent) : own !== "") return undefined;
  return [first, ...others.map((line) => line.trim() === "" ? line : indent + line)].join("\n");
}

function severalPlaces(count: number): string {
  return `almost the same text is in ${count} places; give more of the lines around the one that is meant`;
}

type Undo = (text: string, isNew?: boolean) => string | undefined;

/** Wrappings of a text that are no part of it. Undefined: the text has another wrapping, or half of one. */
const WRAPPINGS: [how: string, undo: Undo][] = [
  ["line numbers were left out", withoutNumbers],
  ["one level of escapes was undone", withoutEscapes],
  ["line ends were unescaped", withoutLineEscapes],
  ["entities were undone", withoutEntities],
];

/** `12|`, `12<tab>` or `12→` before every line, each number one more than the one before. */
function withoutNumbers(text: string, isNew = false): string | undefined {
  const lines = text.split("\n");
  const last = lines.at(-1) === "" ? lines.pop() : undefined;
  const found = lines.map((line) => /^\s*(\d+)(?:\||\t|→)(.*)$/s.exec(line));
  if (found.every((each) => each === null)) return isNew ? text : undefined;
  if (found.includes(null)) return undefined;
  const numbers = found.map((each) => Number(each![1]));
  if (!isNew && numbers.some((number, i) => i > 0 && number !== numbers[i - 1]! + 1)) {
    return undefined;
  }
  const bare = found.map((each) => each![2]!);
  return [...bare, ...last === undefined ? [] : [last]].join("\n");
}

/** A text on one line whose line ends, tabs and quotation marks are written as in JSON. */
function withoutEscapes(text: string, isNew = false): string | undefined {
  if (!/\\[nrt"\\]/.test(text)) return isNew && !text.includes('"') ? text : undefined;
  try {
    const plain: string = JSON.parse(`"${text}"`);
    // A line end inside a string was meant as it is written.
    const even = (line: string) => line.replaceAll('"""', "").split('"').length % 2 === 1;
    return !/\\[nr]/.test(text) || plain.split("\n").every(even) ? plain : undefined;
  } catch {
    return undefined; // also where a quotation mark is not escaped
  }
}

/** A text on one line with `\\n` for its line ends, and nothing else escaped. */
function withoutLineEscapes(text: string, isNew = false): string | undefined {
  if (!text.includes("\\n")) return isNew ? text : undefined;
  if (text.includes("\n") || /\\[^nt]/.test(text)) return undefined;
  const lines = text.split("\\n").map((line) =>
    line.replace(/^(\\t)+/, (tabs) => "\t".repeat(tabs.length / 2))
  );
  // Otherwise one of them may stand inside a string.
  const even = (line: string) => ['"', "'", "`"].every((mark) => line.split(mark).length % 2 === 1);
  return lines.every(even) && !lines.some((line) => line.includes("\\"))
    ? lines.join("\n")
    : undefined;
}

function withoutEntities(text: string, isNew = false): string | undefined {
  if (!ENTITY.test(text)) return isNew && !/[<>&]/.test(text) ? text : undefined;
  if (/[<>]|&(?!(lt|gt|amp|quot|#39|apos);)/.test(text)) return undefined;
  const plain: Record<string, string> = {
    ...{ lt: "<", gt: ">", amp: "&", quot: '"' },
    ...{ "#39": "'", apos: "'" },
  };
  return text.replace(new RegExp(ENTITY, "g"), (_, name) => plain[name]!);
}

const ENTITY = /&(lt|gt|amp|quot|#39|apos);/;

/** Comparisons of lines after which an edit is given up. */
const MOST = 4_000_000;
/** Places after which no more are looked for. */
const ENOUGH = 10;

/** The edit of whole lines; see `forgivingEdit`. */
function lineEdit(
  file: Line[],
  old: string,
  replacement: string,
  { strict, blanks }: { strict: boolean; blanks: boolean },
): Forgiven | string | undefined {
  const wanted = linesOf(old);
  const next = linesOf(replacement);
  if (wanted.length * next.length > MOST) return undefined;
  const ended = old.endsWith("\n") === replacement.endsWith("\n") || replacement === "";
  if (strict && (blanks || !ended)) return undefined;
  const found = (blanks ? placesWithoutBlanks : places)(file, wanted);
  if (found.length > 1) return severalPlaces(found.length);
  const [place] = found;
  if (place === undefined) return undefined;
  const { start, end, pairs } = place;
  const map = indentMap(file, wanted, pairs);
  if (map === undefined) return undefined;
  const units = unitsOf(file, [...wanted, ...next], map);
  const theirs = new Map(pairs);
  const ending = file[start]!.end || "\n";
  const made: string[] = [];
  let at = start;
  let [inserted, removed] = [false, false];
  /** The file's blank lines before one of its lines. */
  const gap = (until: number) => {
    while (at < until) made.push(file[at]!.text + file[at++]!.end);
  };
  for (const step of steps(wanted, next)) {
    const its = step.mine === undefined ? undefined : theirs.get(step.mine);
    if (step.does === "insert") {
      const line = next[step.next]!.text;
      const body = line.trim() === "" ? "" : indented(line, step.next, map, units);
      if (body === undefined) return UNCLEAR;
      made.push(body + ending);
      inserted ||= !removed;
    } else if (its !== undefined) {
      if (inserted && step.does === "keep" && its > at) return BLANKS; // before or after the blank lines?
      gap(its);
      at = its + 1;
      if (step.does === "keep") made.push(file[its]!.text + (file[its]!.end || ending));
      removed = step.does === "remove";
      inserted &&= removed;
    } else if (step.does === "keep") {
      // A blank line of old and new, with which the file has others.
      let until = at;
      while (until < end && file[until]!.text.trim() === "") until++;
      gap(until);
      inserted = false;
    }
  }
  gap(end);
  if (replacement === "" && !old.endsWith("\n")) made.push(ending);
  if (made.length > 0 && end === file.length && file.at(-1)!.end === "") {
    made.push(made.pop()!.replace(/\r?\n$/, ""));
  }
  const join = (lines: Line[]) => lines.map(({ text, end }) => text + end).join("");
  return {
    text: join(file.slice(0, start)) + made.join("") + join(file.slice(end)),
    replaced: 1,
    total: 1,
    added: made.length,
    removed: end - start,
    line: start + 1,
    left: [],
    how: blanks
      ? "blank lines were taken as the file has them"
      : isMoved(map)
      ? "the indentation was adapted to the file"
      : pairs.every(([mine, its]) => wanted[mine]!.text === file[its]!.text)
      ? ""
      : "blanks and look-alike characters were taken as the file has them",
  };
}

const UNCLEAR =
  "the text is there with another indentation, and that of new does not follow from it; " +
  "write both as the file has them";
const BLANKS = "the text is there with other blank lines; write old as the file has it";

export interface Line {
  text: string;
  /** Its line end; empty for a last line without one. */
  end: string;
  /** As `folded` has made it. */
  folded?: string;
}

/** The lines of a text, without and with their ends. */
export function linesOf(text: string): Line[] {
  const lines: Line[] = [];
  for (const [whole, line = "", end = ""] of text.matchAll(/([^\r\n]*)(\r\n|\n|\r|$)/g)) {
    if (whole === "") break;
    lines.push({ text: line, end });
  }
  return lines;
}

interface Place {
  /** Index of the first line of the file, and of the one after the last. */
  start: number;
  end: number;
  /** Indices of the lines of `old` that are in the file, with theirs. */
  pairs: [mine: number, theirs: number][];
}

function places(file: Line[], wanted: Line[]): Place[] {
  const have = file.map(folded);
  const sought = wanted.map(folded);
  if (sought.every((line) => line === "")) return [];
  const found: Place[] = [];
  let left = MOST;
  for (
    let start = have.indexOf(sought[0]!);
    start >= 0 && left > 0 && found.length < ENOUGH;
    start = have.indexOf(sought[0]!, start + 1)
  ) {
    if (!sought.every((line, i) => left-- > 0 && have[start + i] === line)) continue;
    found.push({
      start,
      end: start + sought.length,
      pairs: sought.map((_, i) => [i, start + i]),
    });
  }
  return found;
}

/** The same without comparing blank lines. */
function placesWithoutBlanks(file: Line[], wanted: Line[]): Place[] {
  const full = (lines: Line[]) =>
    lines.flatMap((line, index) => line.text.trim() === "" ? [] : [{ index, text: folded(line) }]);
  const [have, sought] = [full(file), full(wanted)];
  if (sought.length < 2) return [];
  const found: Place[] = [];
  let left = MOST;
  for (let at = 0; at + sought.length <= have.length && found.length < ENOUGH; at++) {
    if (!sought.every(({ text }, i) => left-- > 0 && have[at + i]!.text === text)) continue;
    found.push({
      start: have[at]!.index,
      end: have[at + sought.length - 1]!.index + 1,
      pairs: sought.map(({ index }, i) => [index, have[at + i]!.index]),
    });
  }
  return found;
}

/** A line without indentation, trailing blanks, and the difference between look-alike characters. */
function folded(line: Line): string {
  return line.folded ??= line.text.trim().normalize("NFC")
    .replace(/[\u2018\u2019\u201a\u201b\u2032]/g, "'")
    .replace(/[\u201c\u201d\u201e\u201f\u2033]/g, '"')
    .replace(/[\u2010-\u2015\u2212]/g, "-")
    .replace(/[\u00a0\u2000-\u200a\u202f\u205f\u3000]/g, " ")
    .replace(/[\u200b-\u200d\u2060\ufeff]/g, "");
}

/** The indentation of the file for each indentation of `old`. */
interface IndentMap {
  levels: Map<string, string>;
  /** That of the first line, of which `old` has left out the indentation. */
  first?: string;
}

/** Undefined when an indentation of `old` is not the same everywhere in the file, or the order of two differs. */
function indentMap(file: Line[], wanted: Line[], pairs: Place["pairs"]): IndentMap | undefined {
  const indents = pairs.filter(([mine]) => wanted[mine]!.text.trim() !== "")
    .map(([mine, theirs]) => [indentOf(wanted[mine]!.text), indentOf(file[theirs]!.text)] as const);
  const [first, ...others] = indents;
  if (first?.[0] === "" && first[1] !== "" && others.length > 0) {
    const same = others.every(([own, its]) => own === its);
    if (same) return { levels: new Map(others), first: first[1] };
  }
  const levels = new Map<string, string>();
  for (const [own, its] of indents) {
    if ((levels.get(own) ?? its) !== its) return undefined;
    levels.set(own, its);
  }
  const sorted = [...levels].sort(([one], [other]) => width(one) - width(other));
  const ordered = sorted.every(([own, its], i) => {
    const before = sorted[i - 1];
    return before === undefined ||
      (width(own) > width(before[0]) && width(its) > width(before[1]));
  });
  return ordered ? { levels } : undefined;
}

function isMoved({ levels, first }: IndentMap): boolean {
  return first !== undefined || [...levels].some(([own, its]) => own !== its);
}

interface Units {
  file: string;
  own: string;
}

/** A line of `new` with the indentation of the file; undefined when that is not certain. */
function indented(
  line: string,
  index: number,
  map: IndentMap,
  units: Units,
): string | undefined {
  const { levels, first } = map;
  const own = indentOf(line);
  const body = line.slice(own.length);
  if (first !== undefined) return index === 0 && own === "" ? first + body : line;
  const known = levels.get(own);
  if (known !== undefined) return known + body;
  if (!isMoved(map)) return line;
  const [outer] = [...levels.keys()].filter((each) => own.startsWith(each))
    .sort((one, other) => other.length - one.length);
  if (outer !== undefined) {
    const more = count(own.slice(outer.length), units.own);
    if (more === undefined || units.file === "") return undefined;
    return levels.get(outer)! + units.file.repeat(more) + body;
  }
  const inner = [...levels.keys()].find((each) => each.startsWith(own));
  const less = inner === undefined ? undefined : count(inner.slice(own.length), units.own);
  if (less === undefined || units.file === "") return undefined;
  const its = levels.get(inner!)!;
  const removed = units.file.repeat(less);
  return its.endsWith(removed) ? its.slice(0, its.length - removed.length) + body : undefined;
}

/** How many units an indentation has; undefined when it is no multiple. */
function count(indent: string, unit: string): number | undefined {
  const times = unit === "" ? 0 : indent.length / unit.length;
  return times > 0 && unit.repeat(Math.trunc(times)) === indent ? times : undefined;
}

/** The units of indentation of the file and of `old` with `new`; empty where they are not known. */
function unitsOf(file: Line[], own: Line[], { levels }: IndentMap): Units {
  const steps = (lines: Line[]) => {
    const indents = lines.filter(({ text }) => text.trim() !== "").map(({ text }) =>
      indentOf(text)
    );
    return indents.flatMap((indent, i) => {
      const before = indents[i - 1] ?? "";
      const step = indent.startsWith(before) ? indent.slice(before.length) : "";
      return /^(\t| {2,8})$/.test(step) ? [step] : []; // other steps align lines
    });
  };
  const smallest = (found: string[]) =>
    found.reduce((one, other) => one === "" || other.length < one.length ? other : one, "");
  const mine = smallest(steps(own));
  const sorted = [...levels].sort(([one], [other]) => width(one) - width(other));
  for (const [i, [own, its]] of sorted.entries()) {
    const before = sorted[i - 1];
    if (before === undefined || !own.startsWith(before[0]) || !its.startsWith(before[1])) continue;
    const times = count(own.slice(before[0].length), mine);
    const step = its.slice(before[1].length);
    if (times !== undefined && step.length % times === 0) {
      return { own: mine, file: step.slice(0, step.length / times) };
    }
  }
  const all = Map.groupBy(steps(file), (step) => step);
  const [usual] = [...all.values()].sort((one, other) => other.length - one.length);
  return { own: mine, file: usual?.[0] ?? "" };
}

type Step =
  | { does: "keep"; mine: number; next: number }
  | { does: "remove"; mine: number }
  | { does: "insert"; mine?: undefined; next: number };

/** How `old` becomes `new`, line by line, with as many kept lines as possible. */
function steps(wanted: Line[], next: Line[]): Step[] {
  const [from, to] = [wanted, next].map((lines) => lines.map(({ text }) => text.trimEnd()));
  const [rows, columns] = [from!.length, to!.length];
  const longest = Array.from({ length: rows + 1 }, () => new Uint32Array(columns + 1));
  for (let i = rows - 1; i >= 0; i--) {
    for (let j = columns - 1; j >= 0; j--) {
      longest[i]![j] = from![i] === to![j]
        ? longest[i + 1]![j + 1]! + 1
        : Math.max(longest[i + 1]![j]!, longest[i]![j + 1]!);
    }
  }
  const found: Step[] = [];
  let [i, j] = [0, 0];
  while (i < rows || j < columns) {
    if (i < rows && j < columns && from![i] === to![j]) {
      found.push({ does: "keep", mine: i++, next: j++ });
    } else if (j === columns || (i < rows && longest[i + 1]![j]! >= longest[i]![j + 1]!)) {
      found.push({ does: "remove", mine: i++ });
    } else found.push({ does: "insert", next: j++ });
  }
  return found;
}

function indentOf(line: string): string {
  return /^[ \t]*/.exec(line)![0];
}

/** Columns of an indentation, with tabs of eight. */
function width(indent: string): number {
  let columns = 0;
  for (const character of indent) columns += character === "\t" ? 8 - columns % 8 : 1;
  return columns;
}
