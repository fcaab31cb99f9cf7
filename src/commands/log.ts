import { type Clock, timestamp } from "../platform/clock.ts";
import { oneLine } from "../platform/terminal.ts";
import { type Io, toJson } from "./io.ts";
import { choice, option, withDefault } from "./options.ts";

/** `--log` of the commands that run until they are interrupted. */
export const logOption = withDefault(
  option(
    "--log",
    choice(["text", "json"]),
    "text (default), or json: each line of the log is a JSON object.",
  ),
  "text",
);

/** How the lines of a log are written. */
export type LogFormat = "text" | "json";

/** What a line of a log says in addition to its message; in a text, only the level is shown. */
export interface LogFields {
  level?: "info" | "warning";
  [name: string]: unknown;
}

/** A line of a log with its time in UTC, without a line break. */
export function logLine(
  format: LogFormat,
  clock: Clock,
  message: string,
  { level = "info", ...fields }: LogFields = {},
): string {
  const time = timestamp(clock);
  const words = oneLine(message);
  if (format === "json") return toJson({ time, level, message: words, ...fields });
  return `${time.replace(/\.\d+Z$/, "Z")} ${level === "warning" ? "warning: " : ""}${words}`;
}

/** The same front end, whose notes are lines of a JSON log. */
export function withJsonNotes(io: Io, clock: Clock): Io {
  return {
    ...io,
    note: (line) => io.note(logLine("json", clock, ...noteParts(line))),
  };
}

/** The message of a note, and its level. */
export function noteParts(line: string): [message: string, fields: LogFields] {
  const [, warning, message = ""] = /^(warning: )?(.*)$/s.exec(line) ?? [];
  return [message, { level: warning === undefined ? "info" : "warning" }];
}
