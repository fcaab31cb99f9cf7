import type { ToolArguments, Usage } from "../../plugins/api.ts";
import type { TurnResult } from "../../engine/events.ts";
import { tokensOf } from "./facts.ts";

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
