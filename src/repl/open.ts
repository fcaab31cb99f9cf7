import { join } from "node:path";
import type { Io } from "../commands/io.ts";
import type { Workspace } from "../engine/workspace.ts";
import { oneLine } from "../platform/terminal.ts";
import { headlessOperator } from "../policy/operator.ts";
import { Cancellation } from "./cancellation.ts";
import { Conversation } from "./conversation.ts";
import { Focus } from "./focus.ts";
import { History } from "./input/history.ts";
import { Input } from "./input/input.ts";
import type { TerminalPort } from "./input/terminal.ts";
import { shellIo } from "./io.ts";
import { TerminalOperator } from "./operator.ts";
import type { ReplOptions } from "./options.ts";
import { Output } from "./render/output.ts";
import { style as makeStyle } from "./render/style.ts";
import { wrapped } from "./render/width.ts";
import type { Shell } from "./shell.ts";

/** A session's parts, put together. */
export interface Opened {
  shell: Shell;
  cancellation: Cancellation;
  /** Says a line now, above what is being typed. */
  announce(line: string): void;
  process: Io;
  options: ReplOptions;
}

/** Puts a session together. Nothing is read or written yet. */
export function openShell(
  { io: process, port, workspace, options }: {
    io: Io;
    port: TerminalPort;
    workspace: Workspace;
    options: ReplOptions;
  },
): Opened {
  const { isTerminal } = port;
  const style = makeStyle({
    enabled: isTerminal && process.environment.get("NO_COLOR") === undefined,
  });
  const output = new Output({
    // Whether the terminal is raw or not, a line feed also returns.
    write: (text) => port.write(isTerminal ? text.replace(/\r?\n/g, "\r\n") : text),
    columns: () => port.size().columns,
    isTerminal,
  }, style);
  const history = new History(join(workspace.paths.user, "history"), workspace.warn);
  const input = new Input({ port, history });
  const cancellation = new Cancellation(input);
  const terminal: TerminalOperator = new TerminalOperator({
    input,
    output,
    style,
    config: workspace.config,
    clock: workspace.clock,
    cancel: () => cancellation.cancel(),
    isActive: (session) => session === conversation.runs.list()[focus.run - 1]?.session,
  });
  const operator = isTerminal ? terminal : headlessOperator(false);
  const conversation: Conversation = new Conversation({
    workspace,
    operator,
    session: options.continue ? newest(workspace) : options.session,
    role: options.role,
    granted: options.overrides.model !== undefined,
    attended: isTerminal,
  });
  const focus: Focus = new Focus(() => conversation.runs);
  const io = shellIo({
    process,
    workspace,
    operator: isTerminal ? operator : undefined,
    input,
    output,
    style,
    isTerminal,
    cancellation: () => cancellation.begin(),
  });
  const shell: Shell = {
    workspace,
    conversation,
    focus,
    input,
    output,
    style,
    io,
    operator,
    left: false,
    async cancellable(work) {
      const { signal, release } = cancellation.begin();
      try {
        return await work(signal);
      } finally {
        release();
      }
    },
  };
  const announce = (line: string) => {
    const said = style.dim(wrapped(oneLine(line), output.columns()));
    if (input.reading) input.announce(said);
    else output.line(said); // which knows of the status line
  };
  return { shell, cancellation, announce, process, options };
}

/** The session that was last written to, leaving aside those of sub-agents and jobs. */
function newest({ sessions }: Workspace): string | undefined {
  return sessions.newest().find(({ name }) => !/^(sub|job)_/.test(name))?.name;
}
