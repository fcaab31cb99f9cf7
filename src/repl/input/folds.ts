/** Noncharacters of Unicode, of which none is ever typed: each stands for one folded paste. */
const FIRST = 0xfdd0;
const COUNT = 32;
const FOLD = /[\ufdd0-\ufdef]/;
const FOLDS = /[\ufdd0-\ufdef]/g;

const LINES_SHOWN = 10;
const CHARACTERS_SHOWN = 1500;

/** Long pastes of one read: a single character in the edited text, shown as what it stands for. */
export class Folds {
  readonly #texts: string[] = [];

  /** The text to insert for a paste: itself, or the character that stands for it. */
  fold(paste: string): string {
    const long = paste.length > CHARACTERS_SHOWN || lineCount(paste) > LINES_SHOWN;
    if (!long || this.#texts.length === COUNT) return paste;
    this.#texts.push(paste);
    return String.fromCharCode(FIRST + this.#texts.length - 1);
  }

  /** The text with every paste in full. */
  unfold(text: string): string {
    return text.replace(FOLDS, (character) => this.#of(character) ?? "");
  }

  /** How a character is shown, when it stands for a paste. */
  label(character: string): string | undefined {
    if (!FOLD.test(character[0] ?? "")) return undefined;
    const paste = this.#of(character[0]!);
    if (paste === undefined) return undefined;
    const lines = lineCount(paste);
    return lines > 1 ? `[pasted ${lines} lines]` : `[pasted ${paste.length} characters]`;
  }

  #of(character: string): string | undefined {
    return this.#texts[character.charCodeAt(0) - FIRST];
  }
}

function lineCount(text: string): number {
  return text.replace(/\n$/, "").split("\n").length;
}
