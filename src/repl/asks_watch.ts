import type { AskStore } from "../asks/store.ts";
import type { Io } from "../commands/io.ts";
import { oneLine } from "../platform/terminal.ts";

/** Tells of parked asks (specification 2.7): how many there are at first, then each that is new. */
export class AsksWatch {
  readonly #asks: AskStore;
  readonly #io: Pick<Io, "note">;
  #stamp = "";
  #known: Set<number> | undefined;

  constructor(asks: AskStore, io: Pick<Io, "note">) {
    this.#asks = asks;
    this.#io = io;
  }

  /** Looks, if the file has changed since. */
  look(): void {
    const stamp = this.#changed();
    if (stamp === this.#stamp) return;
    this.#stamp = stamp;
    const pending = this.#asks.list("pending");
    const before = this.#known;
    this.#known = new Set(pending.map(({ id }) => id));
    if (before === undefined) {
      const waiting = pending.length === 1
        ? "1 question waits"
        : `${pending.length} questions wait`;
      if (pending.length > 0) this.#io.note(`${waiting} for your answer: /asks`);
      return;
    }
    for (const { id, question, origin } of pending) {
      if (before.has(id)) continue;
      this.#io.note(`Ask #${id} (session ${origin}): ${oneLine(question)}`);
      this.#io.note(`Answer it with: /asks answer ${id} <text>`);
    }
  }

  /** Changes with the file; looking costs no reading. */
  #changed(): string {
    try {
      const { mtime, size } = Deno.statSync(this.#asks.path);
      return `${mtime?.getTime()} ${size}`;
    } catch {
      return "";
    }
  }
}
