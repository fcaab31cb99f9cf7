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
  return turndown.turndown(element).replace(/\n{3,}/g, "\n\n").trim();
}
