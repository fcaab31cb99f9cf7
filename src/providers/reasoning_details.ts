type Detail = Record<string, unknown>;

/**
 * The blocks of reasoning that a gateway streams beside its text, put together: some models behind it take
 * the results of tools only with their own blocks, signatures included, sent back as they came.
 */
export class ReasoningDetails {
  readonly #blocks: Detail[] = [];

  /** Adds the blocks, or the pieces of one, that a chunk brought. */
  push(details: unknown): void {
    if (!Array.isArray(details)) return;
    for (const detail of details) {
      if (typeof detail !== "object" || detail === null) continue;
      const last = this.#blocks.at(-1);
      if (last !== undefined && goesOn(last, detail)) merge(last, detail);
      else this.#blocks.push({ ...detail });
    }
  }

  /** Undefined when there were none. */
  get blocks(): Detail[] | undefined {
    return this.#blocks.length > 0 ? this.#blocks : undefined;
  }
}

/** What arrives in pieces; a block of any other kind comes whole. */
const PIECES: Record<string, string> = { "reasoning.text": "text", "reasoning.summary": "summary" };

function goesOn(last: Detail, next: Detail): boolean {
  return next.type === last.type && next.index === last.index && String(next.type) in PIECES;
}

function merge(block: Detail, piece: Detail): void {
  const text = PIECES[String(block.type)]!;
  const whole = `${block[text] ?? ""}${piece[text] ?? ""}`;
  for (const [key, value] of Object.entries(piece)) {
    if (value !== null && value !== undefined) block[key] = value;
  }
  block[text] = whole;
}
