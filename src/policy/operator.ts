import type { ToolArguments } from "../plugins/api.ts";

/** A tool call that waits for a yes or a no. */
export interface ConfirmRequest {
  tool: string;
  input: ToolArguments;
  category: string;
  /** Why the policy asks: the category's action, a path outside the worktree, the resolver. */
  reason: string;
  /** What will run, in full: a command, a diff. Empty when the input says it all. */
  preview: string;
  /** Number of the run and name of the session that wait. */
  run: number;
  session: string;
  signal: AbortSignal;
}

/** The answer to a confirmation. */
export interface ConfirmAnswer {
  granted: boolean;
  /** `always` holds for the rest of the session. */
  scope: "once" | "always";
  /** Who answered: `operator`, `--yes`, `headless`. */
  by: string;
}

/** A question for a human (specification 3.2). */
export interface AskRequest {
  question: string;
  context: string;
  options: string[];
  run: number;
  session: string;
  signal: AbortSignal;
}

/** The one way to a human. No other code reads standard input. */
export interface Operator {
  confirm(request: ConfirmRequest): Promise<ConfirmAnswer>;
  /** The answer, or undefined when there is nobody to ask. */
  ask(request: AskRequest): Promise<string | undefined>;
  /**
   * Whether all of these models (`<provider>/<model>`), to which roles refer, may be used from now on
   * (specification 5.2). Left out where nobody may be asked.
   */
  approveModels?(models: string[]): Promise<boolean>;
}

/** Headless runs: every confirmation is answered by `yes` or no, and there is nobody to ask. */
export function headlessOperator(yes: boolean): Operator {
  return {
    confirm: () => Promise.resolve({ granted: yes, scope: "once", by: yes ? "--yes" : "headless" }),
    ask: () => Promise.resolve(undefined),
  };
}
