type Test = (code: number) => boolean;

type Node =
  | { kind: "char"; test: Test; source: string }
  | { kind: "assert"; what: string }
  | { kind: "sequence"; of: Node[] }
  | { kind: "choice"; of: Node[] }
  | { kind: "repeat"; node: Node; min: number; max: number };

type Instruction =
  | { op: "char"; test: Test }
  | { op: "assert"; what: string }
  | { op: "split"; to: number[] }
  | { op: "match" };

const MAX_PROGRAM = 1000;

/**
 * A regular expression matched in time proportional to the line: all the ways it could match are
 * followed at once, instead of one after the other. It says where the earliest match ends, for which
 * greed does not matter. Back-references and look-around cannot be matched this way.
 */
export class LinearPattern {
  readonly #program: Instruction[] = [];
  /** Text that every match contains, or empty: looking for it first spares most lines the rest. */
  readonly #literal: string;

  /**
   * @param source a pattern that `RegExp` has accepted.
   * @throws Error a sentence, for a pattern that cannot be matched in linear time.
   */
  constructor(source: string, flags: string) {
    const tree = new Parser(source, flags).parse();
    this.#literal = flags.includes("i") ? "" : longestLiteral(tree);
    this.#emit(tree);
    this.#add({ op: "match" });
  }

  /** Column where the earliest match ends, or -1. */
  search(line: string): number {
    if (!line.includes(this.#literal)) return -1;
    const seen = new Uint32Array(this.#program.length);
    let threads: number[] = [];
    for (let at = 0;; at++) {
      // A match may start at every position.
      if (this.#follow(0, line, at, seen, threads)) return at;
      if (at === line.length) return -1;
      const code = line.charCodeAt(at);
      const next: number[] = [];
      for (const thread of threads) {
        const instruction = this.#program[thread]!;
        if (instruction.op !== "char" || !instruction.test(code)) continue;
        if (this.#follow(thread + 1, line, at + 1, seen, next)) return at + 1;
      }
      threads = next;
    }
  }

  /** Adds the characters that may come next from an instruction on; true when that is a match. */
  #follow(from: number, line: string, at: number, seen: Uint32Array, threads: number[]): boolean {
    const pending = [from];
    while (pending.length > 0) {
      const index = pending.pop()!;
      if (seen[index] === at + 1) continue;
      seen[index] = at + 1;
      const instruction = this.#program[index]!;
      if (instruction.op === "match") return true;
      if (instruction.op === "char") threads.push(index);
      else if (instruction.op === "split") pending.push(...instruction.to);
      else if (holds(instruction.what, line, at)) pending.push(index + 1);
    }
    return false;
  }

  #add(instruction: Instruction): void {
    if (this.#program.push(instruction) > MAX_PROGRAM) {
      throw new Error("the pattern repeats too much; use smaller counts");
    }
  }

  #emit(node: Node): void {
    switch (node.kind) {
      case "char":
        return this.#add({ op: "char", test: node.test });
      case "assert":
        return this.#add({ op: "assert", what: node.what });
      case "sequence":
        return node.of.forEach((each) => this.#emit(each));
      case "choice":
        return this.#emitChoice(node.of);
      case "repeat":
        return this.#emitRepeat(node.node, node.min, node.max);
    }
  }

  #emitChoice(choices: Node[]): void {
    const fork: number[] = [];
    const exits: number[][] = [];
    this.#add({ op: "split", to: fork });
    for (const choice of choices) {
      fork.push(this.#program.length);
      this.#emit(choice);
      const exit: number[] = [];
      exits.push(exit);
      this.#add({ op: "split", to: exit });
    }
    for (const exit of exits) exit.push(this.#program.length);
  }

  #emitRepeat(node: Node, min: number, max: number): void {
    for (let i = 0; i < min; i++) {
      const before = this.#program.length;
      this.#emit(node);
      if (this.#program.length === before) return; // nothing, however often it is repeated
    }
    if (max === Infinity) {
      const fork = [this.#program.length + 1];
      const start = this.#program.length;
      this.#add({ op: "split", to: fork });
      this.#emit(node);
      this.#add({ op: "split", to: [start] });
      fork.push(this.#program.length);
      return;
    }
    const forks: number[][] = [];
    for (let i = min; i < max; i++) {
      const fork = [this.#program.length + 1];
      forks.push(fork);
      this.#add({ op: "split", to: fork });
      this.#emit(node);
    }
    for (const fork of forks) fork.push(this.#program.length);
  }
}

/** Text that every match contains, apart from case where the flags ignore it; empty when unknown. */
export function requiredText(source: string, flags: string): string {
  try {
    return longestLiteral(new Parser(source, flags).parse());
  } catch {
    return ""; // look-around and back-references are not read here
  }
}

/** Reads the syntax that `RegExp` accepts without its `u` flag. */
class Parser {
  readonly #source: string;
  readonly #flags: string;
  #at = 0;

  constructor(source: string, flags: string) {
    this.#source = source;
    this.#flags = flags;
  }

  parse(): Node {
    const choices: Node[] = [];
    do {
      choices.push(this.#sequence());
    } while (this.#take("|"));
    return choices.length === 1 ? choices[0]! : { kind: "choice", of: choices };
  }

  #sequence(): Node {
    const of: Node[] = [];
    while (this.#at < this.#source.length && !"|)".includes(this.#source[this.#at]!)) {
      of.push(this.#repeated(this.#atom()));
    }
    return { kind: "sequence", of };
  }

  #repeated(node: Node): Node {
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
    if (Math.max(min, max === Infinity ? 0 : max) > MAX_PROGRAM) {
      throw new Error("the pattern repeats too much; use smaller counts");
    }
    return { kind: "repeat", node, min, max };
  }

  #atom(): Node {
    const assertion = this.#match(/[\^$]|\\[bB]/y);
    if (assertion !== undefined) return { kind: "assert", what: assertion[0] };
    if (this.#take("(")) return this.#group();
    if (this.#match(/\\(?=[1-9k])/y) !== undefined) throw unsupported("a back-reference");
    const single = this.#match(
      /\[(?:\\[^]|[^\]\\])*\]|\\(?:x[\da-fA-F]{2}|u[\da-fA-F]{4}|c[A-Za-z]|0|[^])|[^]/y,
    )!;
    return { kind: "char", test: this.#single(single[0]), source: single[0] };
  }

  #group(): Node {
    if (this.#match(/\?(?::|<(?![=!])[^>]*>)/y) === undefined && this.#peek("?")) {
      throw unsupported("look-around");
    }
    const node = this.parse();
    this.#take(")");
    return node;
  }

  /** What a part that stands for one character matches, as `RegExp` itself sees it. */
  #single(source: string): Test {
    const literal = source.length === 1 && /[{}\]]/.test(source) ? `\\${source}` : source;
    const regex = new RegExp(`^(?:${literal})$`, this.#flags);
    const ask = (code: number) => regex.test(String.fromCharCode(code));
    const ascii = Array.from({ length: 128 }, (_, code) => ask(code));
    return (code) => ascii[code] ?? ask(code);
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

/** The longest run of plain characters that stand in a row at the top of a pattern. */
function longestLiteral(tree: Node): string {
  let longest = "";
  let run = "";
  for (const node of tree.kind === "sequence" ? tree.of : []) {
    const plain = node.kind === "char" && /^(?:[^.[\\]|\\[^\w])$/.test(node.source);
    run = plain ? run + node.source.at(-1) : "";
    if (run.length > longest.length) longest = run;
  }
  return longest;
}

function holds(assertion: string, line: string, at: number): boolean {
  if (assertion === "^") return at === 0;
  if (assertion === "$") return at === line.length;
  const boundary = isWord(line, at - 1) !== isWord(line, at);
  return boundary === (assertion === "\\b");
}

function isWord(line: string, at: number): boolean {
  return /\w/.test(line.charAt(at));
}

function unsupported(what: string): Error {
  return new Error(
    `the pattern combines ${what} with repetition, which can take forever; write it without`,
  );
}
