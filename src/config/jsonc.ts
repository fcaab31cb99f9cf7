import {
  getNodeValue,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from "jsonc-parser";
import { type SvcError, usageError } from "../platform/error.ts";
import { isObject } from "./key_path.ts";

/**
 * The settings object in the text of a configuration file: JSON with comments and trailing commas.
 *
 * @throws SvcError `config_syntax` (exit 2) that names file, line and column. The policy is in this file:
 * reading a damaged one as empty would open what it closes.
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

function position(text: string, offset: number): string {
  const before = text.slice(0, offset).split(/\r\n|\r|\n/);
  return `line ${before.length}, column ${before.at(-1)!.length + 1}`;
}
