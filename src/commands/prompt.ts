import { usageError } from "../platform/error.ts";
import type { Io } from "./io.ts";

/** Bytes of standard input that a prompt may have. */
const MOST = 16 * 1024 * 1024;
/** Milliseconds to wait for the first byte of a pipe that comes with a prompt: it may stay open and silent. */
const PATIENCE = 3000;

interface PromptOptions {
  /** Whether standard input may only be read where `-` asks for it. */
  unattended: boolean;
  /** Whether standard input is added to the prompt, however long it takes. Default: what is there. */
  more?: boolean;
}

/**
 * Reads the prompt: the argument, or standard input for `-` or when there is none. A file or pipe that comes with an
 * argument is added to it.
 *
 * @throws SvcError (exit 2): `no_prompt` when it is empty, `binary_input` when standard input is no text,
 * `long_input` when it is too long
 */
export async function readPrompt(
  given: string | undefined,
  { unattended, more = false }: PromptOptions,
  io: Io,
  { missing, hint }: { missing: string; hint: string },
): Promise<string> {
  const piped = given === "-" || (given === undefined && !unattended && !io.isTerminal("in"));
  const prompt = (piped ? await readText(io) : given ?? "").trim();
  if (prompt === "") {
    const empty = given === "-"
      ? "Standard input is empty, and the prompt was to come from it."
      : "";
    throw usageError("no_prompt", empty || missing, hint);
  }
  if (piped || (unattended && !more)) return prompt;
  const text = (await readText(io, more ? undefined : PATIENCE)).trimEnd();
  if (text === "") return prompt;
  let tag = "stdin";
  while (text.includes(`</${tag}>`)) tag += "_";
  const lines = text.split("\n").length;
  io.note(`Added standard input to the prompt: ${lines === 1 ? "1 line" : `${lines} lines`}.`);
  return `${prompt}\n\nThis was piped in with the prompt:\n\n<${tag}>\n${text}\n</${tag}>`;
}

/** The text of standard input; empty when it has none. */
async function readText(io: Io, patience?: number): Promise<string> {
  const slow = () => io.note("Reading standard input until it ends.");
  const bytes = await io.readBytes?.({ most: MOST, patience, slow }) ?? new Uint8Array();
  if (bytes === "silent") {
    io.note(
      `Standard input is a pipe in which nothing came for ${
        PATIENCE / 1000
      } s; the prompt goes without it. ` +
        'To wait for it: svc run -p "..." -; to leave it out at once: </dev/null or --unattended.',
    );
    return "";
  }
  if (bytes.length > MOST) {
    throw usageError(
      "long_input",
      `Standard input has more than ${MOST} bytes, the most that a prompt gets.`,
      "Save it in a file in the worktree, and name the file in the prompt.",
    );
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch {
    // no UTF-8
  }
  throw usageError(
    "binary_input",
    "Standard input is no text: it has NUL bytes, or is not UTF-8.",
    "Save it in a file in the worktree, and name the file in the prompt.",
  );
}
