import { flanks, parseInline } from "./inline.ts";

/** Characters that are held back for a mark that might still be closed; then it counts as text. */
const MAX_HELD = 1000;

/**
 * The text of one block, handed on as soon as nothing that may follow changes how it is set: word by
 * word, and as a whole from an opening mark to the closing one.
 */
export class InlineStream {
  readonly #emit: (text: string, marks: number) => void;
  #held = "";
  /** The character in front of what is held, and the one in front of the run below. */
  #before = "";
  #previous = "";
  #run = { char: "", length: 0 };
  #escaped = false;
  /** Length of the run of backticks that code began with. */
  #code = 0;
  #open: { char: string; length: number }[] = [];
  #brackets = 0;
  #closedBracket = false;
  /** Parentheses that are open in a link's address. */
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

  /** A line ends here; what is not open is handed on. */
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

  /** Closes what the same character has opened; returns how much of the run is left. */
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
