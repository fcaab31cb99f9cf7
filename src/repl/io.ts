import type { Io } from "../commands/io.ts";
import type { Workspace } from "../engine/workspace.ts";
import { oneLine } from "../platform/terminal.ts";
import type { Operator } from "../policy/operator.ts";
import { asSlash } from "./as_slash.ts";
import type { Input } from "./input/input.ts";
import type { Output } from "./render/output.ts";
import type { Style } from "./render/style.ts";
import { wrapped } from "./render/width.ts";

/** The outside world of a command that is called with a slash: the same terminal, the worktree that is open. */
export function shellIo(
  { process, workspace, operator, input, output, style, isTerminal, cancellation }: {
    process: Io;
    workspace: Workspace;
    /** Left out when no person is there. */
    operator?: Operator;
    input: Input;
    output: Output;
    style: Style;
    /** Whether a person is there; otherwise notes go where they do not mix with answers. */
    isTerminal: boolean;
    cancellation(): { signal: AbortSignal; release(): void };
  },
): Io {
  const read = async (prompt: string, hidden: boolean): Promise<string | undefined> => {
    output.fresh();
    const question = prompt.endsWith(" ") ? prompt : `${prompt} `;
    const answer = await input.read({ prompt: question, hidden, remember: false, fresh: true });
    return answer.type === "line" ? answer.text : undefined;
  };
  return {
    environment: process.environment,
    program: "/",
    live: workspace,
    operator,
    out: (text) => output.print(text),
    note: isTerminal
      ? (line) => output.line(style.dim(wrapped(asSlash(oneLine(line)), output.columns())))
      : (line) => process.note(line),
    isTerminal: () => isTerminal,
    readInput: () => Promise.resolve(""), // what is typed next is a message, and no command's input
    readLine: (question) => read(question, false),
    readHidden: (question) => read(question, true),
    async confirm(question) {
      return /^y(es)?$/i.test((await read(`${question} [y/n]`, false))?.trim() ?? "");
    },
    onInterrupt: cancellation,
  };
}
