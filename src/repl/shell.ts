import type { Io } from "../commands/io.ts";
import type { Workspace } from "../engine/workspace.ts";
import { oneLine } from "../platform/terminal.ts";
import { headlessOperator, type Operator } from "../policy/operator.ts";
import { asSlash } from "./as_slash.ts";
import { Conversation } from "./conversation.ts";
import { Focus } from "./focus.ts";
import { History } from "./input/history.ts";
import { Input } from "./input/input.ts";
import type { TerminalPort } from "./input/terminal.ts";
import { TerminalOperator } from "./operator.ts";
import type { ReplOptions } from "./options.ts";
import { Output } from "./render/output.ts";
import { type Style, style as makeStyle } from "./render/style.ts";
import { wrapped } from "./render/text.ts";
import { join } from "node:path";

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

/** What Ctrl-C, SIGINT and the end of the process cancel: the work that runs, if any does. */
export class Cancellation {
  readonly #input: Pick<Input, "watch">;
  readonly #running = new Set<AbortController>();

  constructor(input: Pick<Input, "watch">) {
    this.#input = input;
  }

  /** Work begins; until it is released, Ctrl-C aborts the signal. */
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

  /** Cancels what runs; says whether anything did. */
  cancel(): boolean {
    const reason = new DOMException("Interrupted.", "AbortError");
    for (const controller of this.#running) controller.abort(reason);
    return this.#running.size > 0;
  }
}

/** Exit codes by the signal that ended the process, as shells report them. */
const CODES = { SIGTERM: 143, SIGHUP: 129 } as const;

/**
 * SIGTERM and SIGHUP end the session as leaving does: what runs is cancelled and logged, and the terminal is
 * given back. SIGINT, sent from elsewhere, cancels what runs.
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
