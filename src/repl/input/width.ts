/**
 * How many cells a character takes. The tables for wide and combining characters cost 20 ms to load, so
 * they are only when the first character comes that needs them.
 */
export class Widths {
  readonly #known = new Map<string, number>();
  #measure: ((text: string) => number) | undefined;

  /** Loads the tables if the text needs them and they are not there yet. */
  ready(text: string): Promise<void> | undefined {
    return this.#measure !== undefined || !UNUSUAL.test(text) ? undefined : this.#load();
  }

  /** The cells of one character as a person sees it; `ready` was asked about it. */
  of(character: string): number {
    if (!UNUSUAL.test(character)) return character.length;
    let width = this.#known.get(character);
    if (width === undefined) {
      if (this.#known.size > KNOWN_KEPT) this.#known.clear();
      width = this.#measure?.(character) ?? 1;
      this.#known.set(character, width);
    }
    return width;
  }

  async #load(): Promise<void> {
    this.#measure = (await import("string-width")).default;
  }
}

const KNOWN_KEPT = 5000;

/**
 * All but Latin, Greek, Cyrillic, common punctuation and what prompts are made of (one cell each), and
 * the control characters of their colours.
 */
const UNUSUAL =
  // deno-lint-ignore no-control-regex
  /[^\x00-\x7e\xa1-\xac\xae-\u02ff\u0391-\u03a9\u03b1-\u03c9\u0400-\u0482\u2010-\u2027\u2030-\u205e\u2500-\u259f\u276f]/;
