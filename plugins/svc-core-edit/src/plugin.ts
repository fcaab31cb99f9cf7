import type {
  ToolArguments,
  ToolContext,
  ToolDefinition,
  ToolRegistrar,
} from "../../../src/plugins/api.ts";
import { notFound, type Replacement, replaceText } from "./replace.ts";
import {
  append,
  diffPreview,
  readTextFile,
  regularFile,
  save,
  type TextFile,
} from "./text_file.ts";

export function register_tools(registry: ToolRegistrar): void {
  registry.register(fileWrite);
  registry.register(fileEdit);
}

const fileWrite: ToolDefinition = {
  name: "file_write",
  description:
    "Write a text file, and its missing folders. To change a part of a file use file_edit.",
  short: "Write or append to a text file.",
  permission: "edit",
  aliases: ["write_file", "write"],
  path_arg: "path",
  parameters: {
    type: "object",
    properties: {
      path: { type: "string" },
      content: { type: "string" },
      mode: {
        type: "string",
        enum: ["w", "a"],
        description: "w replaces the content (default), a appends.",
      },
    },
    required: ["path", "content"],
  },
  status: (args) => `${args.mode === "a" ? "append to" : "write"} ${args.path}`,
  confirm: previewWrite,
  details: (_, { mode }) => mode === "a" ? {} : { line: 1 },
  handler: write,
};

async function write(args: ToolArguments, context: ToolContext): Promise<string> {
  const { path, content, mode } = args;
  const absolute = context.paths.resolve(path);
  const before = await regularFile(path, absolute);
  if (mode === "a") await append(absolute, content, before, context);
  else await save(absolute, content, before, context);
  const done = before === undefined ? "Created" : mode === "a" ? "Appended" : "Overwritten";
  return `${done} ${absolute} (${lineCount(content)} lines, ${charCount(content)} chars)`;
}

async function previewWrite(args: ToolArguments, context: ToolContext): Promise<string> {
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

const fileEdit: ToolDefinition = {
  name: "file_edit",
  description:
    "Replace text in a file. old must occur in it exactly, white space included, without the " +
    "line numbers of file_read.",
  short: "Replace text in a file.",
  permission: "edit",
  aliases: ["edit"],
  param_aliases: { old_text: "old", new_text: "new" },
  path_arg: "path",
  parameters: {
    type: "object",
    properties: {
      path: { type: "string" },
      old: { type: "string" },
      new: { type: "string" },
      count: {
        type: "integer",
        description: "Occurrences, from the first (default 1); 0: all.",
      },
    },
    required: ["path", "old", "new"],
  },
  status: (args) => `edit ${args.path}`,
  confirm: previewEdit,
  details: (result) => ({ line: Number(/, at line (\d+),/.exec(result)?.[1]) }),
  handler: edit,
};

async function edit(args: ToolArguments, context: ToolContext): Promise<string> {
  const { file, result } = await plan(args, context);
  if (typeof result === "string") return result;
  await save(file.path, result.text, file.info, context);
  return report(args.path, result);
}

/** The diff, or the `Error:` text that the call would return. */
async function previewEdit(args: ToolArguments, context: ToolContext): Promise<string> {
  try {
    const { file, result } = await plan(args, context);
    if (typeof result === "string") return result;
    return await diffPreview(args.path, file.text, result.text);
  } catch (error) {
    return `Error: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Reads the file and computes the replacement, or the `Error:` text. */
async function plan(
  args: ToolArguments,
  context: ToolContext,
): Promise<{ file: TextFile; result: Replacement | string }> {
  const { path, old } = args;
  const file = await readTextFile(path, context);
  if (file === undefined) throw new Error(`there is no ${path}; create it with file_write`);
  if (old === "") throw new Error("old is empty; give the text to replace, or use file_write");
  if (old === args.new) throw new Error("old and new are the same; nothing would change");
  const result = replaceText(file.text, old, args.new, Math.max(0, args.count ?? 1));
  if (result !== undefined) return { file, result };
  const why = context.reads === false
    ? `old does not occur in ${path}`
    : notFound(path, file.text, old);
  return { file, result: `Error: ${why}` };
}

function report(path: string, replacement: Replacement): string {
  const { replaced, total, added, removed, left, line } = replacement;
  const done = `Edited ${path} (${replaced} of ${total} occurrences, at line ${line}, ` +
    `+${added} -${removed} lines)`;
  if (left.length === 0) return done;
  const lines = left.slice(0, 10).join(", ") + (left.length > 10 ? ", ..." : "");
  return `${done}\nLeft as they were: ${left.length} more, at line ${lines}. Pass count=0 to ` +
    "replace all.";
}
