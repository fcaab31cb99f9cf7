import { type Candidate, menuRows } from "./completion.ts";
import { begin, clear, type Edited, insert, press } from "./editor.ts";
import type { Key } from "./keys.ts";
import type { EditorContext } from "./line_editor.ts";
import { layOut } from "./view.ts";

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
  readonly #context: EditorContext;
  readonly #options: PickOptions;
  #edited: Edited = begin("", []);
  #items: PickItem[];
  #chosen = 0;

  constructor(context: EditorContext, options: PickOptions) {
    this.#context = context;
    this.#options = options;
    this.#items = options.items("");
  }

  /** @returns the value of the row; undefined when none was taken */
  async run(): Promise<string | undefined> {
    const { keys, surface } = this.#context;
    await this.#draw();
    while (true) {
      const next = await keys.next();
      const left = next.type === "end" || next.type === "interrupted" ||
        (next.type === "key" && LEAVES.includes(next.name));
      if (left || (next.type === "key" && next.name === "enter")) {
        surface.above("");
        return left ? undefined : this.#items[this.#chosen]?.value;
      }
      this.#take(next);
      if (!keys.waiting) await this.#draw();
    }
  }

  /** Draws the current state. */
  redraw(): void {
    const { port, surface, widths } = this.#context;
    const { columns, rows } = port.size();
    const { text, cursor } = this.#edited;
    const { prompt } = this.#options;
    const frame = layOut({ prompt, text, cursor, continuation: "", columns, widths });
    const room = Math.max(1, rows - frame.rows.length - 1);
    surface.draw({ ...frame, below: menuRows(this.#items, this.#chosen, columns, room, widths) });
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
    await this.#context.widths.ready(this.#options.prompt + this.#edited.text + shown);
    this.redraw();
  }
}

/** Keys that take nothing. */
const LEAVES = ["escape", "ctrl-c", "ctrl-d", "ctrl-g"];
