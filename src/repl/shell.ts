import type { Workspace } from "../engine/workspace.ts";
import type { Operator } from "../policy/operator.ts";
import type { Io } from "../commands/io.ts";
import type { Conversation } from "./conversation.ts";
import type { Focus } from "./focus.ts";
import type { Input } from "./input/input.ts";
import type { Output } from "./render/output.ts";
import type { Style } from "./render/style.ts";

/** What slash commands work with: the terminal session that is open. */
export interface Shell {
  readonly workspace: Workspace;
  readonly conversation: Conversation;
  readonly focus: Focus;
  readonly input: Input;
  readonly output: Output;
  readonly style: Style;
  /** The outside world for commands that the command line has too. */
  readonly io: Io;
  /** Set to end the session after this command. */
  left: boolean;
  /** The person at the terminal, or nobody. */
  readonly operator: Operator;
  /** Runs work that Ctrl-C can cancel. */
  cancellable<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
}
