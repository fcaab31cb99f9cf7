import type { ToolArguments } from "../plugins/api.ts";
import { TurnFailure } from "./events.ts";

/** Rounds with the same call and result after which the model is told, and after which the turn ends. */
const TOLD = 3;
const ENDED = 6;

/** Categories of calls that change nothing. */
const LOOKS = ["read", "list", "web"];

/**
 * Notices a model that makes the same call again and again and gets the same result. A call counts anew when its
 * result differs, and all calls do when another one may have changed something: one that has not been made with this
 * result before, and does more than look.
 */
export class Repetition {
  /** By call, its last result and how many rounds have brought it. */
  readonly #calls = new Map<string, { result: string; rounds: number }>();
  /** The calls of the round so far. */
  readonly #round = new Map<string, { name: string; category: string; result: string }>();

  /** Adds a call of the round that runs. */
  add(
    name: string,
    args: ToolArguments,
    { category, result }: { category: string; result: string },
  ): void {
    this.#round.set(`${name} ${JSON.stringify(args)}`, { name, category, result });
  }

  /**
   * Ends the round.
   *
   * @returns what the model is to be told; empty for nothing
   * @throws TurnFailure `repetition`
   */
  endRound(): string {
    const round = [...this.#round];
    this.#round.clear();
    const changed = round.some(([call, { category, result }]) =>
      !LOOKS.includes(category) && this.#calls.get(call)?.result !== result
    );
    if (changed) { for (const each of this.#calls.values()) each.rounds = 0; }
    let told = "";
    for (const [call, { name, result }] of round) {
      const known = this.#calls.get(call);
      const rounds = known?.result === result ? known.rounds + 1 : 1;
      this.#calls.set(call, { result, rounds });
      if (rounds === ENDED) {
        throw new TurnFailure(
          "repetition",
          `Stopped: the model made the same call of ${name} ${ENDED} times, and its result was the same each time.`,
        );
      }
      if (rounds === TOLD) {
        told =
          `You have made the same call of ${name} ${TOLD} times, and its result was the same each time. ` +
          "Do not make it again: use that result, try something else, or say in your answer what is missing.";
      }
    }
    return told;
  }
}
