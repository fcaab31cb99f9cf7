/** What a regular expression says, piece by piece. */
export type PatternNode =
  | { kind: "char"; source: string }
  | { kind: "assert"; what: Assertion }
  | { kind: "sequence"; of: PatternNode[] }
  | { kind: "choice"; of: PatternNode[] }
  | { kind: "repeat"; node: PatternNode; min: number; max: number };

export type Assertion = "^" | "$" | "\\b" | "\\B";

/** How often a piece may be repeated at most, unless it is without end. */
const MAX_COUNT = 1000;

/**
 * Reads a pattern that `RegExp` has accepted without its `u` flag.
 *
 * @throws Error a sentence, for back-references, look-around and large counts.
 */
export function patternTree(source: string): PatternNode {
  return new Parser(source).parse();
}

/** Text that every match contains, apart from case where that is ignored; empty when there is none. */
export function longestLiteral(tree: PatternNode): string {
  let longest = "";
  let run = "";
  for (const node of tree.kind === "sequence" ? tree.of : []) {
    const plain = node.kind === "char" && /^(?:[^.[\\]|\\[^\w])$/.test(node.source);
    run = plain ? run + node.source.at(-1) : "";
    if (run.length > longest.length) longest = run;
  }
  return longest;
}

class Parser {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  parse(): PatternNode {
    const choices: PatternNode[] = [];
    do {
      choices.push(this.#sequence());
    } while (this.#take("|"));
    return choices.length === 1 ? choices[0]! : { kind: "choice", of: choices };
  }

  #sequence(): PatternNode {
    const of: PatternNode[] = [];
    while (this.#at < this.#source.length && !"|)".includes(this.#source[this.#at]!)) {
      of.push(this.#repeated(this.#atom()));
    }
    return { kind: "sequence", of };
  }

  #repeated(node: PatternNode): PatternNode {
    const match = this.#match(/[*+?]|\{(\d+)(,(\d*))?\}/y);
    if (match === undefined) return node;
    this.#take("?"); // lazy or greedy, the same lines match
    const [sign, low, list, high] = match;
    const min = low === undefined ? (sign === "+" ? 1 : 0) : Number(low);
    const max = low === undefined
      ? (sign === "?" ? 1 : Infinity)
      : list === undefined
      ? min
      : high === ""
      ? Infinity
      : Number(high);
    if (Math.max(min, max === Infinity ? 0 : max) > MAX_COUNT) {
      throw new Error("the pattern repeats too much; use smaller counts");
    }
    return { kind: "repeat", node, min, max };
  }

  #atom(): PatternNode {
    const assertion = this.#match(/[\^$]|\\[bB]/y);
    if (assertion !== undefined) return { kind: "assert", what: assertion[0] as Assertion };
    if (this.#take("(")) return this.#group();
    if (this.#match(/\\(?=[1-9k])/y) !== undefined) throw unsupported("a back-reference");
    const single = this.#match(
      /\[(?:\\[^]|[^\]\\])*\]|\\(?:x[\da-fA-F]{2}|u[\da-fA-F]{4}|c[A-Za-z]|0|[^])|[^]/y,
    )!;
    return { kind: "char", source: single[0] };
  }

  #group(): PatternNode {
    if (this.#match(/\?(?::|<(?![=!])[^>]*>)/y) === undefined && this.#peek("?")) {
      throw unsupported("look-around");
    }
    const node = this.parse();
    this.#take(")");
    return node;
  }

  #peek(text: string): boolean {
    return this.#source.startsWith(text, this.#at);
  }

  #take(text: string): boolean {
    const here = this.#peek(text);
    if (here) this.#at += text.length;
    return here;
  }

  #match(sticky: RegExp): RegExpExecArray | undefined {
    sticky.lastIndex = this.#at;
    const match = sticky.exec(this.#source) ?? undefined;
    if (match !== undefined) this.#at += match[0].length;
    return match;
  }
}

function unsupported(what: string): Error {
  return new Error(
    `the pattern combines ${what} with repetition, which can take forever; write it without`,
  );
}
