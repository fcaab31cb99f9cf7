import { ROOT_RUN } from "../engine/events.ts";
import type { Run, RunRegistry } from "../engine/agents/runs.ts";
import { targetRun } from "../engine/agents/targets.ts";
import { usageError } from "../platform/error.ts";

/** The steps of `/focus` that need no target. */
export const STEPS = ["back", "child", "parent", "sibling", "next", "prev", "root"] as const;
export type Step = typeof STEPS[number];

/** The focus stack (specification 3.6): the run that prompts go to, and those it was on before. */
export class Focus {
  readonly #runs: () => RunRegistry;
  #stack: number[] = [ROOT_RUN];

  constructor(runs: () => RunRegistry) {
    this.#runs = runs;
  }

  /** Number of the focused run. */
  get run(): number {
    return this.#stack.at(-1)!;
  }

  /** How many steps `back` can go. */
  get depth(): number {
    return this.#stack.length - 1;
  }

  /** The focused run, once there is one: a session without a turn has none. */
  current(): Run | undefined {
    return this.#runs().list()[this.run - 1];
  }

  /** Back to the root, with nothing to go back to: another session, say. */
  reset(): void {
    this.#stack = [ROOT_RUN];
  }

  /** Focuses a run; the one before is a step back. */
  attach(run: number): void {
    if (run === this.run) return;
    if (run === ROOT_RUN) this.reset();
    else this.#stack.push(run);
  }

  /**
   * Goes to a step or to a target: `#<session id>`, `#<run>`, `session:<name>`.
   *
   * @throws SvcError `focus_target` (exit 2)
   */
  to(target: string): void {
    if ((STEPS as readonly string[]).includes(target)) return this.#step(target as Step);
    const named = target.startsWith("#") || target.startsWith("session:");
    const run = named ? this.#runs().resolve(target) : undefined;
    if (run === undefined) {
      throw usageError(
        "focus_target",
        `There is no live run ${JSON.stringify(target)}.`,
        `A target is #<run>, #<session id> or session:<name>; a step is one of ${
          STEPS.join(", ")
        }.`,
      );
    }
    this.attach(run.id);
  }

  #step(step: Step): void {
    if (step === "root") return this.reset();
    if (step === "back") {
      if (this.#stack.length === 1) {
        throw usageError("focus_target", "There is nothing to go back to.");
      }
      this.#stack.pop();
      return;
    }
    const run = targetRun(this.#runs(), this.run, step);
    if (run === undefined) {
      throw usageError("focus_target", `The focused run #${this.run} has no ${NOUNS[step]}.`);
    }
    this.attach(run.id);
  }
}

const NOUNS = {
  child: "child",
  parent: "parent",
  sibling: "sibling",
  next: "run after it",
  prev: "run before it",
};
