import { errorMessage, usageError } from "./error.ts";

/**
 * Makes text from a model, a tool or a server harmless to print. Removes escape sequences (CSI, OSC, DCS and
 * the like; an unterminated one ends with its line), the C0 and C1 control characters except tab and line
 * feed, the bidirectional overrides that can disguise a command, and zero-width characters and tags that can
 * hide text, except those that join letters and emoji. A line or paragraph separator becomes a space.
 */
export function stripControl(text: string): string {
  if (!CONTROL.test(text)) return text;
  return text.replace(SEQUENCES, "").replace(/[\u2028\u2029]/g, " ").replace(CONTROLS, "");
}

/** A character that {@linkcode stripControl} does not leave as it is. */
export const CONTROL =
  // deno-lint-ignore no-control-regex
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/u;
const CONTROLS = new RegExp(`\\r(?=\\n)|${CONTROL.source}`, "gu");
const SEQUENCES =
  // deno-lint-ignore no-control-regex
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\n\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]/g;

/**
 * Writes out every character that a terminal would act on, that is invisible or that disguises text; line feeds and
 * tabs stay. For texts that the operator must approve or answer: nothing in them may be hidden.
 */
export function visible(text: string): string {
  // Controls, formats (bidirectional and zero-width marks, tags), separators, spaces other than the plain one, fillers,
  // variation selectors, private and unassigned characters, and the empty braille pattern.
  const disguise = /(?![\n\t ])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu;
  return text.replace(/\r\n/g, "\n").toWellFormed().replace(disguise, (character) => {
    const code = character.codePointAt(0)!;
    if (code < 0x20) return `^${String.fromCharCode(code + 0x40)}`;
    return code === 0x7f ? "^?" : `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
  });
}

/** Puts a message on one line, so that quoted text cannot start a line that looks like one of svc's own. */
export function oneLine(text: string): string {
  return stripControl(text).replace(/[ \t]*\n\s*/g, " ");
}

/** Columns of the terminal of standard output; undefined when it is not a terminal. */
export function terminalColumns(): number | undefined {
  try {
    return Deno.consoleSize().columns || undefined;
  } catch {
    return undefined;
  }
}

/**
 * Asks on the terminal, through `write`, for a line that is not echoed. Undefined when the person cancels
 * with Ctrl-C or Ctrl-D.
 */
export function readHidden(
  question: string,
  write: (text: string) => void,
): string | undefined {
  const bytes: number[] = [];
  Deno.stdin.setRaw(true); // before the question: early input must not be echoed either
  try {
    write(question);
    const buffer = new Uint8Array(256);
    while (true) {
      const count = Deno.stdin.readSync(buffer);
      if (count === null) return undefined;
      for (const byte of buffer.subarray(0, count)) {
        if (byte === 3 || (byte === 4 && bytes.length === 0)) return undefined;
        if (byte === 10 || byte === 13) {
          return new TextDecoder().decode(new Uint8Array(bytes));
        }
        if (byte === 21) bytes.length = 0; // Ctrl-U
        else if (byte === 8 || byte === 127) erase(bytes);
        else bytes.push(byte);
      }
    }
  } finally {
    Deno.stdin.setRaw(false);
    write("\n");
  }
}

/** Removes the last character, which may take several bytes in UTF-8. */
function erase(bytes: number[]): void {
  while (bytes.length > 0 && (bytes.pop()! & 0xc0) === 0x80);
}

/**
 * Opens a file in an editor on this process's terminal and waits for the editor to end. The command is split
 * into words, which may be quoted; no shell runs.
 *
 * @returns the editor's exit code
 * @throws SvcError `no_editor` (exit 2) when it cannot be started
 */
export async function openEditor(command: string, file: string): Promise<number> {
  const [program, ...args] = words(command);
  if (program === undefined) {
    throw usageError("no_editor", "No editor is set.", `Set EDITOR, or edit the file: ${file}`);
  }
  try {
    const editor = new Deno.Command(program, {
      args: [...args, file],
      stdin: "inherit",
      stdout: "inherit",
      stderr: "inherit",
    }).spawn();
    return (await editor.status).code;
  } catch (error) {
    throw usageError(
      "no_editor",
      `The editor ${program} does not start: ${errorMessage(error)}`,
      `Set EDITOR, or edit the file: ${file}`,
    );
  }
}

function words(command: string): string[] {
  return Array.from(
    command.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g),
    ([word]) => word.replace(/"([^"]*)"|'([^']*)'/g, (_, double, single) => double ?? single),
  );
}
