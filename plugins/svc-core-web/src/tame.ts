import type { Element } from "./dom.ts";

/** Characters of white space in a row that are kept; where a line break counts for what becomes of it. */
const LONGEST_GAP = 100;
const BREAK = 3;
/** Longer values of attributes are no class, no name and no address to be followed. */
const LONGEST_VALUE = 2000;

/** The `nodeType` of a text. */
const TEXT = 3;

/** What is used here of a node. */
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
 * Takes out of a parsed page what the regular expressions of Readability and Turndown look at for hours,
 * in time that grows with the square of its length: endless white space, in one text or spread over many
 * elements, and endless attributes.
 */
export function tame(page: Element): void {
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
