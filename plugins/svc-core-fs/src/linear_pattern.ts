import { type LineAutomaton, lineAutomaton } from "./line_automaton.ts";
import { type LineProgram, lineProgram } from "./line_program.ts";
import { longestLiteral, patternTree } from "./pattern_tree.ts";

/** Steps after which a search asks whether others are due: about a millisecond. */
export const SLICE_STEPS = 100_000;

/**
 * A regular expression matched in time proportional to the line. It says where the earliest match ends,
 * for which greed does not matter. Back-references and look-around cannot be matched this way.
 */
export class LinearPattern {
  readonly program: LineProgram;
  /** Text that every match contains, or empty: looking for it first spares most lines the rest. */
  readonly #literal: string;
  #automaton: LineAutomaton | undefined;

  /**
   * @param source a pattern that `RegExp` has accepted.
   * @throws Error a sentence, for a pattern that cannot be matched in linear time.
   */
  constructor(source: string, flags: string) {
    const tree = patternTree(source);
    this.#literal = flags.includes("i") ? "" : longestLiteral(tree);
    this.program = lineProgram(tree, flags);
  }

  /** The column where the earliest match ends, or -1; a slice of the work for each step. */
  *search(line: string): Generator<void, number> {
    if (!line.includes(this.#literal)) return -1;
    this.#automaton ??= lineAutomaton(this.program);
    const automaton = this.#automaton;
    automaton.begin(line, 0, line.length);
    for (;;) {
      const column = automaton.advance(SLICE_STEPS);
      if (column !== undefined) return column;
      yield;
    }
  }
}
