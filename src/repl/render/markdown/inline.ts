/** Marks of a piece of text, as bits. */
export const MARK = {
  bold: 1,
  italic: 2,
  strike: 4,
  code: 8,
  link: 16,
  address: 32,
  title: 64,
} as const;

/** A piece of text and its `MARK`s. */
export interface Chunk {
  text: string;
  marks: number;
}

interface Item extends Chunk {
  /** A run of `*`, `_` or `~` that may begin or end emphasis. */
  run?: { char: string; length: number; left: number; opens: boolean; closes: boolean };
  /** An opening bracket that a link may begin with. */
  bracket?: boolean;
}

/**
 * Parses emphasis, code, links and escapes; unclosed marks stay literal.
 *
 * @param before the preceding character
 */
export function parseInline(text: string, before: string): Chunk[] {
  const items: Item[] = [];
  const literal = (text: string, marks = 0) => items.push({ text, marks });
  for (let at = 0; at < text.length;) {
    const char = text[at]!;
    const previous = at === 0 ? before : lastCharacter(text.slice(Math.max(0, at - 2), at));
    if (char === "`") {
      const ticks = match(/`+/y, text, at)![0];
      const end = closingTicks(text, at + ticks.length, ticks.length);
      if (end < 0) literal(ticks);
      else literal(codeText(text.slice(at + ticks.length, end)), MARK.code);
      at = end < 0 ? at + ticks.length : end + ticks.length;
    } else if (char === "*" || char === "_" || char === "~") {
      const run = match(/(.)\1*/y, text, at)![0];
      at += run.length;
      const { opens, closes } = flanks(char, previous, characterAt(text, at));
      const counts = char !== "~" || run.length === 2;
      if (!counts || !(opens || closes)) literal(run);
      else {
        const length = run.length;
        items.push({ text: "", marks: 0, run: { char, length, left: length, opens, closes } });
      }
    } else if (char === "[" || (char === "!" && text[at + 1] === "[")) {
      const bracket = char === "[" ? "[" : "![";
      items.push({ text: bracket, marks: 0, bracket: true });
      at += bracket.length;
    } else if (char === "]") {
      const link = match(DESTINATION, text, at + 1);
      if (!closeLink(items, link?.[1])) literal("]");
      else at += link!.length === 0 ? 0 : link![0].length;
      at++;
    } else {
      const special = match(ESCAPE, text, at) ?? match(AUTOLINK, text, at) ??
        match(ENTITY, text, at);
      if (special === null) {
        const plain = match(/[^]([^`*_~[\]!\\<&]*)/y, text, at)![0];
        literal(plain);
        at += plain.length;
      } else {
        if (char === "\\") literal(special[1]!);
        else if (char === "<") literal(special[1]!, MARK.link);
        else literal(ENTITIES[special[1]!]!);
        at += special[0].length;
      }
    }
  }
  emphasize(items);
  return items.map(({ text, marks, run }) => ({
    text: run ? run.char.repeat(run.left) : text,
    marks,
  }))
    .filter(({ text }) => text !== "");
}

/** Whether a run of emphasis marks can open or close emphasis, by its neighbours. */
export function flanks(
  char: string,
  before: string,
  after: string,
): { opens: boolean; closes: boolean } {
  const [space, spaceAfter] = [SPACE.test(before), SPACE.test(after)];
  const [mark, markAfter] = [PUNCTUATION.test(before), PUNCTUATION.test(after)];
  const left = !spaceAfter && (!markAfter || space || mark);
  const right = !space && (!mark || spaceAfter || markAfter);
  if (char !== "_") return { opens: left, closes: right };
  return { opens: left && (!right || mark), closes: right && (!left || markAfter) };
}

const SPACE = /^\s?$/;
const PUNCTUATION = /^[\p{P}\p{S}]/u;
const ESCAPE = /\\([!-/:-@[-`{-~]|\n)/y;
const AUTOLINK = /<([a-z][a-z0-9+.-]{1,31}:[^\s<>]*|[^\s<>@]+@[^\s<>]+)>/iy;
const DESTINATION =
  /\(\s*(<[^<>\n]*>|[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)(?:\s+(?:"[^"]*"|'[^']*'|\([^()]*\)))?\s*\)/y;
const ENTITY = /&(amp|lt|gt|quot|apos|nbsp|#39);/y;
const ENTITIES: Record<string, string> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  "#39": "'",
};

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function lastCharacter(text: string): string {
  return [...text].at(-1) ?? "";
}

function characterAt(text: string, at: number): string {
  const code = text.codePointAt(at);
  return code === undefined ? "" : String.fromCodePoint(code);
}

function closingTicks(text: string, from: number, length: number): number {
  for (const run of text.slice(from).matchAll(/`+/g)) {
    if (run[0].length === length) return from + run.index;
  }
  return -1;
}

/** One space on both sides is not part of the code. */
function codeText(text: string): string {
  const line = text.replaceAll("\n", " ");
  return /^ .*[^ ].* $/.test(line) ? line.slice(1, -1) : line;
}

/** Turns the text after the last bracket into a link. */
function closeLink(items: Item[], destination: string | undefined): boolean {
  const start = items.findLastIndex(({ bracket }) => bracket);
  if (start < 0) return false;
  const bracket = items[start]!;
  bracket.bracket = false;
  if (destination === undefined) return false;
  const address = destination.replace(/^<|>$/g, "").replace(/\\([!-/:-@[-`{-~])/g, "$1");
  bracket.text = "";
  const inside = items.splice(start + 1);
  emphasize(inside);
  for (const item of inside) {
    const text = item.run ? item.run.char.repeat(item.run.left) : item.text;
    items.push({ text, marks: item.marks | MARK.link });
  }
  const shown = items.slice(start + 1).map(({ text }) => text).join("");
  if (shown === "") items.push({ text: address, marks: MARK.link });
  else if (address !== shown && address !== "") {
    items.push({ text: ` (${address})`, marks: MARK.address });
  }
  return true;
}

/** Pairs runs of emphasis marks and marks the text between them. */
function emphasize(items: Item[]): void {
  const runs = items.flatMap(({ run }, index) => run === undefined ? [] : [{ ...run, run, index }]);
  for (let closer = 0; closer < runs.length; closer++) {
    const closing = runs[closer]!;
    while (closing.closes && closing.run.left > 0) {
      let opener = closer - 1;
      while (opener >= 0 && !pairs(runs[opener]!.run, closing.run)) opener--;
      if (opener < 0) break;
      const opening = runs[opener]!;
      const used = closing.run.left > 1 && opening.run.left > 1 ? 2 : 1;
      const mark = closing.char === "~" ? MARK.strike : used === 2 ? MARK.bold : MARK.italic;
      for (let at = opening.index + 1; at < closing.index; at++) items[at]!.marks |= mark;
      for (const between of runs.slice(opener + 1, closer)) between.run.opens = false;
      opening.run.left -= used;
      closing.run.left -= used;
    }
  }
}

function pairs(opener: NonNullable<Item["run"]>, closer: NonNullable<Item["run"]>): boolean {
  if (opener.char !== closer.char || !opener.opens || opener.left === 0) return false;
  if (!opener.closes && !closer.opens) return true;
  const sum = opener.length + closer.length;
  return sum % 3 !== 0 || (opener.length % 3 === 0 && closer.length % 3 === 0);
}

/** Characters buffered for an unclosed mark; beyond that it counts as text. */
const MAX_HELD = 1000;

/**
 * Streams the text of one block: plain words are passed on at once, text between an opening and a
 * closing mark as a whole.
 */
export class InlineStream {
  readonly #emit: (text: string, marks: number) => void;
  #held = "";
  /** The character before the buffered text, and the one before the run below. */
  #before = "";
  #previous = "";
  #run = { char: "", length: 0 };
  #escaped = false;
  /** Length of the backtick run that opened a code span. */
  #code = 0;
  #open: { char: string; length: number }[] = [];
  #brackets = 0;
  #closedBracket = false;
  /** Open parentheses in a link's address. */
  #address = 0;

  constructor(emit: (text: string, marks: number) => void) {
    this.#emit = emit;
  }

  /** Takes one character. */
  feed(character: string): void {
    if (character !== this.#run.char) this.#endRun(character);
    this.#held += character;
    this.#scan(character);
    if (this.#run.length === 0) this.#previous = character;
    const boundary = /\s/.test(character) || CJK.test(character);
    if ((boundary && this.#settled()) || this.#held.length > MAX_HELD) this.#flush();
  }

  /** Ends a line and passes on text that is not inside an open mark. */
  boundary(): void {
    this.#endRun("\n");
    if (this.#settled()) this.#flush();
  }

  /** The block ends here. */
  end(): void {
    this.#flush();
    this.#before = this.#previous = "";
  }

  #scan(character: string): void {
    if (this.#escaped) {
      this.#escaped = false;
      return;
    }
    const marks = this.#code > 0 ? "`" : "`*_~";
    if (marks.includes(character)) {
      this.#run = { char: character, length: this.#run.length + 1 };
      return;
    }
    if (this.#code > 0) return;
    const behindBracket = this.#closedBracket;
    this.#closedBracket = false;
    if (character === "\\") this.#escaped = true;
    else if (this.#address > 0) {
      if (character === "(") this.#address++;
      else if (character === ")") this.#address--;
    } else if (character === "(" && behindBracket) this.#address = 1;
    else if (character === "[") this.#brackets++;
    else if (character === "]" && this.#brackets > 0) {
      this.#brackets--;
      this.#closedBracket = true;
    }
  }

  #endRun(next: string): void {
    const { char, length } = this.#run;
    if (length === 0) return;
    this.#run = { char: "", length: 0 };
    this.#closedBracket = false;
    if (char === "`") {
      if (this.#code === 0) this.#code = length;
      else if (this.#code === length) this.#code = 0;
    } else if (char !== "~" || length === 2) {
      const { opens, closes } = flanks(char, this.#previous, next);
      const left = closes ? this.#close(char, length) : length;
      if (opens && left > 0) this.#open.push({ char, length: left });
    }
    this.#previous = char;
  }

  /** Closes emphasis opened by the same character; returns the remaining length of the run. */
  #close(char: string, length: number): number {
    while (length > 0) {
      const index = this.#open.findLastIndex((run) => run.char === char);
      if (index < 0) break;
      const run = this.#open[index]!;
      const used = Math.min(run.length, length);
      length -= used;
      run.length -= used;
      this.#open.length = run.length > 0 ? index + 1 : index;
    }
    return length;
  }

  #settled(): boolean {
    return !this.#escaped && this.#code === 0 && this.#open.length === 0 &&
      this.#brackets === 0 && this.#address === 0 && this.#run.length === 0;
  }

  #flush(): void {
    for (const { text, marks } of parseInline(this.#held, this.#before)) this.#emit(text, marks);
    this.#before = [...this.#held.slice(-2)].at(-1) ?? this.#before;
    this.#previous = this.#before;
    this.#held = "";
    this.#run = { char: "", length: 0 };
    this.#open = [];
    this.#escaped = this.#closedBracket = false;
    this.#code = this.#brackets = this.#address = 0;
  }
}

/** Scripts without spaces between words: a line may be broken before each character. */
export const CJK =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3001\u3002\uff0c\uff1a]/u;
