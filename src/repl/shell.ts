import { join } from "node:path";
import type { Io } from "../commands/io.ts";
import type { Workspace } from "../engine/workspace.ts";
import { oneLine, visible } from "../platform/terminal.ts";
import { headlessOperator, type Operator } from "../policy/operator.ts";
import { asSlash } from "./commands/table.ts";
import { Conversation } from "./conversation.ts";
import { Focus } from "./focus.ts";
import { History } from "./input/history.ts";
import { Input } from "./input/input.ts";
import type { TerminalPort } from "./input/terminal.ts";
import { WaitingMessages } from "./messages.ts";
import { TerminalOperator } from "./operator.ts";
import type { SessionOptions } from "../commands/session_options.ts";
import { Output } from "./render/output.ts";
import { type Style, terminalStyle } from "../platform/style.ts";
import { wrapped } from "../platform/text.ts";

/** The parts of an open terminal session. */
export interface Opened {
  shell: Shell;
  cancellation: Cancellation;
  /** Prints a line at once, above the line being edited. */
  announce(line: string): void;
  /** Whether the operator is asked something. */
  asking(): boolean;
  process: Io;
  options: SessionOptions;
}

/** Creates the parts of a session. Reads and writes nothing. */
export function openShell(
  { io: process, port, workspace, options }: {
    io: Io;
    port: TerminalPort;
    workspace: Workspace;
    options: SessionOptions;
  },
): Opened {
  const { isTerminal } = port;
  const style = terminalStyle({
    isTerminal,
    environment: process.environment,
    setting: () => workspace.config.get("repl.theme"),
  });
  const output = new Output({
    // In raw mode a line feed does not return to the first column.
    write: (text) => port.write(isTerminal ? text.replace(/\r?\n/g, "\r\n") : text),
    columns: () => port.size().columns,
    rows: () => port.size().rows,
    isTerminal,
  }, style);
  const history = new History(join(workspace.paths.user, "history"), workspace.warn);
  const input: Input = new Input({
    port,
    history,
    unfold() {
      const text = output.folded?.().join("\n") ?? style.dim("Nothing is folded.");
      if (input.reading) input.announce(text);
      else output.line(text);
    },
  });
  const cancellation = new Cancellation(input);
  const terminal: TerminalOperator = new TerminalOperator({
    input,
    output,
    rows: () => port.size().rows,
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
    session: options.session,
    role: options.role,
    granted: options.overrides.model !== undefined,
    attended: isTerminal,
  });
  const focus: Focus = new Focus(() => conversation.runs);
  const io = shellIo({
    process,
    workspace,
    operator: isTerminal ? operator : undefined,
    session: () => focus.current()?.session ?? conversation.name,
    approvals: () => conversation.approvals(focus.run),
    inUse: () => [
      ...conversation.name === undefined ? [] : [conversation.name],
      ...conversation.runs.list().map(({ session }) => session),
    ],
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
    waiting: new WaitingMessages(),
    cancel: () => void cancellation.cancel(),
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
    const said = style.dim(wrapped(asSlash(oneLine(line)), output.columns()));
    if (input.reading) input.announce(said);
    else output.line(said); // keeps the status line intact
  };
  return { shell, cancellation, announce, asking: () => terminal.asking, process, options };
}

/** Sessions that are looked at together. */
const PAGE = 200;

/** The most recently written session, except sub-agent and job sessions. */
export async function newest({ sessions }: Workspace): Promise<string | undefined> {
  for (let offset = 0;; offset += PAGE) {
    const { names, total } = await sessions.index({ offset, limit: PAGE });
    const found = names.find((name) => !/^(sub|job)_/.test(name));
    if (found !== undefined || offset + PAGE >= total) return found;
  }
}

/** The open terminal session, as slash commands use it. */
export interface Shell {
  readonly workspace: Workspace;
  readonly conversation: Conversation;
  readonly focus: Focus;
  readonly input: Input;
  readonly output: Output;
  readonly style: Style;
  /** Input and output for shared commands. */
  readonly io: Io;
  /** Set to end the session after the current command. */
  left: boolean;
  /** The operator at the terminal, or a headless one. */
  readonly operator: Operator;
  /** What was typed during a turn and is not sent yet. */
  readonly waiting: WaitingMessages;
  /** Cancels the running work, as Ctrl-C does. */
  cancel(): void;
  /** Runs work with a signal that Ctrl-C and Escape abort. */
  cancellable<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

/** Input and output of a slash command: this terminal and the open workspace. */
export function shellIo(
  {
    process,
    workspace,
    operator,
    session,
    approvals,
    inUse,
    input,
    output,
    style,
    isTerminal,
    cancellation,
  }: {
    process: Io;
    workspace: Workspace;
    /** Omitted when input is not a terminal. */
    operator?: Operator;
    session(): string | undefined;
    approvals(): string[];
    inUse(): string[];
    input: Input;
    output: Output;
    style: Style;
    /** Whether input is a terminal; otherwise notes go to stderr. */
    isTerminal: boolean;
    cancellation(): { signal: AbortSignal; release(): void };
  },
): Io {
  const read = async (prompt: string, hidden: boolean): Promise<string | undefined> => {
    const question = prompt.endsWith(" ") ? prompt : `${prompt} `;
    output.hold();
    try {
      const answer = await input.read({ prompt: question, hidden, remember: false, fresh: true });
      return answer.type === "line" ? answer.text : undefined;
    } finally {
      output.release();
    }
  };
  return {
    environment: process.environment,
    program: "/",
    live: workspace,
    operator,
    session,
    approvals,
    inUse,
    columns: () => output.columns(),
    out: (text) => output.print(text),
    note: isTerminal
      ? (line, styled = false) =>
        output.line(
          styled ? line : style.dim(wrapped(asSlash(oneLine(line)), output.columns())),
        )
      : (line) => process.note(line),
    isTerminal: () => isTerminal,
    readInput: () => Promise.resolve(""), // further input lines are messages
    readLine: (question) => read(question, false),
    readHidden: (question) => read(question, true),
    async confirm(question) {
      const prompt = `${oneLine(visible(question))} [y/n]`; // it may quote a file of the worktree
      if (!isTerminal) return /^y(es)?$/i.test((await read(prompt, false))?.trim() ?? "");
      output.hold();
      try {
        const accepts = (key: string) => ["y", "n", "escape"].includes(key);
        const answer = await input.key({ prompt: `${prompt} `, accepts });
        return answer.type === "key" && answer.key === "y";
      } finally {
        output.release();
      }
    },
    onInterrupt: cancellation,
  };
}

/** The running work, cancelled by Ctrl-C, Escape, SIGINT and the end of the process. */
export class Cancellation {
  readonly #input: Pick<Input, "watch">;
  readonly #running = new Set<AbortController>();

  constructor(input: Pick<Input, "watch">) {
    this.#input = input;
  }

  /** Registers work; Ctrl-C and Escape abort its signal until it is released. */
  begin(): { signal: AbortSignal; release(): void } {
    const controller = new AbortController();
    this.#running.add(controller);
    const watch = this.#input.watch({ interrupt: () => this.cancel() });
    return {
      signal: controller.signal,
      release: () => {
        this.#running.delete(controller);
        watch.stop();
      },
    };
  }

  /** Cancels running work; returns whether there was any. */
  cancel(): boolean {
    const reason = new DOMException("Interrupted.", "AbortError");
    for (const controller of this.#running) controller.abort(reason);
    return this.#running.size > 0;
  }
}

/** Exit codes by terminating signal, as shells report them. */
const CODES = { SIGTERM: 143, SIGHUP: 129 } as const;

/**
 * SIGTERM and SIGHUP end the session in order: running work is cancelled and logged, and the terminal is
 * restored. SIGINT from another process cancels running work.
 */
export function onSignals(
  cancellation: Pick<Cancellation, "cancel">,
): { ending: AbortSignal; code(): number; release(): void } {
  const ending = new AbortController();
  let code = 0;
  const listeners: [Deno.Signal, () => void][] = [
    ["SIGINT", () => void cancellation.cancel()],
    ...Object.entries(CODES).map(([signal, exit]): [Deno.Signal, () => void] => [
      signal as Deno.Signal,
      () => {
        code = exit;
        ending.abort();
        cancellation.cancel();
      },
    ]),
  ];
  for (const [signal, listener] of listeners) Deno.addSignalListener(signal, listener);
  return {
    ending: ending.signal,
    code: () => code,
    release() {
      for (const [signal, listener] of listeners) Deno.removeSignalListener(signal, listener);
    },
  };
}
