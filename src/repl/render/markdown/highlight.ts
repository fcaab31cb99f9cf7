import type { Style } from "../style.ts";
import { type Language, languageOf } from "./languages.ts";

/**
 * Paints the lines of a program one after another; what spans lines (comments, long strings) is
 * remembered. A language that is not known is left as it is.
 */
export function highlighter(name: string, style: Style): (line: string) => string {
  if (name === "diff" || name === "patch") return (line) => diffLine(line, style);
  const language = languageOf(name);
  if (language === undefined || !style.enabled) return (line) => line;
  const tokens = new RegExp(pattern(language), "gu");
  /** What goes on over lines; `begun`: as many characters of it stand before its inside. */
  let open: { end: string; begun: number; paint: (text: string) => string } | undefined;
  const paints = { comment: style.dim, string: style.green };
  return (line) => {
    let shown = "";
    let at = 0;
    while (at < line.length) {
      if (open !== undefined) {
        const end = line.indexOf(open.end, at + open.begun);
        open.begun = 0;
        const stop = end < 0 ? line.length : end + open.end.length;
        shown += open.paint(line.slice(at, stop));
        if (end >= 0) open = undefined;
        at = stop;
        continue;
      }
      tokens.lastIndex = at;
      const match = tokens.exec(line);
      if (match === null) return shown + line.slice(at);
      shown += line.slice(at, match.index);
      const [text] = match;
      at = match.index + text.length;
      const { comment, begin, string, number, word } = match.groups!;
      if (comment !== undefined) {
        shown += style.dim(line.slice(match.index));
        at = line.length;
      } else if (begin !== undefined) {
        const [, end, kind] = language.spans!.find(([start]) => start === begin)!;
        open = { end, begun: text.length, paint: paints[kind] };
        at = match.index;
      } else if (string !== undefined) shown += style.green(text);
      else if (number !== undefined) shown += style.yellow(text);
      else shown += isKeyword(language, word!) ? style.magenta(text) : text;
    }
    return shown;
  };
}

/** One line of a unified diff. */
export function diffLine(line: string, style: Style): string {
  if (/^(\+\+\+|---) /.test(line)) return style.bold(line);
  if (line.startsWith("+")) return style.green(line);
  if (line.startsWith("-")) return style.red(line);
  return line.startsWith("@@") ? style.cyan(line) : line;
}

function isKeyword({ keywords, ignoreCase }: Language, word: string): boolean {
  return keywords.has(ignoreCase ? word.toLowerCase() : word);
}

function pattern({ comments, spans = [], strings, word }: Language): string {
  const groups = [
    ["comment", comments.map(escape).join("|")],
    ["begin", spans.map(([start]) => escape(start)).join("|")],
    ["string", strings.map((quote) => `${quote}(?:[^\\\\${quote}]|\\\\.)*${quote}`).join("|")],
    ["number", "(?<![\\p{L}_\\d])\\d[\\d_]*(?:\\.\\d[\\w.]*|[\\w]*)"],
    ["word", word ?? "[\\p{L}_$][\\p{L}\\p{N}_$]*"],
  ];
  return groups.filter(([, text]) => text !== "").map(([name, text]) => `(?<${name}>${text})`)
    .join("|");
}

function escape(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
