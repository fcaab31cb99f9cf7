const NEWLINE = 10;
/** Characters of a line that are shown. */
const MAX_LINE = 2000;
/** Bytes of a line that are kept: enough for MAX_LINE characters of UTF-8. */
const MAX_BYTES = MAX_LINE * 4;

/**
 * Counts the lines and characters of a UTF-8 text that arrives in chunks, and keeps the lines from
 * `offset` (1-based), at most `limit` of them and about `budget` characters. Nothing else is held.
 */
export class LineWindow {
  readonly lines: string[] = [];
  /** Characters (code points) seen. */
  total_chars = 0;
  /** True when the window ended because of the budget. */
  over_budget = false;
  readonly #offset: number;
  readonly #limit: number;
  #budget: number;
  #newlines = 0;
  #lastByte = NEWLINE;
  /** Number of the line being gathered, its bytes so far, and how many it really has. */
  #line = 1;
  #bytes: Uint8Array[] = [];
  #kept = 0;
  #length = 0;

  constructor(offset: number, limit: number, budget: number) {
    this.#offset = offset;
    this.#limit = limit;
    this.#budget = budget;
  }

  /** True when no further line will be kept. */
  get full(): boolean {
    return this.over_budget || this.lines.length >= this.#limit;
  }

  /** Bytes held of the line that is being gathered. */
  get bytes_held(): number {
    return this.#kept;
  }

  get total_lines(): number {
    return this.#newlines + (this.#lastByte === NEWLINE ? 0 : 1);
  }

  add(chunk: Uint8Array): void {
    if (!this.full) this.#gather(chunk);
    let chars = 0;
    let newlines = 0;
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i]!;
      if ((byte & 0xc0) !== 0x80) chars++; // every byte but the continuation bytes of UTF-8
      if (byte === NEWLINE) newlines++;
    }
    this.total_chars += chars;
    this.#newlines += newlines;
    this.#lastByte = chunk.at(-1) ?? this.#lastByte;
  }

  /** Says that the text has ended, perhaps without a newline. */
  end(): void {
    if (this.#length > 0 && !this.full) this.#finishLine();
  }

  #gather(chunk: Uint8Array): void {
    let start = 0;
    while (!this.full) {
      const newline = chunk.indexOf(NEWLINE, start);
      this.#keep(chunk.subarray(start, newline === -1 ? chunk.length : newline));
      if (newline === -1) return;
      this.#finishLine();
      start = newline + 1;
    }
  }

  #keep(piece: Uint8Array): void {
    this.#length += piece.length;
    const room = MAX_BYTES - this.#kept;
    if (this.#line < this.#offset || room <= 0 || piece.length === 0) return;
    const kept = piece.slice(0, room); // a copy: the caller's buffer is used again
    this.#bytes.push(kept);
    this.#kept += kept.length;
  }

  #finishLine(): void {
    if (this.#line >= this.#offset) this.#show(this.#text());
    this.#line++;
    this.#bytes = [];
    this.#kept = 0;
    this.#length = 0;
  }

  #show(text: string): void {
    this.#budget -= text.length + String(this.#line).length + 2;
    if (this.#budget < 0 && this.lines.length > 0) this.over_budget = true;
    else this.lines.push(text);
  }

  #text(): string {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    let text = "";
    for (const piece of this.#bytes) text += decoder.decode(piece, { stream: true });
    if (this.#length <= MAX_BYTES) text += decoder.decode();
    if (this.#line === 1 && text.startsWith("\ufeff")) text = text.slice(1);
    if (text.endsWith("\r")) text = text.slice(0, -1);
    if (text.length <= MAX_LINE && this.#length <= MAX_BYTES) return text;
    return `${text.slice(0, MAX_LINE).toWellFormed()}… (line cut, it has ${this.#length} bytes)`;
  }
}
