import type { ToolArguments, ToolContext, ToolDefinition } from "../../../src/plugins/api.ts";
import { diffPreview } from "./preview.ts";
import { append, save } from "./save.ts";
import { readTextFile, regularFile } from "./text_file.ts";

export const fileWrite: ToolDefinition = {
  name: "file_write",
  description:
    "Write a text file: mode w replaces its whole content, mode a appends. Missing folders are made. " +
    "To change a part of a file use file_edit.",
  short: "Write or append to a text file.",
  permission: "edit",
  aliases: ["write_file", "write"],
  path_arg: "path",
  parameters: {
    type: "object",
    properties: {
      path: { type: "string", description: "File to write." },
      content: { type: "string", description: "The text." },
      mode: { type: "string", enum: ["w", "a"], description: "w replaces (default), a appends." },
    },
    required: ["path", "content"],
  },
  status: (args) => `${args.mode === "a" ? "append to" : "write"} ${args.path}`,
  confirm: preview,
  handler: write,
};

async function write(args: ToolArguments, context: ToolContext): Promise<string> {
  const { path, content, mode } = args;
  const absolute = context.paths.resolve(path);
  const before = await regularFile(path, absolute);
  if (mode === "a") await append(absolute, content, context);
  else await save(absolute, content, before, context);
  const done = before === undefined ? "Created" : mode === "a" ? "Appended" : "Overwritten";
  return `${done} ${absolute} (${lineCount(content)} lines, ${charCount(content)} chars)`;
}

async function preview(args: ToolArguments, context: ToolContext): Promise<string> {
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
