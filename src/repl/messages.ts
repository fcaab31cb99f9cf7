import { oneLine } from "../platform/terminal.ts";
import { fit, plural } from "../platform/text.ts";
import type { Shell } from "./shell.ts";

/** A slash command; a path such as /etc/hosts does not match. */
export const COMMAND = /^\/([a-z?][\w-]*)(?:\s+([^]*))?$/i;

/** The messages and commands that the operator has typed during a turn and that wait to be sent. */
export class WaitingMessages {
  readonly #lines: string[] = [];

  get lines(): readonly string[] {
    return this.#lines;
  }

  add(text: string): void {
    this.#lines.push(text);
  }

  /** Takes back the newest. */
  takeBack(): string | undefined {
    return this.#lines.pop();
  }

  /** Takes the oldest. */
  next(): string | undefined {
    return this.#lines.shift();
  }

  /** Takes those for the running turn: the messages before the first command, `/name` or `!program`. */
  forTurn(): string[] {
    const end = this.#lines.findIndex((line) => /^\s*!/.test(line) || COMMAND.test(line.trim()));
    return this.#lines.splice(0, end < 0 ? this.#lines.length : end);
  }

  /** Takes all of them, as one text to edit. */
  all(): string {
    return this.#lines.splice(0).join("\n");
  }
}

/**
 * Lets the operator write messages while a turn runs. They wait above the prompt until the turn takes them or
 * has ended.
 *
 * @returns `take` takes the messages for the model's next reply, and `end` ends the writing: what waits is sent
 * next, or returns to the editor
 */
export async function writeMessages(
  shell: Shell,
): Promise<{ take(): string[]; end(send: boolean): Promise<void> }> {
  const { input, output, style, waiting } = shell;
  if (!output.isTerminal) return { take: () => [], end: () => Promise.resolve() };
  const { promptText } = await import("./terminal_session.ts");
  const writing = input.messages({
    prompt: promptText(shell),
    async complete(line, cursor) {
      const { complete } = await import("./commands/complete.ts");
      return await complete(line, cursor, shell);
    },
    placeholder: () =>
      style.dim(
        waiting.lines.length > 0
          ? "(↑ takes the last one back)"
          : "(Enter adds a message, Esc interrupts)",
      ),
    waiting(columns) {
      const shown = waiting.lines.slice(-MOST_ROWS);
      const more = waiting.lines.length - shown.length;
      return [
        ...more > 0 ? [`${plural(more, "earlier message")}`] : [],
        ...shown.map((line) => `↳ ${oneLine(line)}`),
      ].map((row) => style.dim(fit(row, columns - 1)));
    },
    takeBack: () => waiting.takeBack(),
    sent: (text) => waiting.add(text),
    interrupted: () => shell.cancel(),
    ended: () => void (shell.left = true),
    surface: {
      draw: (frame) => output.edited(frame),
      above: (text) => output.line(text),
      clear: () => output.clear(),
      leave: () => output.leave(),
      resized: () => output.resized(),
      resumed: () => output.resized(),
    },
  });
  return {
    take() {
      const taken = waiting.forTurn();
      if (taken.length > 0) writing.redraw();
      return taken;
    },
    async end(send) {
      await writing.close();
      output.edited(undefined);
      if (!send && waiting.lines.length > 0) input.giveBack(waiting.all());
    },
  };
}

/** Most waiting messages that are shown. */
const MOST_ROWS = 6;
