import type { Style } from "../style.ts";
import type { Container } from "./lines.ts";

/** What stands before a line inside containers; the markers of list items only once, and when `first`. */
export function prefixOf(containers: Container[], first: boolean, style: Style): string {
  return containers.map((container) => {
    if (container.type === "quote") return `${style.dim("│")} `;
    const { marker, width } = container;
    if (!first || marker === "") return " ".repeat(width);
    container.marker = "";
    return marker;
  }).join("");
}
