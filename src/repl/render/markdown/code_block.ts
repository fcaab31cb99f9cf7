import type { Style } from "../style.ts";
import { highlighter } from "./highlight.ts";

/** Code between fences: begins with the line that opens it, and paints those inside by its language. */
export class CodeBlock {
  /** The opening line as it is shown. */
  readonly head: string;
  readonly #end: RegExp;
  readonly #indent: RegExp;
  readonly #paint: (line: string) => string;

  /** @param depth of how many containers it is inside */
  constructor(opening: string, readonly depth: number, style: Style) {
    const [, space, signs, name] = /^( *)(`+|~+)[ \t]*([^ \t{,:]*)/.exec(opening)!;
    this.head = style.dim(opening.trim());
    this.#indent = new RegExp(`^ {0,${space!.length}}`);
    this.#end = new RegExp(`^ {0,3}[${signs![0]}]{${signs!.length},}[ \\t]*$`);
    this.#paint = highlighter(name!, style);
  }

  /** Whether the line closes it. */
  endsWith(line: string): boolean {
    return this.#end.test(line);
  }

  /** A line inside as it is shown. */
  line(line: string): string {
    return this.#paint(line.replace(this.#indent, ""));
  }
}
