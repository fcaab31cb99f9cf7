// This build needs no `require` of Node's: with one, every start of the bundle would pay 20 ms for it.
import { DOMParser } from "linkedom/worker";

/** As much of a DOM element as is used here. */
export interface Element {
  readonly textContent: string | null;
  getAttribute(name: string): string | null;
  setAttribute(name: string, value: string): void;
  closest(selector: string): Element | null;
  querySelector(selector: string): Element | null;
  querySelectorAll(selector: string): Iterable<Element>;
}

export interface HtmlDocument extends Element {
  readonly body: Element;
  cloneNode(deep: boolean): HtmlDocument;
}

/**
 * Parses HTML that has been measured before: a hostile page keeps the parser busy for minutes. The parser
 * finds nothing in a page that leaves out one of the outermost tags, as HTML allows; it gets them all.
 */
export function parseHtml(html: string): HtmlDocument {
  const whole = `<html><body>${html.replace(OUTERMOST, "")}</body></html>`;
  return new DOMParser().parseFromString(whole, "text/html") as unknown as HtmlDocument;
}

const OUTERMOST = /<!doctype[^<>]*>|<\/?(?:html|head|body)(?:\s[^<>]*)?>/gi;
