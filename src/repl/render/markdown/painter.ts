import type { Style } from "../style.ts";
import { type Chunk, MARK } from "./inline.ts";

/** Sets pieces of text as their marks say. */
export function painter(style: Style): (chunk: Chunk) => string {
  return ({ text, marks }) => {
    let shown = text;
    if (marks & MARK.code) shown = style.cyan(shown);
    if (marks & MARK.italic) shown = style.italic(shown);
    if (marks & (MARK.link | MARK.title)) shown = style.underline(shown);
    if (marks & MARK.strike) shown = style.strike(shown);
    if (marks & MARK.address) shown = style.dim(shown);
    return marks & MARK.bold ? style.bold(shown) : shown;
  };
}
