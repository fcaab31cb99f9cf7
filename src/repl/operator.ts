import type { Config } from "../config/config.ts";
import type { Clock } from "../platform/clock.ts";
import { visible } from "../platform/terminal.ts";
import type { AskRequest, ConfirmAnswer, ConfirmRequest, Operator } from "../policy/operator.ts";
import type { Input } from "./input/input.ts";
import type { InputResult } from "./input/line_editor.ts";
import { fit, plural, textWidth, wrapped } from "../platform/text.ts";
import type { Output } from "./render/output.ts";
import type { Style } from "../platform/style.ts";

/** Rows for a preview and a reason until the operator asks for all of them. */
const PREVIEW_ROWS = 12;
const REASON_ROWS = 4;

export interface TerminalOperatorOptions {
  input: Pick<Input, "read">;
  output: Output;
  style: Style;
  config: Config;
  clock: Clock;
  /** Cancels the waiting turn: Ctrl-C at a question. */
  cancel(): void;
  /** Whether a session is the active one; others are named in the question. */
  isActive(session: string): boolean;
}

/**
 * The operator at the terminal (specification 5.3). Concurrent questions are queued; a question of a turn
 * that has ended is dropped. An unattended session never prompts.
 */
export class TerminalOperator implements Operator {
  readonly #options: TerminalOperatorOptions;
  #line: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(options: TerminalOperatorOptions) {
    this.#options = options;
  }

  /** Whether a question is open; the status line is hidden then. */
  get asking(): boolean {
    return this.#waiting > 0;
  }

  confirm(request: ConfirmRequest): Promise<ConfirmAnswer> {
    const denied = (by: string): ConfirmAnswer => ({ granted: false, scope: "once", by });
    if (this.#unattended()) return Promise.resolve(denied("unattended"));
    return this.#inLine(request.signal, denied("operator"), async () => {
      let hides = this.#show(request);
      const timeout = this.#timeout(request.signal);
      while (true) {
        const answer = await this.#read(keys(hides), timeout.signal, true);
        if (timeout.expired()) {
          this.#remark(`No answer in ${this.#seconds()} s: denied.`);
          return denied("confirm_timeout");
        }
        if (answer.type !== "line") {
          if (answer.type === "interrupted" && !request.signal.aborted) this.#options.cancel();
          return denied("operator");
        }
        switch (answer.text.trim().toLowerCase()) {
          case "y":
          case "yes":
            return { granted: true, scope: "once", by: "operator" };
          case "a":
          case "always":
            return { granted: true, scope: "always", by: "operator" };
          case "n":
          case "no":
            return denied("operator");
          case "d":
            hides = this.#show(request, true);
            break;
          default:
            this.#remark("y: once, a: always for this session, n: no, d: show all of it");
        }
      }
    });
  }

  ask(request: AskRequest): Promise<string | undefined> {
    if (this.#unattended()) return Promise.resolve(undefined);
    const { question, context, options, run, session, signal } = request;
    return this.#inLine(signal, undefined, async () => {
      const { output, style } = this.#options;
      const columns = output.columns();
      const asked = hanging("  ", visible(question), columns).slice(2);
      output.line(style.yellow("? ") + style.bold(asked) + this.#from(run, session));
      if (context !== "") output.line(style.dim(hanging("  ", visible(context).trim(), columns)));
      options.forEach((option, index) =>
        output.line(hanging(`  ${index + 1}. `, visible(option), columns))
      );
      const prompt = options.length > 0 ? "answer, or a number: " : "answer: ";
      const answer = await this.#read(prompt, signal, false);
      if (answer.type === "interrupted" && !signal.aborted) this.#options.cancel();
      if (answer.type !== "line") return undefined;
      const text = answer.text.trim();
      const number = /^\d+$/.test(text) ? Number(text) : 0;
      return options[number - 1] ?? (text === "" ? undefined : text);
    });
  }

  approveModels(models: string[]): Promise<boolean> {
    if (this.#unattended()) return Promise.resolve(false);
    return this.#inLine(new AbortController().signal, false, async () => {
      const { output, style } = this.#options;
      const what = models.length === 1 ? "a model that is" : "models that are";
      output.line(`${style.yellow("?")} This needs ${what} not approved yet:`);
      for (const model of models) output.line(`  ${visible(model)}`);
      const answer = await this.#read("approve from now on? [y/n] ", undefined, false);
      return answer.type === "line" && /^y(es)?$/i.test(answer.text.trim());
    });
  }

  /**
   * Shows what will run and returns whether some of it was cut. The text of a call comes from a model: however
   * long it is, the question stays visible.
   */
  #show(request: ConfirmRequest, all = false): boolean {
    const { output, style } = this.#options;
    const { tool, category, reason, input, preview, run, session } = request;
    const columns = output.columns();
    const cut = (line: string, rows: number) => all ? line : fit(line, rows * columns - 2);
    const why = visible(reason).replace(/\s*\n\s*/g, " ");
    const head = (text: string) =>
      output.line(
        `${style.yellow("?")} ${style.bold(visible(tool))} (${visible(category)}): ${text}`,
      );
    const brief = fit(why, REASON_ROWS * columns);
    head(all ? why : brief);
    const from = this.#from(run, session);
    if (from !== "") output.line(` ${from}`);
    const lines = visible(preview === "" ? JSON.stringify(input, null, 2) : preview).trimEnd()
      .replaceAll("\t", TAB).split("\n");
    let [rows, whole] = [0, 0];
    for (const line of lines) {
      if (!all && rows >= PREVIEW_ROWS) break;
      const shown = cut(line, PREVIEW_ROWS - rows);
      output.line(`  ${paint(shown, style)}`);
      rows += Math.max(1, Math.ceil((textWidth(shown) + 2) / columns));
      if (shown === line) whole++;
    }
    const more = lines.length - whole;
    if (more > 0) output.line(style.dim(`  ... ${plural(more, "more line")} (d)`));
    if (all && (rows > PREVIEW_ROWS || why !== brief)) head(brief);
    return more > 0 || (!all && why !== brief);
  }

  #from(run: number, session: string): string {
    if (this.#options.isActive(session)) return "";
    return this.#options.style.dim(` [run #${run}, session ${visible(session)}]`);
  }

  #remark(text: string): void {
    this.#options.output.line(this.#options.style.dim(text));
  }

  #unattended(): boolean {
    return this.#options.config.get("unattended");
  }

  #seconds(): number {
    return this.#options.config.get("confirm_timeout");
  }

  /** A signal that also aborts after `confirm_timeout` seconds; 0 means no limit. */
  #timeout(signal: AbortSignal): { signal: AbortSignal; expired(): boolean } {
    const seconds = this.#seconds();
    if (seconds === 0) return { signal, expired: () => false };
    const late = new AbortController();
    let answered = false;
    this.#options.clock.sleep(seconds * 1000, signal).then(() => {
      if (!answered) late.abort();
    }, () => answered = true);
    return {
      signal: AbortSignal.any([signal, late.signal]),
      expired: () => late.signal.aborted && !signal.aborted,
    };
  }

  async #read(
    prompt: string,
    signal: AbortSignal | undefined,
    confirm: boolean,
  ): Promise<InputResult> {
    const { input, output, config } = this.#options;
    output.hold(); // other agents may print meanwhile
    try {
      const hidden = confirm && config.get("hide_confirm_input");
      return await input.read({ prompt, remember: false, fresh: true, hidden, signal });
    } finally {
      output.release();
    }
  }

  /** One question at a time. */
  async #inLine<T>(signal: AbortSignal, otherwise: T, ask: () => Promise<T>): Promise<T> {
    const before = this.#line;
    const done = Promise.withResolvers<void>();
    this.#line = done.promise;
    this.#waiting++;
    try {
      await before;
      return signal.aborted ? otherwise : await ask();
    } finally {
      this.#waiting--;
      done.resolve();
    }
  }
}

const TAB = " ".repeat(8);

function keys(hides: boolean): string {
  return `[y] once  [a] always  [n] no${hides ? "  [d] all of it" : ""}: `;
}

/** Wraps a text at word boundaries with a hanging indent. */
function hanging(first: string, text: string, columns: number): string {
  const room = Math.max(1, columns - first.length);
  const lines = text.split("\n").flatMap((line) => wrapped(line, room).split("\n"));
  return first + lines.join(`\n${" ".repeat(first.length)}`);
}

function paint(line: string, style: Style): string {
  if (/^\+(?!\+\+)/.test(line)) return style.green(line);
  if (/^-(?!--)/.test(line)) return style.red(line);
  return line;
}
