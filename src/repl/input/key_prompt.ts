import type { KeySource } from "./keyboard.ts";
import type { EditorContext } from "./line_editor.ts";
import { layOut } from "./view.ts";

/** A question that one key answers. */
export interface KeyQuestion {
  /** May contain colours. */
  prompt: string;
  /** Whether a key is an answer: a character that was typed, or the name of another key. */
  accepts(key: string): boolean;
  /** Does not show the answer. */
  hidden?: boolean;
  /** Ends the question as interrupted. */
  signal?: AbortSignal;
}

/** The key that answered a question, or why none did: Ctrl-C or the signal, or Ctrl-D or the end of input. */
export type KeyAnswer = { type: "key"; key: string } | { type: "interrupted" | "end" };

/** Asks a question that one key answers, without Enter. */
export class KeyPrompt {
  readonly #context: EditorContext;
  readonly #question: KeyQuestion;
  #answer = "";

  constructor(context: EditorContext, question: KeyQuestion) {
    this.#context = context;
    this.#question = question;
  }

  async run(): Promise<KeyAnswer> {
    const { keys, surface, widths } = this.#context;
    await widths.ready(this.#question.prompt);
    this.redraw();
    const answer = await this.#asked(keys);
    if (answer.type === "key" && !this.#question.hidden) {
      this.#answer = answer.key === "escape" ? "Esc" : answer.key.length > 1 ? "" : answer.key;
    }
    this.redraw();
    surface.leave();
    return answer;
  }

  /** Draws the current state. */
  redraw(): void {
    const { port, surface, widths } = this.#context;
    const text = this.#answer;
    const { prompt } = this.#question;
    const { columns } = port.size();
    surface.draw(layOut({ prompt, continuation: "", text, cursor: text.length, columns, widths }));
  }

  async #asked(keys: KeySource): Promise<KeyAnswer> {
    while (true) {
      const next = await keys.next();
      if (next.type === "end" || next.type === "interrupted") return { type: next.type };
      if (next.type === "paste") continue;
      const key = next.type === "text" ? next.text : next.name;
      if (this.#question.accepts(key)) return { type: "key", key };
      if (key === "ctrl-c") return { type: "interrupted" };
      if (key === "ctrl-d") return { type: "end" };
    }
  }
}
