import { readTime } from "../jobs/schedule.ts";

/**
 * Rows as aligned columns. The last column is cut to the width.
 *
 * @param width columns of the terminal; left out: unlimited
 */
export function table(rows: string[][], width = Infinity): string {
  const widths =
    rows[0]?.map((_, column) => Math.max(...rows.map((row) => [...row[column] ?? ""].length))) ??
      [];
  return rows.map((row) => {
    const cells = row.map((cell, column) =>
      column === row.length - 1 ? cell : cell + " ".repeat(widths[column]! - [...cell].length)
    );
    return `${shortened(cells.join("  ").trimEnd(), width)}\n`;
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
