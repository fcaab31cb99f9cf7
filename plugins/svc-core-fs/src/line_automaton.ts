import type { LineProgram } from "./line_program.ts";

/** Searches one line after the other, each in as many slices as its caller likes. */
export interface LineAutomaton {
  /** Takes up the line of `text` from `from` until before `to`. */
  begin(text: string, from: number, to: number): void;
  /**
   * Goes on for about so many steps, of a few nanoseconds each. Returns where the earliest match ends, -1
   * when there is none, or undefined when that is still open.
   */
  advance(steps: number): number | undefined;
}

/**
 * Follows all the ways a line could match at once, instead of one after the other, so that the time is
 * proportional to the line. Sets of ways that were met once are remembered, with what each character
 * made of them, up to a limit.
 *
 * Workers get this function as text, so nothing outside of it may be used.
 */
export function lineAutomaton({ instructions, sets, flags }: LineProgram): LineAutomaton {
  const MAX_STATES = 1024;
  const [UNKNOWN, MATCH, START] = [0, -1, 1];
  /** What came before: nothing, a character of a word, or another. */
  const [FIRST, WORD, OTHER] = [0, 1, 2];
  /** The class of characters that the end of a line is. */
  const END = 1;

  const tests = sets.map((source) => new RegExp(`^(?:${source})$`, flags));
  const asserts = instructions.some(({ op }) => op === "assert");
  /** The class of each character; those of one class are in the same sets. */
  const classes = new Uint16Array(65536);
  const classOf = new Map<string, number>();
  /** By class, its sets and whether it is of words. */
  const members: boolean[][] = [[], []];
  const words: boolean[] = [false, false];
  /** By state, where its ways stand before what may be passed without a character, and what came before. */
  let ways: number[][] = [];
  let before: number[] = [];
  let stateOf = new Map<string, number>();
  /** By state and class, the state that follows. */
  let width = 32;
  let table = new Int32Array(MAX_STATES * width);
  const visited = new Uint32Array(instructions.length);
  let visit = 0;
  /** Steps that were taken beside the one for each character. */
  let taken = 0;
  let [text, at, to, state] = ["", 0, 0, START];

  const stateFor = (its: number[], prior: number): number => {
    const key = `${prior}:${its}`;
    let known = stateOf.get(key);
    if (known === undefined) {
      known = ways.push(its) - 1;
      before.push(prior);
      stateOf.set(key, known);
    }
    return known;
  };
  const forget = () => {
    ways = [[]]; // there is no state 0
    before = [FIRST];
    stateOf = new Map();
    table.fill(UNKNOWN);
    stateFor([], FIRST);
  };
  const classify = (code: number): number => {
    const char = String.fromCharCode(code);
    const within = tests.map((test) => test.test(char));
    const word = asserts && /\w/.test(char);
    const key = `${word}${within.map(Number).join("")}`;
    let known = classOf.get(key);
    if (known === undefined) {
      known = members.push(within) - 1;
      words.push(word);
      classOf.set(key, known);
    }
    taken += 20 * tests.length;
    return classes[code] = known;
  };
  const holds = (what: string, prior: number, next: number): boolean => {
    if (what === "^") return prior === FIRST;
    if (what === "$") return next === END;
    return (what === "\\b") === ((prior === WORD) !== words[next]);
  };
  const follow = (from: number, next: number): number => {
    const prior = before[from]!;
    const reached: number[] = [];
    const pending = [0, ...ways[from]!]; // a match may start at every position
    visit++;
    let looks = 0;
    for (; pending.length > 0; looks++) {
      const index = pending.pop()!;
      if (visited[index] === visit) continue;
      visited[index] = visit;
      const instruction = instructions[index]!;
      if (instruction.op === "match") {
        taken += 20 * looks;
        if (next < width) table[from * width + next] = MATCH;
        return MATCH;
      }
      if (instruction.op === "split") pending.push(...instruction.to);
      else if (instruction.op === "assert") {
        if (holds(instruction.what, prior, next)) pending.push(index + 1);
      } else if (members[next]![instruction.set]) reached.push(index + 1);
    }
    taken += 20 * (looks + reached.length) + 50;
    reached.sort((a, b) => a - b);
    const wider = members.length > width;
    if (wider || ways.length === MAX_STATES) {
      while (members.length > width) width *= 2;
      if (wider) table = new Int32Array(MAX_STATES * width);
      forget();
      taken += table.length / 16;
      return stateFor(reached, asserts ? (words[next] ? WORD : OTHER) : FIRST);
    }
    const found = stateFor(reached, asserts ? (words[next] ? WORD : OTHER) : FIRST);
    return table[from * width + next] = found;
  };
  forget();

  return {
    begin(of, from, end) {
      [text, at, to, state] = [of, from, end, START];
    },
    advance(steps) {
      // What the loop reads stands in variables of its own, which is several times faster.
      const line = text;
      let now = state;
      let i = at;
      for (let left = steps; i < to; i++) {
        if (left-- <= 0) {
          [at, state] = [i, now];
          return undefined;
        }
        const code = line.charCodeAt(i);
        const next = classes[code]!;
        // A class that is new may lie beyond the table, where a number of another state would be read.
        let after = next !== UNKNOWN && next < width ? table[now * width + next]! : UNKNOWN;
        if (after === UNKNOWN) {
          const earlier = taken;
          after = follow(now, next || classify(code));
          left -= taken - earlier;
        }
        if (after === MATCH) return i;
        now = after;
      }
      return (table[now * width + END] || follow(now, END)) === MATCH ? i : -1;
    },
  };
}
