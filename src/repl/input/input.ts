import { stripControl } from "../../platform/terminal.ts";
import { begin, Folds, replaced } from "./editor.ts";
import { History } from "./history.ts";
import { type KeyAnswer, KeyPrompt, type KeyQuestion } from "./key_prompt.ts";
import { Keyboard, type KeySource } from "./keyboard.ts";
import {
  type Draft,
  type EditorContext,
  type InputResult,
  LineEditor,
  type MessageOptions,
  type ReadOptions,
} from "./line_editor.ts";
import { Picker, type PickOptions } from "./picker.ts";
import { PlainLines } from "./plain_lines.ts";
import type { TerminalPort } from "./terminal.ts";
import { Widths } from "./text.ts";
import { type Surface, terminalSurface } from "./view.ts";

const ENTER_MODES = "\x1b[?2004h"; // bracketed paste
const LEAVE_MODES = "\x1b[?2004l\x1b[?25h";

/**
 * Reads one message at a time, with editing, history and completion. Without a terminal it reads plain
 * lines and writes no escape sequence. The terminal is in raw mode from the first `read` or `watch` until
 * `restore` or `close`.
 */
export class Input {
  readonly #port: TerminalPort;
  readonly #history: History;
  readonly #keyboard: Keyboard;
  readonly #lines: PlainLines;
  readonly #widths = new Widths();
  readonly #subscriptions: (() => void)[] = [];
  #last: Promise<unknown> = Promise.resolve();
  #open: (Drawn & { keys: KeySource }) | undefined;
  readonly #unfold: (() => void) | undefined;
  /** The message that is written during a turn. */
  #message: Drawn | undefined;
  /** What was written during a turn and is not sent, for the next read. */
  #draft: Draft | undefined;
  #killed: readonly string[] = [];
  #raw = false;
  #stopped = false;
  readonly #closing = new AbortController();

  /** @param options.unfold see {@linkcode EditorContext} */
  constructor(options: { port: TerminalPort; history?: History; unfold?: () => void }) {
    this.#unfold = options.unfold;
    this.#port = options.port;
    this.#history = options.history ?? new History();
    this.#keyboard = new Keyboard(options.port);
    this.#lines = new PlainLines(options.port);
  }

  /** Reads a message: a line, a """ block or a paste. Concurrent reads are queued. */
  read(options: ReadOptions): Promise<InputResult> {
    const result = this.#last.then(() => this.#read(options));
    this.#last = result.catch(() => {});
    return result;
  }

  /** Shows a list to choose from, at a terminal. Resolves to the value of the row; undefined: none was taken. */
  pick(options: PickOptions): Promise<string | undefined> {
    const result = this.#last.then(() =>
      this.#closing.signal.aborted ? undefined : this.#opened(options, (context) => {
        const picker = new Picker(context, options);
        return [picker, picker.run()];
      })
    );
    this.#last = result.catch(() => {});
    return result;
  }

  /** Asks a question that one key answers; keys typed earlier do not. Only for a terminal. */
  key(question: KeyQuestion): Promise<KeyAnswer> {
    const answer = this.#last.then(async (): Promise<KeyAnswer> => {
      if (this.#closing.signal.aborted) return { type: "end" };
      this.#enter();
      const interrupted = await this.#keyboard.early();
      if (interrupted || question.signal?.aborted) return { type: "interrupted" };
      return await this.#opened({ ...question, fresh: true }, (context) => {
        const prompt = new KeyPrompt(context, question);
        return [prompt, prompt.run()];
      });
    });
    this.#last = answer.catch(() => {});
    return answer;
  }

  /** Whether a person is typing a message now, or has just answered a question, so that another has to wait. */
  get typing(): boolean {
    return this.#keyboard.typing;
  }

  /**
   * For use during a turn: lets messages be written until `close`, and hands each to `sent`. A message that
   * is not sent by then is the beginning of the next read. A read or question that starts meanwhile receives
   * its own keys. Without a terminal nothing is read.
   */
  messages(
    options: MessageOptions & {
      surface: Surface;
      sent(text: string): void;
      /** Escape or Ctrl-C. */
      interrupted(): void;
      /** Ctrl-D in an empty message, or the end of input. No further message is read. */
      ended(): void;
    },
  ): { redraw(): void; close(): Promise<void> } {
    if (!this.#port.isTerminal || this.#closing.signal.aborted) {
      return { redraw() {}, close: () => Promise.resolve() };
    }
    this.#enter();
    const keys = this.#keyboard.openMessage();
    let closed = false;
    const edit = async () => {
      while (!closed) {
        const { surface } = options;
        const context = this.#context(keys, surface);
        const editor = new LineEditor(context, options, this.#draft, options);
        this.#message = { editor, surface };
        const result = await editor.run();
        this.#killed = editor.killed;
        this.#draft = result.type === "line" ? undefined : editor.draft;
        if (result.type === "line") {
          if (result.text.trim() !== "") {
            await this.#history.add(result.text);
            options.sent(result.text);
          }
        } else if (closed) break;
        else if (result.type !== "end") options.interrupted();
        else {
          options.ended();
          break;
        }
      }
      this.#message = undefined;
      this.#keyboard.closeMessage(keys);
    };
    const done = edit();
    return {
      redraw: () => this.#message?.editor.redraw(),
      close() {
        closed = true;
        keys.finish("end");
        return done;
      },
    };
  }

  /** Puts a text before the draft of the next read. */
  giveBack(text: string): void {
    const { edited, folds } = this.#draft ?? { edited: begin(), folds: new Folds() };
    const whole = edited.text === "" ? text : `${text}\n${edited.text}`;
    this.#draft = { edited: replaced(edited, whole), folds };
  }

  /**
   * For use while a command runs: Ctrl-C and Escape call `interrupt`; all other keys are kept for the next
   * read. A read that starts meanwhile (a confirmation) receives its own keys.
   */
  watch(handlers: { interrupt(): void }): { stop(): void } {
    if (!this.#port.isTerminal || this.#closing.signal.aborted) return { stop() {} };
    this.#enter();
    return this.#keyboard.watch(() => handlers.interrupt());
  }

  /** Whether a line is being edited on the terminal. */
  get reading(): boolean {
    return this.#open !== undefined;
  }

  /** Prints a text, colours included, above the line being edited. */
  announce(text: string): void {
    const whole = text.endsWith("\n") ? text : text + "\n";
    if (!this.#port.isTerminal) this.#port.write(stripControl(whole));
    else if (this.#open === undefined) this.#port.write(terminalLines(whole));
    else redrawn(this.#open, (surface) => surface.above(terminalLines(whole)));
  }

  /** Restores the terminal mode. May be called at any time and repeatedly. */
  restore(): void {
    if (!this.#raw) return;
    this.#raw = false;
    attempt(() => this.#port.write(LEAVE_MODES));
    attempt(() => this.#port.setRaw(false));
  }

  /** Restores the terminal and ends every read. */
  close(): void {
    this.#closing.abort();
    for (const unsubscribe of this.#subscriptions.splice(0)) unsubscribe();
    this.#open?.keys.finish("end");
    this.restore();
  }

  async #read(options: ReadOptions): Promise<InputResult> {
    const closing = this.#closing.signal;
    if (closing.aborted) return { type: "end" };
    if (options.signal?.aborted) return { type: "interrupted" };
    if (this.#port.isTerminal) {
      const result = await this.#edit(options);
      if (result.type === "line" && remembers(options)) await this.#history.add(result.text);
      return result;
    }
    const signal = AbortSignal.any([closing, ...options.signal ? [options.signal] : []]);
    const result = await this.#lines.read(!options.hidden, signal);
    return closing.aborted ? { type: "end" } : result;
  }

  #edit(options: ReadOptions): Promise<InputResult> {
    return this.#opened(options, (context) => {
      const draft = options.fresh ? undefined : this.#draft;
      if (!options.fresh) this.#draft = undefined;
      const editor = new LineEditor(context, options, draft);
      return [editor, editor.run().finally(() => this.#killed = editor.killed)];
    });
  }

  /** Gives the terminal's keys to an editor until it has ended. */
  async #opened<T>(
    { fresh = false, signal }: Pick<ReadOptions, "fresh" | "signal">,
    begin: (context: EditorContext) => [editor: Drawn["editor"], ended: Promise<T>],
  ): Promise<T> {
    this.#enter();
    const keys = this.#keyboard.open(fresh);
    const abort = () => keys.finish("interrupted");
    signal?.addEventListener("abort", abort);
    try {
      const surface = terminalSurface(this.#port, this.#widths);
      const [editor, ended] = begin(this.#context(keys, surface));
      this.#open = { editor, surface, keys };
      return await ended;
    } catch (error) {
      this.restore();
      throw error;
    } finally {
      signal?.removeEventListener("abort", abort);
      this.#open = undefined;
      this.#keyboard.release(keys, fresh);
    }
  }

  #context(keys: KeySource, surface: Surface): EditorContext {
    return {
      port: this.#port,
      surface,
      keys,
      history: this.#history,
      widths: this.#widths,
      killed: this.#killed,
      suspend: () => this.#suspend(),
      unfold: this.#unfold,
    };
  }

  #enter(): void {
    if (this.#raw) return;
    this.#port.setRaw(true);
    this.#raw = true;
    this.#port.write(ENTER_MODES);
    if (this.#subscriptions.length > 0) return;
    this.#subscriptions.push(
      this.#port.onResize(() => {
        for (const each of [this.#message, this.#open]) {
          redrawn(each, (surface) => surface.resized());
        }
      }),
      this.#port.onResume(() => this.#resume()),
    );
  }

  /** After the process was stopped and continued: another program may have changed the terminal mode. */
  #resume(): void {
    if (!this.#raw || this.#stopped) return;
    this.#raw = false;
    this.#enter();
    for (const each of [this.#message, this.#open]) redrawn(each, (surface) => surface.resumed());
  }

  async #suspend(): Promise<void> {
    this.restore();
    this.#stopped = true;
    await this.#port.suspend();
    this.#stopped = false;
    this.#enter();
  }
}

/** What is being edited, and where it is drawn. */
interface Drawn {
  editor: { redraw(): void };
  surface: Surface;
}

/** Draws what is being edited again, after a change of what is around it. */
function redrawn(drawn: Drawn | undefined, change: (surface: Surface) => void): void {
  if (drawn === undefined) return;
  change(drawn.surface);
  drawn.editor.redraw();
}

function remembers({ hidden, remember = true }: ReadOptions): boolean {
  return remember && !hidden;
}

function terminalLines(text: string): string {
  return text.replace(/\r?\n/g, "\r\n");
}

function attempt(step: () => void): void {
  try {
    step();
  } catch {
    // The terminal is gone; there is nothing left to restore.
  }
}
