import { Readability } from "@mozilla/readability";
import { DOMParser } from "linkedom/worker";
import Turndown from "turndown/lib/turndown.browser.es.js";
import type { SearchResult } from "../../../src/plugins/api.ts";
import { type Simplified, simplify } from "./simplify.ts";
import { decodeEntities, plainText, WebError } from "./text.ts";

/** The readable content of a page. */
export interface Page {
  title: string;
  /** Markdown, or plain text when the page is too large or too malformed to be parsed. */
  text: string;
}

/**
 * The readable part of an HTML page: the article that Readability finds, else the whole body. A page that
 * would take very long is not parsed. The others may still take seconds, so call this in a thread
 * (`page_threads.ts`).
 *
 * @param url the address of the page, for its links.
 */
export function readable(page: string, url: string): Page {
  const simple = simplify(page);
  const title = decodeEntities(simple.title.slice(0, 1000));
  return { title, text: parsed(simple, url) ?? plainText(simple.html) };
}

/** Whether a page can be parsed: that takes time proportional to its size times its depth. */
export function isBearable(page: Simplified): boolean {
  const { html, tags, depth, attributes, allAttributes, entities } = page;
  return html.length <= 1_500_000 && tags <= 24_000 && depth <= 150 && attributes <= 100 &&
    allAttributes <= 30_000 && entities <= 30_000 && html.length * depth <= 20_000_000;
}

/** The page as Markdown; undefined when it cannot be parsed. */
function parsed(page: Simplified, url: string): string | undefined {
  if (!isBearable(page)) return undefined;
  try {
    return parsePage(page.html, url);
  } catch {
    return undefined;
  }
}

/** A page as Markdown: its article, else all of it. */
function parsePage(html: string, url: string): string {
  const document = parseHtml(html);
  sanitise(document.body);
  for (const link of document.querySelectorAll("a[href]")) {
    const href = link.getAttribute("href") ?? "";
    if (URL.canParse(href, url)) link.setAttribute("href", new URL(href, url).href);
  }
  const article = findArticle(document);
  return toMarkdown(article === undefined ? document.body : parseHtml(article).body);
}

// This build needs no `require` of Node's: with one, every start of the bundle would pay 20 ms for it.

/** The part of a DOM element that is used here. */
interface Element {
  readonly textContent: string | null;
  getAttribute(name: string): string | null;
  setAttribute(name: string, value: string): void;
  closest(selector: string): Element | null;
  querySelector(selector: string): Element | null;
  querySelectorAll(selector: string): Iterable<Element>;
}

interface HtmlDocument extends Element {
  readonly body: Element;
  cloneNode(deep: boolean): HtmlDocument;
}

/**
 * Parses HTML whose size was checked (`isBearable`): a hostile page keeps the parser busy for minutes. The
 * parser finds nothing in a page without its outermost tags, which HTML allows, so they are added.
 */
function parseHtml(html: string): HtmlDocument {
  const whole = `<html><body>${html.replace(OUTERMOST, "")}</body></html>`;
  return new DOMParser().parseFromString(whole, "text/html") as unknown as HtmlDocument;
}

const OUTERMOST = /<!doctype[^<>]*>|<\/?(?:html|head|body)(?:\s[^<>]*)?>/gi;

/** Characters of consecutive white space that are kept, and how many of them a `br` counts for. */
const LONGEST_GAP = 100;
const BREAK = 3;
/** Characters of an attribute value; longer ones are no useful class, name or address. */
const LONGEST_VALUE = 2000;

/** The `nodeType` of a text. */
const TEXT = 3;

/** The part of a DOM node that is used here. */
interface Node {
  readonly nodeType: number;
  readonly nodeName: string;
  readonly childNodes: Iterable<Node>;
  data: string;
  readonly attributes?: Iterable<{ name: string; value: string }>;
  removeAttribute(name: string): void;
  remove(): void;
}

/**
 * Removes from a parsed page what the regular expressions of Readability and Turndown match in quadratic
 * time: endless white space, in one text or spread over many elements, and endless attributes.
 */
function sanitise(page: Element): void {
  let gap = 0;
  const visit = (node: Node) => {
    if (node.nodeType === TEXT) {
      node.data = node.data.replace(/\s+|\S+/g, (piece) => {
        if (piece.trim() !== "") return gap = 0, piece;
        const left = Math.max(0, LONGEST_GAP - gap);
        gap += piece.length;
        return piece.slice(0, left);
      });
      return;
    }
    if (node.nodeName === "BR") {
      if (gap >= LONGEST_GAP) node.remove();
      gap += BREAK;
      return;
    }
    for (const { name, value } of [...node.attributes ?? []]) {
      if (value.length > LONGEST_VALUE) node.removeAttribute(name);
    }
    for (const child of [...node.childNodes]) visit(child);
  };
  visit(page as unknown as Node);
}

/** Characters below which an article is taken for a wrong guess. */
const SHORTEST = 300;

/** The article of a page, as HTML; undefined when there is none. */
function findArticle(document: HtmlDocument): string | undefined {
  // Readability modifies the document that it is given.
  const copy = document.cloneNode(true) as unknown;
  // deno-lint-ignore no-explicit-any
  const article = new Readability(copy as any, { charThreshold: SHORTEST }).parse();
  const long = (article?.textContent ?? "").trim().length >= SHORTEST;
  return long ? article?.content ?? undefined : undefined;
}

// The build that does not bring a parser of its own: it is given elements.

/** An element as Markdown. Images, forms and embedded things are left out. */
function toMarkdown(element: Element): string {
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

/** Replaces the rule of Turndown, which takes quadratic time on a long line. */
function inlineCode(content: string): string {
  const line = content.replace(/\r\n?|\n/g, " ");
  if (line === "") return "";
  const longest = (line.match(/`+/g) ?? []).reduce((most, { length }) => Math.max(most, length), 0);
  const fence = "`".repeat(longest + 1);
  const space = /^`|`$/.test(line) || (/^ .* $/.test(line) && line.trim() !== "") ? " " : "";
  return `${fence}${space}${line}${space}${fence}`;
}

/** More links than a result page has. */
const MOST_LINKS = 100;

/** The results on a page of DuckDuckGo. It may take seconds: call this in a thread (`page_threads.ts`). */
export function readResults(html: string, url: string): SearchResult[] {
  const page = simplify(html);
  if (!isBearable(page)) throw new WebError("the answer of DuckDuckGo is too large");
  const document = parseHtml(page.html);
  const links = [...document.querySelectorAll("a.result__a")].slice(0, MOST_LINKS);
  if (links.length === 0 && document.querySelector(".no-results") === null) {
    throw new WebError("DuckDuckGo answers without results; it may want to see a person");
  }
  return links.map((link) => ({
    title: link.textContent ?? "",
    url: target(link.getAttribute("href") ?? "", url),
    snippet: link.closest(".result")?.querySelector(".result__snippet")?.textContent ?? "",
  }));
}

/** The address behind a link, which leads through a counting page; empty for an advertisement. */
function target(href: string, base: string): string {
  if (!URL.canParse(href, base)) return "";
  const url = new URL(href, base);
  if (url.pathname === "/y.js") return "";
  return url.searchParams.get("uddg") ?? url.href;
}
