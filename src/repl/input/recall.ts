/** Going back and forth in the history with the arrow keys; what was changed on the way is kept. */
export class Recall {
  readonly #drafts = new Map<number, string>();
  #at: number | undefined;

  /** The text one step older (-1) or newer (1) than `current`; undefined at the end. */
  step(entries: readonly string[], by: -1 | 1, current: string): string | undefined {
    const at = this.#at ?? entries.length;
    const next = at + by;
    if (next < 0 || next > entries.length) return undefined;
    this.#drafts.set(at, current);
    this.#at = next;
    return this.#drafts.get(next) ?? entries[next] ?? "";
  }
}
