import { type Completer, listFor, type Menu, menuRows, tab, tabAgain } from "./completion.ts";
import { begin, clear, type Edited, Folds, insert, moveLine, press, replaced } from "./editor.ts";
import { type History, NEW_SEARCH, Recall, type Search, searchKey } from "./history.ts";
import type { KeySource, Next } from "./keyboard.ts";
import type { Key } from "./keys.ts";
import { type Frame, type Laid, layOut, rowsOf, type Surface } from "./view.ts";
import { readBlock } from "./plain_lines.ts";
import type { TerminalPort } from "./terminal.ts";
import type { Widths } from "./text.ts";

/** How a read ended: with a message, by Ctrl-C on an empty line (or its signal), by Escape, or at the end of input. */
export type InputResult = { type: "line"; text: string } | {
  type: "interrupted" | "escaped" | "end";
};

export interface ReadOptions {
  /** Shown before the line; may contain colours (SGR sequences), which have no width. */
  prompt: string;
  complete?: Completer;
  /** Whether the message is added to the history. Default: true; hidden input never is. */
  remember?: boolean;
  /** Does not echo the input. */
  hidden?: boolean;
  /** Whether Escape ends the read. Default: pressed twice, it clears the line. */
  escapes?: boolean;
  /** Ignores keys typed before the question and keeps them for the next read; for confirmations. */
  fresh?: boolean;
  /** Ends the read as interrupted. */
  signal?: AbortSignal;
}

/** A message that is written during a turn, and what is shown around it. */
export interface MessageOptions extends Pick<ReadOptions, "prompt" | "complete"> {
  /** What an empty message is shown as. */
  placeholder(): string;
  /** The messages that wait to be sent, in rows for a width in cells; shown above the prompt. */
  waiting(columns: number): string[];
  /** Takes back the newest of them, to be edited. */
  takeBack(): string | undefined;
}

/** A message that is not sent yet. */
export interface Draft {
  readonly edited: Edited;
  readonly folds: Folds;
}

export interface EditorContext {
  port: TerminalPort;
  surface: Surface;
  keys: KeySource;
  history: History;
  widths: Widths;
  /** Texts cut by earlier reads, for Ctrl-Y. */
  killed: readonly string[];
  /** Suspends the process. */
  suspend(): Promise<void>;
  /** Ctrl-O: prints what was folded last. */
  unfold?(): void;
}

/** One read at a terminal: handles keys and draws the line until the message is complete. */
export class LineEditor {
  readonly #context: EditorContext;
  readonly #options: ReadOptions;
  readonly #message: MessageOptions | undefined;
  readonly #folds: Folds;
  readonly #recall = new Recall();
  #edited: Edited;
  #search: Search | undefined;
  #menu: Menu | undefined;
  /** The last key was Escape: the next one clears the line. */
  #escaped = false;

  /** @param message of a message that is written during a turn */
  constructor(
    context: EditorContext,
    options: ReadOptions,
    draft?: Draft,
    message?: MessageOptions,
  ) {
    this.#context = context;
    this.#options = options;
    this.#message = message;
    this.#folds = draft?.folds ?? new Folds();
    this.#edited = draft?.edited ?? begin("", options.hidden ? [] : context.killed);
  }

  /** The message as it is now; undefined when it is empty. */
  get draft(): Draft | undefined {
    return this.#edited.text === "" ? undefined : { edited: this.#edited, folds: this.#folds };
  }

  /** Cut texts, for the next read; none for hidden input. */
  get killed(): readonly string[] {
    return this.#options.hidden ? this.#context.killed : this.#edited.killed;
  }

  async run(): Promise<InputResult> {
    const { keys } = this.#context;
    await this.#draw();
    while (true) {
      const result = await this.#take(await keys.next());
      if (result !== undefined) {
        await this.#leave();
        return result;
      }
      if (!keys.waiting) await this.#draw();
    }
  }

  /** Draws the current state. */
  redraw(): void {
    this.#context.surface.draw(this.#frame());
  }

  async #take(next: Next): Promise<InputResult | undefined> {
    if (next.type === "end" || next.type === "interrupted") return next;
    const escaped = this.#escaped;
    this.#escaped = false;
    if (this.#search !== undefined && this.#searching(next)) return undefined;
    if (this.#menu !== undefined && await this.#choosing(next)) return undefined;
    if (next.type !== "key") return this.#type(next);
    if (next.name === "escape") return await this.#escape(escaped);
    return await this.#pressed(next.name);
  }

  #type(key: Exclude<Key, { type: "key" }>): undefined {
    if (this.#options.hidden) this.#edited = insert(this.#edited, key.text.replaceAll("\n", ""));
    else {
      const text = key.type === "paste" ? this.#folds.fold(key.text) : key.text;
      this.#edited = insert(this.#edited, text);
    }
  }

  async #pressed(name: string): Promise<InputResult | undefined> {
    switch (name) {
      case "enter":
        return this.#enter();
      case "ctrl-c":
        if (this.#edited.text === "" || this.#message) return { type: "interrupted" };
        this.#edited = clear(this.#edited);
        return undefined;
      case "ctrl-d":
        if (this.#edited.text === "") return { type: "end" };
        break;
      case "ctrl-l":
        this.#context.surface.clear();
        return undefined;
      case "ctrl-o":
        this.#context.unfold?.();
        return undefined;
      case "ctrl-z":
        this.#context.surface.leave();
        await this.#context.suspend();
        return undefined;
    }
    if (!this.#options.hidden && await this.#browse(name)) return undefined;
    this.#edited = press(this.#edited, name) ?? this.#edited;
    return undefined;
  }

  /** Escape ends the read, or clears the line at its second press; the history keeps what was in it. */
  async #escape(again: boolean): Promise<InputResult | undefined> {
    if (this.#options.escapes || this.#message) return { type: "escaped" };
    const { text } = this.#edited;
    this.#escaped = !again && text !== "";
    if (again && text !== "") {
      this.#edited = clear(this.#edited);
      const { hidden, remember = true } = this.#options;
      if (!hidden && remember) await this.#context.history.add(this.#folds.unfold(text));
    }
    return undefined;
  }

  /** Keys that fetch text: from the history or from completion. */
  async #browse(name: string): Promise<boolean> {
    switch (name) {
      case "up":
      case "ctrl-p":
        this.#vertical(-1);
        return true;
      case "down":
      case "ctrl-n":
        this.#vertical(1);
        return true;
      case "ctrl-r":
        this.#search = NEW_SEARCH;
        return true;
      case "tab":
        await this.#tab();
        return true;
      default:
        return false;
    }
  }

  #enter(): InputResult | undefined {
    const block = readBlock(this.#edited.text);
    if (!this.#options.hidden && block.open) {
      this.#edited = insert(this.#edited, "\n");
      return undefined;
    }
    const message = block.open || this.#options.hidden ? this.#edited.text : block.message;
    return { type: "line", text: this.#folds.unfold(message) };
  }

  #vertical(by: -1 | 1): void {
    const moved = moveLine(this.#edited, by);
    if (moved !== undefined) this.#edited = moved;
    else if (by < 0 && this.#takeBack()) return;
    else {
      const entries = this.#context.history.entries();
      const text = this.#recall.step(entries, by, this.#edited.text);
      if (text !== undefined) this.#edited = replaced(this.#edited, text);
    }
  }

  /** Puts the newest message that waits before the one being edited. */
  #takeBack(): boolean {
    const taken = this.#message?.takeBack();
    if (taken === undefined) return false;
    const text = this.#edited.text === "" ? taken : `${taken}\n${this.#edited.text}`;
    this.#edited = { ...replaced(this.#edited, text), cursor: taken.length };
    return true;
  }

  async #tab(): Promise<void> {
    const { complete } = this.#options;
    if (complete === undefined) return;
    const before = this.#edited;
    const tabbed = await this.#context.keys.unlessBroken(
      tab(before, complete).catch(() => undefined),
    );
    if (tabbed === undefined) return;
    this.#edited = tabbed.edited;
    this.#menu = tabbed.menu;
  }

  /** Handles a key while candidates are listed; false when the key must be handled as usual. */
  async #choosing(key: Key): Promise<boolean> {
    const menu = this.#menu!;
    this.#menu = undefined;
    if (key.type === "key" && (key.name === "tab" || key.name === "shift-tab")) {
      const tabbed = tabAgain(menu, key.name === "tab" ? 1 : -1);
      this.#edited = tabbed.edited;
      this.#menu = tabbed.menu;
      return true;
    }
    if (key.type === "key" && (key.name === "escape" || key.name === "ctrl-g")) {
      this.#edited = menu.base;
      return true;
    }
    const narrows = key.type === "text" || (key.type === "key" && key.name === "backspace");
    if (!narrows || menu.chosen !== undefined) return false;
    if (key.type === "text") this.#type(key);
    else this.#edited = press(this.#edited, "backspace")!;
    const { keys } = this.#context;
    const list = listFor(this.#edited, this.#options.complete!).catch(() => undefined);
    this.#menu = await keys.unlessBroken(list);
    return true;
  }

  /** Handles a key during a history search; false when it ends the search and must be handled as usual. */
  #searching(key: Key): boolean {
    const search = this.#search!;
    const next = searchKey(search, this.#context.history.entries(), key);
    this.#search = typeof next === "string" ? undefined : next;
    if (next !== "taken") return true;
    if (search.found !== undefined) this.#edited = replaced(this.#edited, search.found.text);
    return false;
  }

  async #draw(): Promise<void> {
    const { prompt, hidden } = this.#options;
    const listed = this.#menu?.candidates.map(({ text, description }) =>
      text + (description ?? "")
    );
    const found = this.#search?.found?.text ?? "";
    const text = hidden ? "" : this.#edited.text + found + (listed?.join("") ?? "");
    const around = this.#message === undefined
      ? ""
      : this.#message.waiting(this.#context.port.size().columns).join("");
    await this.#context.widths.ready(prompt + text + around);
    this.redraw();
  }

  /** Leaves the sent message on the screen. */
  async #leave(): Promise<void> {
    this.#menu = undefined;
    this.#search = undefined;
    if (this.#message !== undefined) return; // it is shown again where it is sent
    this.#edited = { ...this.#edited, cursor: 0 }; // at the end it might need another row
    await this.#draw();
    this.#context.surface.leave();
  }

  #frame(): Frame {
    const { port, widths } = this.#context;
    return editorFrame({
      message: this.#message,
      note: this.#escaped ? "(Esc again clears the line)" : "",
      options: this.#options,
      edited: this.#edited,
      folds: this.#folds,
      search: this.#search,
      menu: this.#menu,
      size: port.size(),
      widths,
    });
  }
}

/** The visible state of a read. */
export interface Editing {
  options: Pick<ReadOptions, "prompt" | "hidden">;
  edited: Edited;
  folds: Folds;
  search?: Search;
  menu?: Menu;
  message?: MessageOptions;
  /** A remark below the text. Default: none */
  note?: string;
  size: ReturnType<TerminalPort["size"]>;
  widths: Widths;
}

/** What further lines begin with; without colours where the prompt has none. */
function continuation(prompt: string): string {
  return prompt.includes("\x1b") ? "\x1b[2m... \x1b[0m" : "... ";
}

/** The rows of a read: prompt (or search prompt), text, and candidates. */
export function editorFrame(editing: Editing): Frame {
  const { menu, message, note = "", widths, size: { columns, rows } } = editing;
  const laid = layOut({
    ...shown(editing),
    continuation: continuation(editing.options.prompt),
    columns,
    widths,
  });
  const waiting = (message?.waiting(columns) ?? []).flatMap((row) => rowsOf(row, columns, widths));
  const frame = {
    rows: [...waiting, ...laid.rows],
    cursor: { ...laid.cursor, row: laid.cursor.row + waiting.length },
  };
  if (note !== "") return { ...frame, below: rowsOf(note, columns, widths) };
  if (menu === undefined) return frame;
  const room = Math.max(Math.floor(rows / 2), rows - frame.rows.length);
  return { ...frame, below: menuRows(menu.candidates, menu.chosen, columns, room, widths) };
}

function shown(
  { options: { prompt, hidden }, edited, folds, search, message }: Editing,
): Pick<Laid, "prompt" | "text" | "cursor" | "label" | "hint"> {
  if (hidden) return { prompt, text: "", cursor: 0 };
  const label = (character: string) => folds.label(character);
  if (search === undefined) {
    const hint = edited.text === "" ? message?.placeholder() : undefined;
    return { prompt, text: edited.text, cursor: edited.cursor, label, hint };
  }
  const { found, query, failed } = search;
  return {
    prompt: `(${failed ? "nothing older" : "search"}) ${query}: `,
    text: found?.text ?? "",
    cursor: found?.at ?? 0,
    label,
  };
}
