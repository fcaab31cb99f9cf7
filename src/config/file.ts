import {
  getNodeValue,
  type Node,
  parse,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from "jsonc-parser";
import { errorMessage, SvcError, usageError, writeFailure } from "../platform/error.ts";
import { isLink, isObject, withFileLock, writeFileAtomic } from "../platform/files.ts";

const BOM = "\uFEFF";

/**
 * The text of a configuration file without its byte order mark; undefined when there is none.
 *
 * @throws SvcError `config_file` (exit 2) for a file that exists and cannot be read as text: an unreadable
 * policy must not count as an empty one.
 */
export function readConfigFile(path: string): string | undefined {
  const text = readText(path);
  return text?.startsWith(BOM) ? text.slice(BOM.length) : text;
}

/**
 * Replaces the text of a configuration file under its lock. `change` receives the current text and returns
 * the new one, or undefined for no change. A link is followed and its target is written. The mode and the
 * byte order mark of the file are kept.
 */
export async function changeConfigFile(
  path: string,
  change: (text: string | undefined) => string | undefined,
): Promise<void> {
  readText(path); // throws for a path that is no file, before the lock file is created
  const target = targetOf(path);
  try {
    await withFileLock(target, () => {
      const old = readText(target);
      const mark = old?.startsWith(BOM) ? BOM : "";
      const text = change(old?.slice(mark.length));
      if (text === undefined || mark + text === old) return;
      const mode = old === undefined ? 0o644 : Deno.statSync(target).mode! & 0o777;
      writeFileAtomic(target, mark + text, mode);
      // The umask of the process restricts the mode of the new file.
      if (old !== undefined) Deno.chmodSync(target, mode);
    });
  } catch (error) {
    if (error instanceof SvcError) throw error;
    throw writeFailure("config_file", path, error);
  }
}

function readText(path: string): string | undefined {
  try {
    if (!Deno.statSync(path).isFile) throw fileError(path, "is not a regular file");
    const bytes = Deno.readFileSync(path);
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    if (error instanceof SvcError) throw error;
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) {
      if (isLink(path)) throw fileError(path, "is a link to a file that does not exist");
      return undefined;
    }
    if (error instanceof TypeError) throw fileError(path, "is not UTF-8 text", error);
    throw fileError(path, `cannot be read: ${errorMessage(error)}`, error);
  }
}

function targetOf(path: string): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    return path; // the file does not exist yet, or is a dangling link, which reading reports
  }
}

function fileError(path: string, problem: string, cause?: unknown): SvcError {
  return new SvcError("config_file", `The configuration file ${path} ${problem}.`, {
    hint:
      "Settings, and with them the tool policy, come from this file; put it right or remove it.",
    exit: 2,
    cause,
  });
}

/**
 * The settings object in the text of a configuration file: JSON with comments and trailing commas.
 *
 * @throws SvcError `config_syntax` (exit 2) that names file, line and column. The policy is in this file:
 * a damaged file that is read as empty would allow more.
 */
export function parseSettings(text: string, file: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text); // several times as fast, and most files are plain JSON
  } catch {
    return getNodeValue(parseObject(text, file)) as Record<string, unknown>;
  }
  if (!isObject(value)) throw noObject(text, file);
  return value;
}

/** The syntax tree of a configuration file; throws like `parseSettings`. */
export function parseObject(text: string, file: string): Node {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  const [error] = errors;
  if (error !== undefined) throw syntaxError(text, file, error);
  if (root?.type !== "object") throw noObject(text, file);
  return root;
}

function noObject(text: string, file: string): SvcError {
  return usageError(
    "config_syntax",
    `${file} must hold an object of settings: ${position(text, text.search(/\S|$/))}.`,
    "Write {} into it if nothing should be set.",
  );
}

function syntaxError(text: string, file: string, error: ParseError): SvcError {
  const code = printParseErrorCode(error.error);
  const problem = text.trim() === "" ? "the file is empty" : PROBLEMS[code] ?? "unreadable text";
  return usageError(
    "config_syntax",
    `${file} is not valid JSON: ${problem} at ${position(text, error.offset)}.`,
    text.trim() === ""
      ? "Write {} into it if nothing should be set."
      : "Correct the file; comments and trailing commas are fine.",
  );
}

const PROBLEMS: Record<string, string> = {
  InvalidSymbol: "a word that needs double quotes",
  InvalidNumberFormat: "a malformed number",
  PropertyNameExpected: "a name in double quotes is missing",
  ValueExpected: "a value is missing",
  ColonExpected: "a colon is missing",
  CommaExpected: "a comma is missing",
  CloseBraceExpected: "a closing } is missing",
  CloseBracketExpected: "a closing ] is missing",
  EndOfFileExpected: "there is text after the closing }",
  InvalidCommentToken: "a malformed comment",
  UnexpectedEndOfComment: "a comment that does not end",
  UnexpectedEndOfString: "a text that does not end",
  UnexpectedEndOfNumber: "a malformed number",
  InvalidUnicode: "a malformed \\u escape",
  InvalidEscapeCharacter: "an unknown escape after a backslash",
  InvalidCharacter: "a control character inside a text",
};

/** Where a text stops being JSON, or a byte of it is no UTF-8: `line 3, column 14`. */
export function jsonFault(text: string): string {
  const errors: ParseError[] = [];
  parse(text, errors, { disallowComments: true });
  return position(text, errors[0]?.offset ?? text.search(/\uFFFD|$/));
}

function position(text: string, offset: number): string {
  const before = text.slice(0, offset).split(/\r\n|\r|\n/);
  return `line ${before.length}, column ${before.at(-1)!.length + 1}`;
}
