import { readTime } from "../jobs/schedule.ts";
import { terminalColumns } from "../platform/terminal.ts";
import type { Io } from "./io.ts";

/** What a list is printed to. */
export type ListIo = Pick<Io, "isTerminal" | "columns" | "environment">;

/**
 * A list for people. On a terminal its last column is wrapped under a head. Elsewhere each row is a line, without the
 * head unless that is `always` shown, as programs that read it expect.
 */
export function listText(
  io: ListIo,
  head: string[],
  rows: string[][],
  { always = false } = {},
): string {
  if (rows.length === 0) return "";
  if (!io.isTerminal("out")) return table(always ? [head, ...rows] : rows);
  return wrapped([head, ...rows], io.columns?.() ?? terminalColumns() ?? 80);
}

/** Prints text. On a terminal the heads of its lists are bold, and words of state in them have colours. */
export function printLists(io: Io, text: string): void {
  if (!io.isTerminal("out") || io.environment.get("NO_COLOR") !== undefined) return io.out(text);
  io.out(
    text.replace(HEAD, "\x1b[1m$&\x1b[22m").replace(STATE, (word) => {
      const [color] = Object.entries(COLORS).find(([, words]) => words.includes(word))!;
      return `\x1b[${color}m${word}\x1b[39m`;
    }),
  );
}

/** Words of state by the number of their terminal colour: green, yellow, red. */
const COLORS: Record<string, string[]> = {
  32: ["ok", "accepted", "loaded", "connected", "running", "approved", "verified", "imported"],
  33: ["warning", "new", "changed", "proposed", "disabled", "starting", "waiting", "pending"],
  31: ["failed", "error", "crashed", "broken", "incompatible", "unreadable"],
};

/** A word of state at the start of a column. */
const STATE = new RegExp(`(?<= {2})(${Object.values(COLORS).flat().join("|")})(?=[ ,;]|$)`, "gm");
const HEAD = /^ *[A-Z]+( [A-Z]+)?( {2,}[A-Z]+( [A-Z]+)*)+$/gm;

/** The fewest columns into which a last column is wrapped. */
const NARROW = 20;

/** A table whose last column continues in further lines where it does not fit; below the others where they are wide. */
function wrapped(rows: string[][], width: number): string {
  const last = rows[0]!.length - 1;
  const before = table(rows.map((row) => [...row.slice(0, last), ""]));
  const start = Math.max(0, ...before.split("\n").map((line) => [...line].length)) + 2;
  if (width - start >= NARROW) {
    return table(
      rows.flatMap((row) =>
        broken(row[last] ?? "", width - start).map((line, index) =>
          index === 0 ? [...row.slice(0, last), line] : [...row.slice(0, last).map(() => ""), line]
        )
      ),
    );
  }
  const heads = before.split("\n");
  return rows.map((row, index) => {
    const below = broken(row[last] ?? "", width - 4).map((line) => `    ${line}\n`);
    return `${heads[index]}\n${last > 0 && row[last] !== "" ? below.join("") : ""}`;
  }).join("");
}

/** A text as lines of whole words. A word that is longer than a line has one of its own. */
function broken(text: string, width: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1) === "" ? word : `${lines.at(-1)} ${word}`;
    if ([...line].length <= width || lines.at(-1) === "") lines[lines.length - 1] = line;
    else lines.push(word);
  }
  return lines;
}

/** A line that continues in further lines where it is too long, below its text or its value after a colon. */
export function wrappedLine(line: string, width: number): string {
  const text = line.replace(/\s*\n\s*/g, " ");
  if ([...text].length <= width) return text;
  const label = /^\s*(?:[a-z ]+:\s+)?/.exec(text)![0];
  const start = width - label.length >= NARROW ? label.length : 2;
  const [first = "", ...more] = broken(text.slice(label.length), width - start);
  return [label + first, ...more.map((each) => " ".repeat(start) + each)].join("\n");
}

/**
 * Rows as aligned columns. The last column is wrapped where it does not fit.
 *
 * @param width columns of the terminal; left out: unlimited
 */
export function table(rows: string[][], width = Infinity): string {
  if (width !== Infinity && rows.length > 0) return wrapped(rows, width);
  const widths =
    rows[0]?.map((_, column) => Math.max(...rows.map((row) => [...row[column] ?? ""].length))) ??
      [];
  return rows.map((row) => {
    const cells = row.map((cell, column) =>
      column === row.length - 1 ? cell : cell + " ".repeat(widths[column]! - [...cell].length)
    );
    return `${cells.join("  ").trimEnd().replace(/\s*\n\s*/g, " ")}\n`;
  }).join("");
}

/** A text on one line, cut with an ellipsis where it is too long. */
export function shortened(text: string, width: number): string {
  const characters = [...text.replace(/\s*\n\s*/g, " ")];
  return characters.length <= width
    ? characters.join("")
    : characters.slice(0, width - 1).join("") + "…";
}

/** How far a time is from now: `in 3 h`, `2 d ago`. */
export function relative(time: number, now: number): string {
  const seconds = Math.round(Math.abs(time - now) / 1000);
  if (seconds < 1) return "now";
  return time > now ? `in ${span(seconds)}` : `${span(seconds)} ago`;
}

/** Seconds in a unit that needs few digits. */
export function span(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 2 * 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

/** A time in UTC, and its distance from now. */
export function moment(time: string, now: number): string {
  const at = readTime(time);
  if (at === undefined) return "";
  return `${time.slice(0, 19).replace("T", " ")} UTC (${relative(at, now)})`;
}
