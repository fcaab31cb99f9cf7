import type { TurnResult } from "../../engine/events.ts";
import { oneLine } from "../../platform/terminal.ts";
import type { ToolArguments, Usage } from "../../plugins/api.ts";
import { Wrapper } from "./markdown/wrapper.ts";
import type { Output } from "./output.ts";
import type { Style } from "../../platform/style.ts";
import { ControlFilter, fit, tokensOf } from "../../platform/text.ts";

/** A running tool call. */
export interface LiveCall {
  name: string;
  arguments: ToolArguments;
  category: string;
  /** The activity line. */
  status: string;
  /** The call was denied or declined, and that has been shown. */
  refused: boolean;
  /** What an edit changes, where its confirmation was not needed. */
  preview?: string;
  /** The last lines of its output so far. */
  tail: string[];
}

/** The state of one run in a view. */
export class TurnRun {
  readonly calls = new Map<string, LiveCall>();
  /** The call announced last; the next permission event refers to it. */
  lastCall: LiveCall | undefined;
  /** The turn has acquired the session's lock. */
  begun = false;
  thinkingSince: number | undefined;
  /** A sub-agent's reasoning that is not printed yet. */
  thoughts = "";
  /** Time of the next attempt in milliseconds; undefined when no retry is pending. */
  retryAt: number | undefined;
  toolCalls = 0;
  result: TurnResult | undefined;
  /** Tokens of the last reply and its context. */
  context = 0;
  /** Tokens of the model's context window; undefined where it is unknown. */
  window: number | undefined;
  #reported = 0;
  /** Characters of the reply being streamed. */
  #streamed = 0;

  constructor(
    readonly id: number,
    readonly role: string,
    readonly depth: number,
    readonly since: number,
  ) {}

  get tokens(): number {
    return this.#reported + Math.round(this.#streamed / 4);
  }

  /** Whether `tokens` is partly estimated. */
  get guessed(): boolean {
    return this.#streamed > 0;
  }

  streamed(text: string): void {
    this.retryAt = undefined;
    this.#streamed += text.length;
  }

  replied({ usage, window }: { usage: Usage; window?: number }): void {
    this.retryAt = undefined;
    this.window = window;
    this.context = tokensOf(usage);
    this.#reported += this.context;
    this.#streamed = 0;
  }
}

/** Streams reasoning: dimmed and wrapped. */
export class Thoughts {
  readonly #output: Output;
  readonly #filter = new ControlFilter();
  readonly #wrapper: Wrapper;
  #shown = "";

  constructor(output: Output, style: Style) {
    this.#output = output;
    const write = (text: string) => void (this.#shown += text);
    this.#wrapper = new Wrapper(write, ({ text }) => style.dim(text), () => output.columns());
    this.#wrapper.begin("", "");
  }

  write(piece: string): void {
    this.#wrapper.text({ text: this.#filter.write(piece), marks: 0 });
    this.#print();
  }

  end(): void {
    this.#wrapper.flush();
    this.#print();
    this.#output.fresh();
  }

  #print(): void {
    this.#output.print(this.#shown);
    this.#shown = "";
  }
}

/** Maximum indentation levels. */
const DEEPEST = 8;
/** Width in cells of a role's name before each line of its run. */
const ROLE = 20;

/** The prefix of a sub-agent's line: its run number and role. */
export function attribution(run: TurnRun, style: Style): string {
  return indent(run) + style.dim(`#${run.id} ${fit(oneLine(run.role), ROLE)} │ `);
}

/** The heading of a sub-agent's run, one level less indented than its lines. */
export function heading(run: TurnRun, style: Style): string {
  return indent(run, 1) + style.bold(`#${run.id} ${oneLine(run.role)}`);
}

function indent({ depth }: TurnRun, less = 0): string {
  return "  ".repeat(Math.min(DEEPEST, Math.max(0, depth - less)));
}
