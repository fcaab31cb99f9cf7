import assert from "node:assert/strict";
import type { TerminalPort } from "../../../src/repl/input/terminal.ts";
import { Screen } from "../../support/screen.ts";

/** A terminal in memory: what is typed by the test, and a screen that shows what is written. */
export class FakePort implements TerminalPort {
  readonly screen: Screen;
  readonly suspended = Promise.withResolvers<void>();
  written = "";
  raw = false;
  #typed: (Uint8Array | null)[] = [];
  #wake: () => void = () => {};
  #written: () => void = () => {};
  #resize: Set<() => void> = new Set();
  #resume: Set<() => void> = new Set();
  #continue: () => void = () => {};

  constructor(readonly isTerminal = true, columns = 40, rows = 10) {
    this.screen = new Screen(columns, rows);
  }

  type(...pieces: (string | Uint8Array)[]): void {
    for (const piece of pieces) {
      this.#typed.push(typeof piece === "string" ? new TextEncoder().encode(piece) : piece);
    }
    this.#wake();
  }

  end(): void {
    this.#typed.push(null);
    this.#wake();
  }

  async read(): Promise<Uint8Array | null> {
    while (this.#typed.length === 0) await new Promise<void>((resolve) => this.#wake = resolve);
    return this.#typed.shift()!;
  }

  write(text: string): void {
    this.written += text;
    this.screen.write(text);
    this.#written();
  }

  size(): { columns: number; rows: number } {
    return { columns: this.screen.columns, rows: this.screen.height };
  }

  setRaw(on: boolean): void {
    this.raw = on;
  }

  onResize(handler: () => void): () => void {
    this.#resize.add(handler);
    return () => this.#resize.delete(handler);
  }

  onResume(handler: () => void): () => void {
    this.#resume.add(handler);
    return () => this.#resume.delete(handler);
  }

  suspend(): Promise<void> {
    this.suspended.resolve();
    return new Promise((resolve) => this.#continue = resolve);
  }

  /** The process goes on, as after `fg`. */
  continue(): void {
    for (const handler of this.#resume) handler();
    this.#continue();
  }

  resize(columns: number, rows: number): void {
    this.screen.resize(columns, rows);
    for (const handler of this.#resize) handler();
  }

  /** Waits until the screen shows exactly these rows, and the cursor in this column of its row. */
  async shows(rows: string[], cursor?: [row: number, column: number]): Promise<void> {
    const text = rows.join("\n");
    const there = () =>
      this.screen.text() === text &&
      (cursor === undefined || (this.screen.cursor.row === cursor[0] &&
        this.screen.cursor.column === cursor[1]));
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, 3000);
    while (!there()) {
      const more = new Promise<boolean>((resolve) => this.#written = () => resolve(true));
      if (!await Promise.race([more, late.promise.then(() => false)])) break;
    }
    clearTimeout(timer);
    assert.equal(this.screen.text(), text);
    if (cursor !== undefined) {
      assert.deepEqual(this.screen.cursor, { row: cursor[0], column: cursor[1] });
    }
    assert.deepEqual(this.screen.unknown, []);
  }
}
