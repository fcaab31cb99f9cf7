import type { TurnResult } from "../../engine/events.ts";
import { oneLine } from "../../platform/terminal.ts";
import type { ToolArguments, Usage } from "../../plugins/api.ts";
import { Wrapper } from "./markdown/wrapper.ts";
import type { Output } from "./output.ts";
import type { Style } from "./style.ts";
import { ControlFilter, fit, tokensOf } from "./text.ts";

/** A tool call that is under way. */
export interface LiveCall {
  name: string;
  arguments: ToolArguments;
  category: string;
  /** The activity line. */
  status: string;
  /** The policy or a person said no; that has been shown. */
  refused: boolean;
}

/** What a view knows of one run of the turn. */
export class TurnRun {
  readonly calls = new Map<string, LiveCall>();
  /** The call that was announced last: the next decision is about it. */
  lastCall: LiveCall | undefined;
  /** The session is there for the turn: no other process works in it. */
  begun = false;
  thinkingSince: number | undefined;
  /** When the backend is asked again, in milliseconds; undefined when nobody waits for that. */
  retryAt: number | undefined;
  toolCalls = 0;
  result: TurnResult | undefined;
  /** Tokens of the last reply and what it answered to. */
  context = 0;
  #reported = 0;
  /** Characters of the reply that is being streamed. */
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

  /** Whether `tokens` is a guess in part. */
  get guessed(): boolean {
    return this.#streamed > 0;
  }

  streamed(text: string): void {
    this.retryAt = undefined;
    this.#streamed += text.length;
  }

  replied(usage: Usage): void {
    this.retryAt = undefined;
    this.context = tokensOf(usage);
    this.#reported += this.context;
    this.#streamed = 0;
  }
}

/** Reasoning as it arrives: dim, in lines of words. */
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

/** Levels that are shown as such. */
const DEEPEST = 8;
/** Cells of a role's name in front of each line of its run. */
const ROLE = 20;

/** What stands before a line of a sub-agent, so that it is told from the others. */
export function attribution(run: TurnRun, style: Style): string {
  return indent(run) + style.dim(`#${run.id} ${fit(oneLine(run.role), ROLE)} │ `);
}

/** A sub-agent's name where it starts and ends: a level further out than its lines. */
export function heading(run: TurnRun, style: Style): string {
  return indent(run, 1) + style.bold(`#${run.id} ${oneLine(run.role)}`);
}

function indent({ depth }: TurnRun, less = 0): string {
  return "  ".repeat(Math.min(DEEPEST, Math.max(0, depth - less)));
}
