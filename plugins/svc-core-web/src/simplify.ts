/** HTML without the parts that hold no text, and how large what is left is. */
export interface Simplified {
  html: string;
  /** What the first `title` says, entities as they are. */
  title: string;
  tags: number;
  /** Elements inside one another, at most. */
  depth: number;
  /** Attributes of the tag that has most. */
  attributes: number;
  /** Attributes of all tags together. */
  allAttributes: number;
  /** Signs that may begin an entity; the parser makes a text of its own of each. */
  entities: number;
}

/** Elements whose content is no text of the page. */
const SILENT = [
  "script",
  "style",
  "noscript",
  "template",
  "svg",
  "math",
  "iframe",
  "object",
  "canvas",
];
/** Elements that hold nothing, or that end by themselves where the next of their kind begins. */
const FLAT = new Set([
  ..."area base br col embed hr img input link meta param source track wbr".split(" "),
  ..."p li dt dd td th tr thead tbody tfoot option optgroup".split(" "),
]);

/** Simplifies a page in one pass, in linear time. */
export function simplify(page: string): Simplified {
  const kept: string[] = [];
  let [tags, depth, deepest, attributes, allAttributes] = [0, 0, 0, 0, 0];
  let [at, title] = [0, ""];
  while (at < page.length) {
    const start = page.indexOf("<", at);
    if (start < 0) {
      kept.push(page.slice(at));
      break;
    }
    kept.push(page.slice(at, start));
    if (page.startsWith("<!--", start)) {
      const end = page.indexOf("-->", start + 4);
      at = end < 0 ? page.length : end + 3;
      continue;
    }
    const [, slash, raw] = TAG.exec(page.slice(start, start + 40)) ?? [];
    if (raw === undefined) {
      const text = /^[<][!?]/.test(page.slice(start, start + 2)) ? "" : "&lt;";
      const end = text === "" ? page.indexOf(">", start) : start;
      at = end < 0 ? page.length : end + 1;
      kept.push(text);
      continue;
    }
    const name = raw.toLowerCase();
    const tag = endOfTag(page, start);
    if (SILENT.includes(name)) {
      at = slash === "" ? afterClosing(page, name, tag.end) : tag.end;
      continue;
    }
    if (name === "title" && slash === "") {
      at = afterClosing(page, name, tag.end);
      title ||= page.slice(tag.end, at).split("<")[0]!.trim();
      continue;
    }
    tags++;
    attributes = Math.max(attributes, tag.attributes);
    allAttributes += tag.attributes;
    if (!FLAT.has(name)) depth = Math.max(0, depth + (slash === "" ? 1 : -1));
    deepest = Math.max(deepest, depth);
    kept.push(page.slice(start, tag.end));
    at = tag.end;
  }
  const html = kept.join("");
  const entities = html.split("&").length - 1;
  return { html, title, tags, depth: deepest, attributes, allAttributes, entities };
}

const TAG = /^<(\/?)([a-z][\w:-]*)/i;

/** Where a tag ends, and how many attributes it may have: at most one a gap outside of quotes. */
function endOfTag(page: string, start: number): { end: number; attributes: number } {
  let [quote, value, attributes, gap] = ["", false, 0, false];
  for (let at = start + 1; at < page.length; at++) {
    const character = page[at]!;
    if (quote !== "") {
      if (character === quote) [quote, gap] = ["", true];
      continue;
    }
    if (character === ">") return { end: at + 1, attributes };
    if (value && (character === '"' || character === "'")) quote = character;
    const space = character <= " " || character === "/";
    if (gap && !space) attributes++;
    gap = space;
    value = character === "=" || (value && space);
  }
  return { end: page.length, attributes };
}

/** The position after the closing tag of an element, or the end of the page. */
function afterClosing(page: string, name: string, from: number): number {
  const closing = new RegExp(`</${name}\\b[^>]{0,200}>?`, "gi");
  closing.lastIndex = from;
  const found = closing.exec(page);
  return found === null ? page.length : found.index + found[0].length;
}
