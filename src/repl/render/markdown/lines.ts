/** A container block: a quotation or a list item. */
export type Container = { type: "quote" } | {
  type: "item";
  /** Minimum indentation, in columns, of a line that belongs to the item. */
  indent: number;
  /** The same for a line that opens a nested item: models often indent those by two. */
  lenient: number;
  /** The marker before its first line; empty once written. */
  marker: string;
  width: number;
};

/** A classified line. */
export interface Line {
  kind: "blank" | "text" | "heading" | "rule" | "underline" | "fence" | "row" | "code" | "inside";
  /** Number of open containers that the line continues. */
  matched: number;
  /** Containers that the line opens. */
  opened: Container[];
  rest: string;
}

/** The context in which a line is classified. */
export interface LineContext {
  containers: readonly Container[];
  /** A paragraph is open. */
  paragraph: boolean;
  /** The container depth of an open code block. */
  code?: number;
  /** A table or a possible table header is open: the line can be classified only at its end. */
  table: boolean;
}

/** Maximum nesting of containers; deeper ones are text. */
const MAX_DEPTH = 12;
const RULE = /^([-*_])(?:[ \t]*\1)*[ \t]*$/;
const BULLET = /^([-*+])([ \t]|$)/;
const NUMBER = /^(\d{1,9})([.)])([ \t]|$)/;

/**
 * Classifies a line; undefined while its beginning is ambiguous.
 *
 * @param ended whether the line is complete
 */
export function readLine(line: string, ended: boolean, context: LineContext): Line | undefined {
  const { containers, paragraph, code, table } = context;
  let rest = expandIndent(line);
  let matched = 0;
  for (const container of containers) {
    const indent = indentOf(rest);
    if (!ended && indent === rest.length) return undefined;
    if (container.type === "quote") {
      if (indent > 3 || rest[indent] !== ">") break;
      if (!ended && rest.length === indent + 1) return undefined;
      rest = expandIndent(rest.slice(indent + 1)).replace(/^ /, "");
    } else if (indent < rest.length) {
      const trimmed = rest.slice(indent);
      const begins = indent >= container.lenient && indent < container.indent;
      if (begins && !ended && /^([-*+]|\d{1,9}[.)]?)$/.test(trimmed)) return undefined;
      if (indent < container.indent && !(begins && isItem(trimmed))) break;
      rest = rest.slice(Math.min(indent, container.indent));
    }
    matched++;
  }
  const found = (kind: Line["kind"], text = rest): Line => ({ kind, matched, opened, rest: text });
  const opened: Container[] = [];
  if (code !== undefined && matched >= code) return ended ? found("inside") : undefined;
  let lazy = paragraph && matched < containers.length;
  let inParagraph = paragraph && matched === containers.length;
  while (true) {
    const indent = indentOf(rest);
    const text = rest.slice(indent);
    if (text === "") return ended ? found("blank", "") : undefined;
    if (indent > 3) {
      if (inParagraph || lazy) return found("text", text);
      return ended ? found("code", rest.slice(4)) : undefined;
    }
    const deep = containers.length + opened.length >= MAX_DEPTH;
    if (text[0] === ">" && !deep) {
      if (!ended && text.length === 1) return undefined;
      opened.push({ type: "quote" });
      rest = expandIndent(text.slice(1)).replace(/^ /, "");
      lazy = inParagraph = false;
      continue;
    }
    if (!ended && RULE.test(text)) return undefined;
    if (RULE.test(text) && text.replace(/[ \t]/g, "").length >= 3) return found("rule", text);
    const item = deep ? undefined : openItem(text, indent, ended, inParagraph);
    if (item === "undecided") return undefined;
    if (item !== undefined) {
      opened.push(item.container);
      rest = item.rest;
      lazy = inParagraph = false;
      continue;
    }
    const kind = leafKind(text, ended, inParagraph, table);
    return kind === undefined ? undefined : found(kind, kind === "fence" ? rest : text);
  }
}

function leafKind(
  text: string,
  ended: boolean,
  inParagraph: boolean,
  table: boolean,
): Line["kind"] | undefined {
  if (!ended) {
    if (table || /^(#{1,6}([ \t]|$)|\||`{1,2}$|~{1,2}$|`{3,}[^`]*$|~{3})/.test(text)) {
      return undefined;
    }
    if (inParagraph && /^=+[ \t]*$/.test(text)) return undefined;
    return "text";
  }
  if (/^#{1,6}([ \t]|$)/.test(text)) return "heading";
  if (/^(`{3,}[^`]*|~{3,}.*)$/.test(text)) return "fence";
  if (text[0] === "|" || (table && text.includes("|"))) return "row";
  return inParagraph && /^=+[ \t]*$/.test(text) ? "underline" : "text";
}

function openItem(
  text: string,
  indent: number,
  ended: boolean,
  inParagraph: boolean,
): { container: Container; rest: string } | "undecided" | undefined {
  if (!ended && /^([-*+]|\d{1,9}[.)]?)[ \t]*$/.test(text)) return "undecided";
  const bullet = BULLET.exec(text);
  const number = NUMBER.exec(text);
  // A paragraph line that begins with a number does not open a list.
  if (bullet === null && (number === null || (inParagraph && number[1] !== "1"))) return undefined;
  const sign = bullet ? bullet[1]! : number![1]! + number![2]!;
  let rest = expandIndent(text.slice(sign.length));
  if (inParagraph && rest.trim() === "") return undefined;
  const space = indentOf(rest);
  const gap = space === rest.length || space > 4 ? 1 : space;
  rest = rest.slice(gap);
  let marker = bullet ? "• " : `${sign} `;
  if (!ended && /^\[[ xX]?\]?$/.test(rest)) return "undecided";
  const task = /^\[([ xX])\][ \t]+(?=[^ \t])/.exec(rest);
  if (task === null && !ended && /^\[[ xX]\][ \t]*$/.test(rest)) return "undecided";
  if (task !== null) {
    marker = (bullet ? "" : marker) + (task[1] === " " ? "☐ " : "☑ ");
    rest = rest.slice(task[0].length);
  }
  const container: Container = {
    type: "item",
    indent: indent + sign.length + gap,
    lenient: indent + 2,
    marker,
    width: marker.length,
  };
  return { container, rest };
}

function isItem(text: string): boolean {
  return BULLET.test(text) || NUMBER.test(text);
}

function indentOf(text: string): number {
  return /^ */.exec(text)![0].length;
}

/** Expands the tabs of a line's indentation. */
function expandIndent(text: string): string {
  return text.replace(/^[ \t]*\t/, (indent) => indent.replaceAll("\t", "    "));
}
