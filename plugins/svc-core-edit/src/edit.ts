import type { ToolArguments, ToolContext } from "../../../src/plugins/api.ts";
import { forgivingEdit, indentedText } from "./match.ts";
import { notFound, type Replacement, replaceText } from "./replace.ts";
import {
  append,
  diffPreview,
  readTextFile,
  regularFile,
  save,
  type TextFile,
} from "./text_file.ts";

/** The tool `file_write`. */
export async function write(args: ToolArguments, context: ToolContext): Promise<string> {
  const { path, content, mode } = args;
  const absolute = context.paths.resolve(path);
  const before = await regularFile(path, absolute);
  if (mode === "a") await append(absolute, content, before, context);
  else await save(absolute, content, before, context);
  const done = before === undefined ? "Created" : mode === "a" ? "Appended" : "Overwritten";
  return `${done} ${absolute} (${lineCount(content)} lines, ${charCount(content)} chars)`;
}

export async function previewWrite(args: ToolArguments, context: ToolContext): Promise<string> {
  const { path, content, mode } = args;
  const file = await readTextFile(path, context).catch(() => "unreadable" as const);
  if (file === undefined) return `New file ${path}:\n${content}`;
  if (mode === "a") return `Append to ${path}:\n${content}`;
  if (file === "unreadable") return `${path} is replaced by:\n${content}`;
  return await diffPreview(path, file.text, content);
}

function lineCount(text: string): number {
  const newlines = text.split("\n").length - 1;
  return newlines + (text === "" || text.endsWith("\n") ? 0 : 1);
}

/** Characters, not UTF-16 units. */
function charCount(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** One replacement of a call. */
interface Edit {
  old: string;
  new: string;
  count?: number;
}

/** The tool `file_edit`. */
export async function edit(args: ToolArguments, context: ToolContext): Promise<string> {
  const { file, text, reports } = await plan(args, context);
  await save(file.path, text, file.info, context);
  return reports.join("\n");
}

/** The diff, or the `Error:` text that the call would return. */
export async function previewEdit(args: ToolArguments, context: ToolContext): Promise<string> {
  try {
    const { file, text } = await plan(args, context);
    return await diffPreview(args.path, file.text, text);
  } catch (error) {
    return `Error: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/**
 * Reads the file and computes the text after all edits.
 *
 * @throws Error for an edit whose place is not there, or not certain
 */
async function plan(
  args: ToolArguments,
  context: ToolContext,
): Promise<{ file: TextFile; text: string; reports: string[] }> {
  const { path } = args;
  const edits = editsOf(args);
  const file = await readTextFile(path, context);
  if (file === undefined) throw new Error(`there is no ${path}; create it with file_write`);
  let { text } = file;
  const reports: string[] = [];
  for (const [i, each] of edits.entries()) {
    const result = replacementOf(path, text, each, context.reads !== false);
    if (typeof result === "string") {
      throw new Error(edits.length === 1 ? result : `edit ${i + 1} of ${edits.length}: ${result}`);
    }
    text = result.text;
    reports.push(report(path, result, each.count));
  }
  if (text === file.text) throw new Error("old and new are the same; nothing would change");
  return { file, text, reports };
}

/** @throws Error for edits that are no edits */
function editsOf({ edits, old, new: replacement, count }: ToolArguments): Edit[] {
  if (edits === undefined) {
    if (old === undefined || replacement === undefined) throw new Error("old or new is missing");
    return [{ old, new: replacement, count }];
  }
  if (old !== undefined) throw new Error("pass either edits, or old and new");
  const found = (edits as Record<string, unknown>[]).map((each): Edit => ({
    old: each.old ?? each.old_text as unknown,
    new: each.new ?? each.new_text as unknown,
    count: each.count,
  } as Edit));
  const valid = found.every((each) =>
    typeof each.old === "string" && typeof each.new === "string" &&
    (each.count === undefined || Number.isSafeInteger(each.count))
  );
  if (!valid || found.length === 0) throw new Error("each of edits has the texts old and new");
  return found;
}

/** The replacement, or a sentence that says why there is none. */
function replacementOf(
  path: string,
  text: string,
  { old, new: replacement, count }: Edit,
  reads: boolean,
): Replacement & { how?: string } | string {
  if (old === "") return "old is empty; give the text to replace, or use file_write";
  if (old === replacement) return "old and new are the same; nothing would change";
  const exact = replaceText(text, old, replacement, Math.max(0, count ?? 1));
  if (exact !== undefined && count === undefined && exact.total > 1) {
    const { left } = replaceText(text, old, old, 1)!;
    const lines = [exact.line, ...left].slice(0, 10).join(", ");
    return `old occurs ${exact.total} times in ${path}` + (reads ? `, at line ${lines}` : "") +
      "; give more of the lines around the one that is meant, or count: 0 for all of them";
  }
  if (exact !== undefined) {
    const whole = exact.total === 1 ? indentedText(text, old, replacement) : replacement;
    if (whole === replacement) return exact;
    const found = forgivingEdit(path, text, old, replacement);
    if (found !== undefined) return found;
    if (whole === undefined) {
      return "old begins behind the indentation of its line, and that of new is not certain; write both from the " +
        "beginning of the line";
    }
    const how = "the indentation was adapted to the file";
    return { ...replaceText(text, old, whole, 1)!, how };
  }
  const found = (count ?? 1) === 1 ? forgivingEdit(path, text, old, replacement) : undefined;
  if (typeof found === "object") return found;
  if (!reads) return `old does not occur in ${path}`;
  const made = replacement.trim() === "" ? undefined : replaceText(text, replacement, "", 1);
  if (made !== undefined) {
    return `old does not occur in ${path}, and new does, at line ${made.line}: the edit may have been made already`;
  }
  return found ?? notFound(path, text, old);
}

function report(
  path: string,
  replacement: Replacement & { how?: string },
  count: number | undefined,
): string {
  const { replaced, total, added, removed, left, line, how = "" } = replacement;
  const done = `Edited ${path} (${replaced} of ${total} occurrences, at line ${line}, ` +
    `+${added} -${removed} lines)${how === "" ? "" : `: ${how}`}`;
  if (left.length === 0 || count === undefined) return done;
  const lines = left.slice(0, 10).join(", ") + (left.length > 10 ? ", ..." : "");
  return `${done}\nLeft as they were: ${left.length} more, at line ${lines}. Pass count=0 to ` +
    "replace all.";
}
