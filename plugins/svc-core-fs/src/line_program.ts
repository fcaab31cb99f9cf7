import type { Assertion, PatternNode } from "./pattern_tree.ts";

/** What {@linkcode lineAutomaton} follows: data, so that it can be handed to a worker. */
export interface LineProgram {
  instructions: Instruction[];
  /** Regular expressions, each of which matches single characters. */
  sets: string[];
  flags: string;
}

export type Instruction =
  | { op: "char"; set: number }
  | { op: "assert"; what: Assertion }
  | { op: "split"; to: number[] }
  | { op: "match" };

const MAX_INSTRUCTIONS = 1000;

/** @throws Error a sentence, for a pattern that would make too long a program. */
export function lineProgram(tree: PatternNode, flags: string): LineProgram {
  const compiler = new Compiler();
  compiler.emit(tree);
  compiler.add({ op: "match" });
  return { instructions: compiler.instructions, sets: [...compiler.sets.keys()], flags };
}

class Compiler {
  readonly instructions: Instruction[] = [];
  /** Where each set will stand. */
  readonly sets = new Map<string, number>();

  add(instruction: Instruction): void {
    if (this.instructions.push(instruction) > MAX_INSTRUCTIONS) {
      throw new Error("the pattern repeats too much; use smaller counts");
    }
  }

  emit(node: PatternNode): void {
    switch (node.kind) {
      case "char":
        return this.add({ op: "char", set: this.#set(node.source) });
      case "assert":
        return this.add({ op: "assert", what: node.what });
      case "sequence":
        return node.of.forEach((each) => this.emit(each));
      case "choice":
        return this.#emitChoice(node.of);
      case "repeat":
        return this.#emitRepeat(node.node, node.min, node.max);
    }
  }

  #emitChoice(choices: PatternNode[]): void {
    const fork: number[] = [];
    const exits: number[][] = [];
    this.add({ op: "split", to: fork });
    for (const choice of choices) {
      fork.push(this.instructions.length);
      this.emit(choice);
      const exit: number[] = [];
      exits.push(exit);
      this.add({ op: "split", to: exit });
    }
    for (const exit of exits) exit.push(this.instructions.length);
  }

  #emitRepeat(node: PatternNode, min: number, max: number): void {
    for (let i = 0; i < min; i++) {
      const before = this.instructions.length;
      this.emit(node);
      if (this.instructions.length === before) return; // nothing, however often it is repeated
    }
    if (max === Infinity) {
      const fork = [this.instructions.length + 1];
      const start = this.instructions.length;
      this.add({ op: "split", to: fork });
      this.emit(node);
      this.add({ op: "split", to: [start] });
      fork.push(this.instructions.length);
      return;
    }
    const forks: number[][] = [];
    for (let i = min; i < max; i++) {
      const fork = [this.instructions.length + 1];
      forks.push(fork);
      this.add({ op: "split", to: fork });
      this.emit(node);
    }
    for (const fork of forks) fork.push(this.instructions.length);
  }

  #set(source: string): number {
    // A brace or bracket that stands for itself may not stand alone.
    const literal = /^[{}\]]$/.test(source) ? `\\${source}` : source;
    const known = this.sets.get(literal) ?? this.sets.size;
    this.sets.set(literal, known);
    return known;
  }
}
