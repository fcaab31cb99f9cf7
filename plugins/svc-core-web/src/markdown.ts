// The build that does not bring a parser of its own: it is given elements.
import Turndown from "turndown/lib/turndown.browser.es.js";
import type { Element } from "./dom.ts";

/** An element as Markdown. Images, forms and embedded things are left out. */
export function toMarkdown(element: Element): string {
  const turndown = new Turndown({
    headingStyle: "atx",
    codeBlockStyle: "fenced",
    bulletListMarker: "-",
  });
  turndown.remove(["img", "picture", "video", "audio", "form", "button", "input", "select"]);
  turndown.addRule("links", {
    filter: "a",
    replacement(content: string, node: Element) {
      const text = content.trim().replace(/\s+/g, " ");
      const href = node.getAttribute("href") ?? "";
      return text === "" || !/^https?:/.test(href) ? text : `[${text}](${href})`;
    },
  });
  turndown.addRule("code in a line", {
    filter: ({ nodeName, parentNode, previousSibling, nextSibling }: CodeNode) =>
      nodeName === "CODE" &&
      !(parentNode.nodeName === "PRE" && previousSibling === null && nextSibling === null),
    replacement: inlineCode,
  });
  return turndown.turndown(element).replace(/\n{3,}/g, "\n\n").trim();
}

interface CodeNode {
  nodeName: string;
  parentNode: { nodeName: string };
  previousSibling: unknown;
  nextSibling: unknown;
}

/** Turndown's own rule looks at a long line in time that grows with the square of its length. */
function inlineCode(content: string): string {
  const line = content.replace(/\r\n?|\n/g, " ");
  if (line === "") return "";
  const longest = (line.match(/`+/g) ?? []).reduce((most, { length }) => Math.max(most, length), 0);
  const fence = "`".repeat(longest + 1);
  const space = /^`|`$/.test(line) || (/^ .* $/.test(line) && line.trim() !== "") ? " " : "";
  return `${fence}${space}${line}${space}${fence}`;
}
