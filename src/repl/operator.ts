import type { Config } from "../config/config.ts";
import type { Clock } from "../platform/clock.ts";
import { visible } from "../platform/terminal.ts";
import type { AskRequest, ConfirmAnswer, ConfirmRequest, Operator } from "../policy/operator.ts";
import type { Input } from "./input/input.ts";
import type { InputResult } from "./input/line_editor.ts";
import { fit, hardWrapped, wrapped } from "../platform/text.ts";
import type { Output } from "./render/output.ts";
import type { Style } from "../platform/style.ts";

/** Rows of the terminal that are kept free of a preview: for the question, its keys and what was before. */
const OTHER_ROWS = 8;
/** Rows for a preview and a reason until the operator asks for all of them. */
const PREVIEW_ROWS = 4;
const REASON_ROWS = 4;
const ANSWERS = ["y", "a", "n", "e", "v"];
/** Milliseconds between two looks whether the operator still types. */
const LOOK = 100;

export interface TerminalOperatorOptions {
  input: Pick<Input, "read" | "key" | "typing">;
  output: Output;
  /** Height of the terminal in cells. */
  rows(): number;
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
      const timeout = this.#timeout(request.signal);
      let folded = await this.#show(request);
      while (true) {
        const answer = await this.#confirmed(request, folded, timeout.signal);
        if (timeout.expired()) {
          this.#remark(`No answer in ${this.#seconds()} s: denied.`);
          return denied("confirm_timeout");
        }
        if (answer === "interrupted" && !request.signal.aborted) this.#options.cancel();
        if (answer === "interrupted" || answer === "end") return denied("operator");
        if (answer !== "all") return { by: "operator", ...answer };
        folded = await this.#show(request, true);
      }
    });
  }

  /** The answer to a confirmation, or `all` when the whole call is to be shown. */
  async #confirmed(
    { choices }: ConfirmRequest,
    folded: boolean,
    signal: AbortSignal,
  ): Promise<Omit<ConfirmAnswer, "by"> | "all" | "interrupted" | "end"> {
    const [only, more] = choices ?? [];
    const always = choices !== undefined && only === undefined ? [] : [
      `[a] always${only !== undefined && more === undefined ? `: ${inLine(only.covers)}` : ""}`,
    ];
    const keys = ["[y] once", ...always, "[n] no", "[e] no, because", "[v] all of it"];
    if (!folded) keys.pop();
    while (true) {
      const key = await this.#key(keys.join("  "), (key) => ANSWERS.includes(key), signal);
      switch (key) {
        case "y":
          return { granted: true, scope: "once" };
        case "n":
          return { granted: false, scope: "once" };
        case "v":
          return "all";
        case "interrupted":
        case "end":
          return key;
        case "e": {
          const reason = await this.#read("Why not? ", signal);
          if (reason.type === "escaped") continue;
          if (reason.type !== "line") return reason.type;
          const text = reason.text.trim();
          return { granted: false, scope: "once", ...text !== "" && { reason: text } };
        }
      }
      if (always.length === 0) continue;
      if (more === undefined) return { granted: true, scope: "always" };
      const choice = await this.#choose(choices!, signal);
      if (typeof choice === "number") return { granted: true, scope: "always", choice };
      if (choice !== "escape") return choice;
    }
  }

  /** Which of the choices an `always` answer covers; Enter takes the narrowest. */
  async #choose(
    choices: NonNullable<ConfirmRequest["choices"]>,
    signal: AbortSignal,
  ): Promise<number | "escape" | "interrupted" | "end"> {
    const { output, style } = this.#options;
    const rows = choices.map(({ covers, opens }, index) => {
      const effect = opens === "" ? "" : `; it opens ${visible(opens)}`;
      return hanging(`  [${index + 1}] `, visible(covers) + effect, output.columns());
    });
    const numbers = choices.map((_, index) => `${index + 1}`);
    const title = style.bold("Always, until this session ends:");
    const prompt = `${title}\n${rows.join("\n")}\n${numbers.join(", ")}, or Esc to go back`;
    const key = await this.#key(
      prompt,
      (key) => key === "enter" || key === "escape" || numbers.includes(key),
      signal,
    );
    if (key === "enter") return 0;
    return key === "escape" || key === "interrupted" || key === "end" ? key : Number(key) - 1;
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
      const answer = await this.#read(prompt, signal);
      const left = answer.type === "interrupted" || answer.type === "escaped";
      if (left && !signal.aborted) this.#options.cancel();
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
      const key = await this.#key(
        "approve from now on? [y/n]",
        (key) => key === "y" || key === "n",
      );
      return key === "y";
    });
  }

  /**
   * Shows what will run and returns whether some of it is folded. The text of a call comes from a model: however
   * long it is, the question stays visible.
   */
  async #show(request: ConfirmRequest, all = false): Promise<boolean> {
    const { output, style } = this.#options;
    const { tool, category, reason, input, preview, run, session } = request;
    output.shown.add(input);
    const columns = output.columns();
    const why = inLine(reason);
    const head = (text: string) =>
      output.line(
        style.yellow("?") +
          hanging("? ", `${style.bold(visible(tool))} (${visible(category)}): ${text}`, columns)
            .slice(1),
      );
    const brief = fit(why, REASON_ROWS * columns);
    head(all ? why : brief);
    const from = this.#from(run, session);
    if (from !== "") output.line(` ${from}`);
    const { foldedRows, previewRows } = await import("../commands/diff.ts");
    const text = visible(preview === "" ? JSON.stringify(input, null, 2) : preview).trimEnd();
    const whole = previewRows(text, { style, columns: Math.max(1, columns - 2) });
    const most = Math.max(PREVIEW_ROWS, this.#options.rows() - OTHER_ROWS);
    const rows = all
      ? whole
      : foldedRows(whole, most, (more) => style.dim(`${more}, v shows them`));
    for (const row of rows) output.line(`  ${row}`);
    if (all && (rows.length > most || why !== brief)) head(brief);
    return rows.length < whole.length || (!all && why !== brief);
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

  async #read(prompt: string, signal: AbortSignal): Promise<InputResult> {
    const { input, output } = this.#options;
    output.hold(); // other agents may print meanwhile
    try {
      return await input.read({ prompt, remember: false, fresh: true, escapes: true, signal });
    } finally {
      output.release();
    }
  }

  /** The key that answers a question; Escape is like Ctrl-C where it is no answer. */
  async #key(
    prompt: string,
    accepts: (key: string) => boolean,
    signal?: AbortSignal,
  ): Promise<string> {
    const { input, output, config } = this.#options;
    output.hold();
    try {
      const lines = prompt.split("\n").map((line) =>
        line.startsWith(" ") ? line : wrapped(line, output.columns() - 2)
      );
      const answer = await input.key({
        prompt: `${lines.join("\n")}: `,
        accepts: (key) => key === "escape" || accepts(key),
        hidden: config.get("hide_confirm_input"),
        signal,
      });
      if (answer.type !== "key") return answer.type;
      return answer.key === "escape" && !accepts("escape") ? "interrupted" : answer.key;
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
      const { input, clock } = this.#options;
      while (input.typing && !signal.aborted) await clock.sleep(LOOK, signal).catch(() => {});
      return signal.aborted ? otherwise : await ask();
    } finally {
      this.#waiting--;
      done.resolve();
    }
  }
}

/** A text as `visible` writes it, in one line. */
function inLine(text: string): string {
  return visible(text).replace(/\s*\n\s*/g, " ");
}

/** Wraps a text at word boundaries with a hanging indent, which no row of it can leave. */
function hanging(first: string, text: string, columns: number): string {
  const room = Math.max(1, columns - first.length);
  const lines = text.split("\n").flatMap((line) => wrapped(line, room).split("\n"))
    .flatMap((line) => hardWrapped(line, room));
  return first + lines.join(`\n${" ".repeat(first.length)}`);
}
