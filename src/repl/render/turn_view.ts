import type { TurnEvent } from "../../engine/events.ts";
import { ROOT_RUN } from "../../engine/events.ts";
import type { Clock } from "../../platform/clock.ts";
import { MarkdownStream } from "./markdown.ts";
import type { Output } from "./output.ts";
import type { Style } from "./style.ts";

/** The settings of the same names that say what of a turn is shown. */
export interface ViewSettings {
  show_thinking: boolean;
  show_errors: boolean;
  show_notes: boolean;
  status_spinner: boolean;
  word_streaming: boolean;
  delegate_echo: boolean;
  subrun_verbosity: "quiet" | "summary" | "full";
}

/**
 * Shows a turn as it happens, sub-agents included. Load this module when the first turn begins: it
 * brings along what rendering needs.
 */
export class TurnView {
  readonly #output: Output;
  readonly #text: MarkdownStream;

  constructor(output: Output, style: Style, _settings: () => ViewSettings, _clock: Clock) {
    this.#output = output;
    this.#text = new MarkdownStream(style, () => output.columns());
  }

  event(event: TurnEvent): void {
    if (event.run !== ROOT_RUN) return;
    if (event.type === "token") this.#output.print(this.#text.write(event.content));
    if (event.type === "turn_finished") this.end();
  }

  /** Draws the status line anew; for a timer of the caller's. */
  tick(): void {}

  /** Ends what is still open, also when the turn was left half-way. */
  end(): void {
    this.#output.print(this.#text.end());
    this.#output.fresh();
    this.#output.status(undefined);
  }
}
