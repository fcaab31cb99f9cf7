/** What may stand at the cursor: each candidate replaces `line[from..cursor]`. */
export interface Completion {
  from: number;
  candidates: Candidate[];
}

/** A text that ends with a blank, `/`, `:` or `=` is only the beginning of what is meant. */
export interface Candidate {
  text: string;
  /** Shown beside it. */
  description?: string;
}

export type Completer = (line: string, cursor: number) => Promise<Completion> | Completion;

/**
 * What Tab puts in the place of `typed`: the only candidate, or as much as all of them begin with.
 * Undefined where that is not more than was typed.
 */
export function completed(candidates: Candidate[], typed: string): string | undefined {
  const [first, ...others] = candidates.map(({ text }) => text);
  if (first === undefined) return undefined;
  if (others.length === 0) {
    const whole = /[\s/:=]$/.test(first) ? first : first + " ";
    return whole === typed ? undefined : whole;
  }
  const common = others.reduce(commonStart, first);
  const longer = common.length > typed.length &&
    common.toLowerCase().startsWith(typed.toLowerCase());
  return longer ? common : undefined;
}

function commonStart(one: string, other: string): string {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  if (/[\ud800-\udbff]$/.test(one.slice(0, length))) length--;
  return one.slice(0, length);
}
