import { type Candidate, menuRows } from "./completion.ts";
import { begin, clear, type Edited, insert, press } from "./editor.ts";
import type { KeySource } from "./keyboard.ts";
import type { Key } from "./keys.ts";
import type { TerminalPort } from "./terminal.ts";
import type { Widths } from "./text.ts";
import { layOut, View } from "./view.ts";

/** A row of a list to choose from. */
export interface PickItem extends Candidate {
  value: string;
}

export interface PickOptions {
  prompt: string;
  /** The rows that match what was typed. */
  items(typed: string): PickItem[];
  /** Tab: shows or hides the rows that belong to one. */
  toggle?(value: string): void;
  signal?: AbortSignal;
}

/** A list below a line: typing filters it, arrows move in it, Enter takes a row. */
export class Picker {
  readonly #port: TerminalPort;
  readonly #keys: KeySource;
  readonly #widths: Widths;
  readonly #view: View;
  readonly #options: PickOptions;
  #edited: Edited = begin("", []);
  #items: PickItem[];
  #chosen = 0;

  constructor(
    { port, keys, widths }: { port: TerminalPort; keys: KeySource; widths: Widths },
    options: PickOptions,
  ) {
    this.#port = port;
    this.#keys = keys;
    this.#widths = widths;
    this.#view = new View(widths);
    this.#options = options;
    this.#items = options.items("");
  }

  /** @returns the value of the row; undefined when none was taken */
  async run(): Promise<string | undefined> {
    await this.#draw();
    while (true) {
      const next = await this.#keys.next();
      const left = next.type === "end" || next.type === "interrupted" ||
        (next.type === "key" && LEAVES.includes(next.name));
      if (left || (next.type === "key" && next.name === "enter")) {
        this.#port.write(this.#view.erase());
        return left ? undefined : this.#items[this.#chosen]?.value;
      }
      this.#take(next);
      if (!this.#keys.waiting) await this.#draw();
    }
  }

  announce(text: string): void {
    this.#port.write(this.#view.erase() + text);
    this.redraw();
  }

  resized(): void {
    this.#port.write(this.#view.eraseResized(this.#port.size().columns));
    this.redraw();
  }

  resumed(): void {
    this.#view.forget();
    this.redraw();
  }

  redraw(): void {
    const { columns, rows } = this.#port.size();
    const { text, cursor } = this.#edited;
    const { prompt } = this.#options;
    const widths = this.#widths;
    const frame = layOut({ prompt, text, cursor, continuation: "", columns, widths });
    const room = Math.max(1, rows - frame.rows.length - 1);
    const below = menuRows(this.#items, this.#chosen, columns, room, widths);
    this.#port.write(this.#view.draw({ ...frame, below }, rows));
  }

  #take(key: Key): void {
    if (key.type !== "key") {
      this.#filter(insert(this.#edited, key.text.replaceAll("\n", " ")));
      return;
    }
    const last = this.#items.length - 1;
    switch (key.name) {
      case "up":
      case "ctrl-p":
        this.#chosen = Math.max(0, this.#chosen - 1);
        break;
      case "down":
      case "ctrl-n":
        this.#chosen = Math.max(0, Math.min(last, this.#chosen + 1));
        break;
      case "tab": {
        const value = this.#items[this.#chosen]?.value;
        if (value === undefined) break;
        this.#options.toggle?.(value);
        this.#items = this.#options.items(this.#edited.text);
        break;
      }
      case "ctrl-u":
        this.#filter(clear(this.#edited));
        break;
      default:
        this.#filter(press(this.#edited, key.name) ?? this.#edited);
    }
  }

  #filter(edited: Edited): void {
    const changed = edited.text !== this.#edited.text;
    this.#edited = edited;
    if (!changed) return;
    this.#items = this.#options.items(edited.text);
    this.#chosen = 0;
  }

  async #draw(): Promise<void> {
    const shown = this.#items.map(({ text, description = "" }) => text + description).join("");
    await this.#widths.ready(this.#options.prompt + this.#edited.text + shown);
    this.redraw();
  }
}

/** Keys that take nothing. */
const LEAVES = ["escape", "ctrl-c", "ctrl-d", "ctrl-g"];
