import type { ToolArguments } from "../plugins/api.ts";
import type { GrantChoice } from "./grants.ts";

/** A tool call that waits for an approval. */
export interface ConfirmRequest {
  tool: string;
  input: ToolArguments;
  category: string;
  /** Why the policy asks: the category's action, a path outside the worktree, the resolver. */
  reason: string;
  /** What will run, in full: a command, a diff. Empty when `input` shows it. */
  preview: string;
  /**
   * What an `always` answer can cover, narrowest first; none when the call can be approved for once alone. Absent for a
   * request that `always` answers as a whole.
   */
  choices?: Pick<GrantChoice, "covers" | "opens">[];
  /** Number of the waiting run and name of its session. */
  run: number;
  session: string;
  signal: AbortSignal;
}

/** The answer to a confirmation. */
export interface ConfirmAnswer {
  granted: boolean;
  /** `always` holds for the rest of the session. */
  scope: "once" | "always";
  /** Of `always`: the index of what it covers in `choices`. Default: 0 */
  choice?: number;
  /** Why it is not granted, for the model. Default: no reason is given */
  reason?: string;
  /** Who answered: `operator`, `--yes`, `headless`. */
  by: string;
}

/** A question to the operator (specification 3.2). */
export interface AskRequest {
  question: string;
  context: string;
  options: string[];
  run: number;
  session: string;
  signal: AbortSignal;
}

/** The answer of an operator who cannot be asked such a question: it goes to the inbox. */
export const PARK = Symbol("park");

/** The only access to the person who operates svc. No other code reads standard input. */
export interface Operator {
  confirm(request: ConfirmRequest): Promise<ConfirmAnswer>;
  /** The answer; undefined when no one can be asked, or none is given. */
  ask(request: AskRequest): Promise<string | typeof PARK | undefined>;
  /**
   * Whether all of these models (`<provider>/<model>`) of roles may be used from now on (specification
   * 5.2). Absent when no one can be asked.
   */
  approveModels?(models: string[]): Promise<boolean>;
}

/** For headless runs: answers every confirmation with `yes`, and no question. */
export function headlessOperator(yes: boolean): Operator {
  return {
    confirm: () => Promise.resolve({ granted: yes, scope: "once", by: yes ? "--yes" : "headless" }),
    ask: () => Promise.resolve(undefined),
  };
}
