import { outcomeLines, TAIL } from "../../commands/outcome.ts";
import { ROOT_RUN, type TurnEvent } from "../../engine/events.ts";
import type { Clock } from "../../platform/clock.ts";
import { oneLine, stripControl } from "../../platform/terminal.ts";
import { MarkdownStream, renderMarkdown } from "./markdown.ts";
import type { Output } from "./output.ts";
import type { Style } from "../../platform/style.ts";
import { duration, firstParagraph, fit, textWidth, wrapped } from "../../platform/text.ts";
import {
  askLines,
  noticeLines,
  refusalLine,
  runFooter,
  statusLine,
  turnFooter,
} from "./turn_lines.ts";
import { attribution, heading, Thoughts, TurnRun } from "./turn_run.ts";

type Event<T extends TurnEvent["type"]> = Extract<TurnEvent, { type: T }>;

/**
 * Renders one turn with its sub-agents as events arrive. Load this module with the first turn: it imports
 * the Markdown renderer.
 */
export class TurnView {
  readonly #output: Output;
  readonly #style: Style;
  readonly #settings: () => ViewSettings;
  readonly #clock: Clock;
  readonly #root: number;
  readonly #background: () => string[];
  readonly #page: TurnPage;
  readonly #runs = new Map<number, TurnRun>();
  readonly #since: number;
  /** Streamed texts by run. */
  readonly #texts = new Map<number, MarkdownStream>();
  /** Notices held until the text of their run ends. */
  #remarks: Event<"notice">[] = [];
  #thoughts: Thoughts | undefined;
  /** The last lines of the call that printed last. */
  #tail: readonly string[] = [];
  #ended = false;

  /**
   * @param options.root the run of this turn, when it is not the root
   * @param options.background the work that goes on after the turn, for the footer
   */
  constructor(
    output: Output,
    style: Style,
    settings: () => ViewSettings,
    clock: Clock,
    options: { root?: number; background?: () => string[] } = {},
  ) {
    this.#output = output;
    this.#style = style;
    this.#settings = settings;
    this.#clock = clock;
    this.#root = options.root ?? ROOT_RUN;
    this.#background = options.background ?? (() => []);
    this.#page = new TurnPage(output, style, this.#root, () => settings().subrun_verbosity);
    this.#since = clock.now();
  }

  event(event: TurnEvent): void {
    const run = this.#run(event);
    if (event.type === "notice" && event.retry_in !== undefined) {
      run.retryAt = this.#clock.now() + event.retry_in * 1000;
    }
    if (event.type === "notice" && event.level !== "error" && this.#texts.has(run.id)) {
      // A notice in the middle of an answer must not break a list or code block.
      this.#remarks.push(event);
      return;
    }
    if (event.type !== "thinking") this.#endThinking(run);
    if (event.type !== "token" && event.type !== "usage") this.#endText(run.id);
    this.#show(event, run);
    if (!this.#ended) this.tick();
  }

  /** Redraws the status lines; called by the caller's timer. */
  tick(): void {
    if (this.#ended || !this.#settings().status_spinner) return;
    const runs = [...this.#runs.values()];
    this.#output.status([
      ...this.#tail.map((line) => `  ${line}`),
      statusLine(runs, this.#root, this.#since, this.#clock.now()),
    ]);
  }

  /** Ends open output, also after a cancelled turn. */
  end(): void {
    for (const run of this.#runs.values()) {
      this.#endThinking(run);
      this.#endText(run.id);
    }
    this.#output.fresh();
    this.#output.status(undefined);
    this.#ended = true;
  }

  #show(event: TurnEvent, run: TurnRun): void {
    switch (event.type) {
      case "turn_started":
        run.begun = true;
        return;
      case "thinking":
        run.streamed(event.content);
        return this.#thinking(event.content, run);
      case "token":
        run.streamed(event.content);
        return this.#token(event.content, run);
      case "usage":
        return run.replied(event);
      case "tool_call": {
        const { id, name, arguments: args, category, status } = event;
        run.lastCall = { name, arguments: args, category, status, refused: false, tail: [] };
        run.calls.set(id, run.lastCall);
        return;
      }
      case "message": {
        this.#page.kind("message");
        const lines = stripControl(event.content).split("\n");
        return this.#output.line(this.#style.bold("› ") + lines.join("\n  "));
      }
      case "permission":
        return this.#permission(event, run);
      case "tool_output":
        return this.#running(event, run);
      case "tool_result":
        return this.#result(event, run);
      case "ask":
        for (const line of askLines(event, this.#style)) this.#page.line(run, line);
        return;
      case "ask_routed": // the operator puts the question itself
        if (event.to === "human") return;
        return this.#page.detail(
          run,
          this.#style.dim(`asks #${event.to}: ${oneLine(event.question)}`),
        );
      case "handoff": {
        const to = event.target === "done" ? "is done" : `hands over to #${event.target}`;
        return this.#page.detail(run, this.#style.dim(`#${run.id} ${to}`));
      }
      case "notice": {
        const quiet = run.id !== this.#root && this.#settings().subrun_verbosity === "quiet";
        if (quiet && event.level !== "error") return;
        const columns = this.#page.columns(run);
        for (const line of noticeLines(event, this.#style, columns)) this.#page.line(run, line);
        return;
      }
      case "run_started": {
        if (this.#settings().subrun_verbosity === "full") {
          this.#page.whole(`${heading(run, this.#style)} starts:`);
          const task = renderMarkdown(event.task, this.#style, this.#page.columns(run));
          return this.#page.text(task, run);
        }
        const name = `${heading(run, this.#style)} starts: `;
        const room = Math.max(10, this.#output.columns() - textWidth(name));
        return this.#page.whole(name + fit(firstParagraph(event.task), room));
      }
      case "run_finished":
        return this.#runFinished(event.status, run);
      case "turn_finished":
        run.result = event.result;
        if (run.id !== this.#root) return;
        this.#page.kind("footer");
        this.#output.line(
          turnFooter(event.result, run, this.#style, {
            columns: this.#output.isTerminal ? this.#output.columns() : Infinity,
            background: this.#background(),
          }),
        );
        return this.end();
    }
  }

  #run(event: TurnEvent): TurnRun {
    const known = this.#runs.get(event.run);
    if (known !== undefined && event.type !== "run_started") return known;
    const { parent, role } = event.type === "run_started" ? event : { parent: 0, role: "" };
    const depth = event.run === this.#root ? 0 : (this.#runs.get(parent)?.depth ?? 0) + 1;
    const run = new TurnRun(event.run, role, depth, this.#clock.now());
    this.#runs.set(event.run, run);
    return run;
  }

  #thinking(text: string, run: TurnRun): void {
    run.thinkingSince ??= this.#clock.now();
    const { show_thinking, subrun_verbosity } = this.#settings();
    if (!show_thinking) return;
    if (run.id !== this.#root) {
      if (subrun_verbosity === "full") run.thoughts += text;
      return;
    }
    this.#page.kind("thinking");
    this.#thoughts ??= new Thoughts(this.#output, this.#style);
    this.#thoughts.write(text);
  }

  #endThinking(run: TurnRun): void {
    const { thinkingSince } = run;
    if (thinkingSince === undefined) return;
    run.thinkingSince = undefined;
    if (run.id === this.#root && this.#thoughts !== undefined) {
      this.#thoughts.end();
      this.#thoughts = undefined;
    }
    const seconds = (this.#clock.now() - thinkingSince) / 1000;
    const line = this.#style.dim(`thought for ${duration(seconds)}`);
    if (run.id !== this.#root) {
      const thoughts = stripControl(run.thoughts).trim();
      run.thoughts = "";
      const lines = thoughts.split("\n").flatMap((each) =>
        wrapped(each, this.#page.columns(run)).split("\n")
      );
      if (thoughts !== "") this.#page.text(lines.map(this.#style.dim).join("\n"), run);
      return this.#page.detail(run, line);
    }
    this.#page.kind("thinking");
    this.#output.line(line);
  }

  #token(text: string, run: TurnRun): void {
    const settings = this.#settings();
    const root = run.id === this.#root;
    if (!root && settings.subrun_verbosity !== "full") return;
    let stream = this.#texts.get(run.id);
    if (stream === undefined) {
      if (root) { for (const other of this.#texts.keys()) this.#endText(other); }
      const columns = () => this.#page.columns(run);
      const blocks = !root || !settings.word_streaming;
      stream = new MarkdownStream(this.#style, columns, { blocks });
      this.#texts.set(run.id, stream);
    }
    this.#page.text(stream.write(text), run);
  }

  #endText(id: number): void {
    const stream = this.#texts.get(id);
    if (stream === undefined) return;
    this.#texts.delete(id);
    const run = this.#runs.get(id)!;
    this.#page.text(stream.end(), run);
    const own = this.#remarks.filter((event) => event.run === id);
    this.#remarks = this.#remarks.filter((event) => event.run !== id);
    for (const event of own) this.#show(event, run);
  }

  #permission(event: Event<"permission">, run: TurnRun): void {
    const call = run.lastCall;
    if (call !== undefined) call.preview = event.preview;
    if (event.decision === "granted" || call === undefined) return;
    call.refused = true;
    this.#page.detail(run, refusalLine(event, call, this.#style));
  }

  /** Keeps the last lines of a running call, which are shown above the status line. */
  #running({ id, content }: Event<"tool_output">, run: TurnRun): void {
    const call = run.calls.get(id);
    if (call === undefined) return;
    const lines = stripControl(content).replaceAll("\t", "    ").split("\n");
    call.tail = [...call.tail, ...lines.filter((line) => line.trim() !== "")].slice(-TAIL);
    this.#tail = call.tail;
  }

  #result(event: Event<"tool_result">, run: TurnRun): void {
    const call = run.calls.get(event.id);
    run.calls.delete(event.id);
    run.toolCalls++;
    this.#tail = [];
    if (call?.refused) return;
    const settings = this.#settings();
    const shown = outcomeLines(event, call, {
      ...settings,
      style: this.#style,
      columns: this.#page.columns(run),
      seen: call !== undefined && this.#output.shown.has(call.arguments),
      brief: run.id !== this.#root && settings.subrun_verbosity !== "full",
      key: this.#output.isTerminal ? "Ctrl-O" : "",
    });
    for (const line of shown.lines) this.#page.detail(run, line);
    if (shown.whole !== undefined) this.#output.folded = shown.whole;
  }

  #runFinished(status: string, run: TurnRun): void {
    const { result } = run;
    const { delegate_echo, subrun_verbosity } = this.#settings();
    const shown = subrun_verbosity === "full"; // unfiltered
    if (delegate_echo && !shown && result !== undefined && result.content !== "") {
      this.#page.text(renderMarkdown(result.content, this.#style, this.#page.columns(run)), run);
    }
    const facts = runFooter({ status, result, toolCalls: run.toolCalls }, this.#style);
    this.#page.whole(`${heading(run, this.#style)} ${facts}`);
    this.#runs.delete(run.id);
  }
}

/** Kinds of output; an empty line separates different kinds. */
export type Kind = "nothing" | "text" | "thinking" | "activity" | "message" | "footer";

/** Writes the lines of a turn; lines of a sub-agent are prefixed with its name. */
export class TurnPage {
  #kind: Kind = "nothing";

  /** @param verbosity how much of sub-agents' activity is shown (`subrun_verbosity`) */
  constructor(
    readonly output: Output,
    readonly style: Style,
    readonly root: number,
    readonly verbosity: () => ViewSettings["subrun_verbosity"],
  ) {}

  /** Width in cells of a line of a run. */
  columns(run: TurnRun): number {
    return Math.max(1, this.output.columns() - textWidth(this.#margin(run)));
  }

  /** Starts output of a kind. */
  kind(kind: Kind): void {
    if (this.#kind === kind) return;
    this.output.fresh();
    if (this.#kind !== "nothing") this.output.print("\n");
    this.#kind = kind;
  }

  /** Writes rendered text of a run: the root's in chunks, a sub-agent's in whole lines. */
  text(rendered: string, run: TurnRun): void {
    if (rendered === "") return;
    this.kind(run.id === this.root ? "text" : "activity");
    if (run.id === this.root) return this.output.print(rendered);
    const name = this.#margin(run);
    const lines = rendered.replace(/\n$/, "").split("\n");
    this.output.line(lines.map((line) => `${name}${line}`.trimEnd()).join("\n"));
  }

  /** Writes an activity line of a run, subject to `subrun_verbosity` for sub-agents. */
  detail(run: TurnRun, line: string): void {
    if (run.id !== this.root && this.verbosity() === "quiet") return;
    this.line(run, line);
  }

  /** Writes a line of a run. */
  line(run: TurnRun, line: string): void {
    this.whole(this.#margin(run) + line);
  }

  /** Writes a line that belongs to no run. */
  whole(line: string): void {
    this.kind("activity");
    this.output.line(line);
  }

  #margin(run: TurnRun): string {
    return run.id === this.root ? "" : attribution(run, this.style);
  }
}

/** The settings that select what of a turn is shown (specification 2.13). */
export interface ViewSettings {
  show_thinking: boolean;
  show_errors: boolean;
  show_notes: boolean;
  status_spinner: boolean;
  word_streaming: boolean;
  delegate_echo: boolean;
  subrun_verbosity: "quiet" | "summary" | "full";
}
