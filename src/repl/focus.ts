import { ROOT_RUN } from "../engine/events.ts";
import { type Run, type RunRegistry, targetRun } from "../engine/runs.ts";
import { usageError } from "../platform/error.ts";

/** The steps of `/focus` that need no target. */
export const STEPS = ["back", "child", "parent", "sibling", "next", "prev", "root"] as const;
export type Step = typeof STEPS[number];

/** The focus stack (specification 3.6): the run that receives prompts, and the runs focused before it. */
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

  /** Number of steps that `back` can take. */
  get depth(): number {
    return this.#stack.length - 1;
  }

  /** The focused run; undefined before the first turn of a session. */
  current(): Run | undefined {
    return this.#runs().list()[this.run - 1];
  }

  /** Focuses the root and empties the stack, for example when the session changes. */
  reset(): void {
    this.#stack = [ROOT_RUN];
  }

  /** Focuses a run and remembers the previous one for `back`. */
  attach(run: number): void {
    if (run === this.run) return;
    if (run === ROOT_RUN) this.reset();
    else this.#stack.push(run);
  }

  /**
   * Moves the focus by a step or to a target: `#<session id>`, `#<run>`, `session:<name>`.
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
