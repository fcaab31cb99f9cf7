import type { ToolArguments, ToolContext, ToolDefinition } from "../../../src/plugins/api.ts";
import { notFound } from "./not_found.ts";
import { diffPreview } from "./preview.ts";
import { type Replacement, replaceText } from "./replace.ts";
import { save } from "./save.ts";
import { readTextFile, type TextFile } from "./text_file.ts";

export const fileEdit: ToolDefinition = {
  name: "file_edit",
  description:
    "Replace text in a file. `old` must occur in the file exactly, white space included, without " +
    "the line numbers of file_read. The first occurrence is replaced unless count says otherwise.",
  short: "Replace text in a file.",
  permission: "edit",
  aliases: ["edit"],
  param_aliases: { old_text: "old", new_text: "new" },
  path_arg: "path",
  parameters: {
    type: "object",
    properties: {
      path: { type: "string", description: "File to edit." },
      old: { type: "string", description: "Text to replace." },
      new: { type: "string", description: "Text to put in its place." },
      count: {
        type: "integer",
        description: "Occurrences to replace, from the start (default 1). 0 replaces all.",
      },
    },
    required: ["path", "old", "new"],
  },
  status: (args) => `edit ${args.path}`,
  confirm: preview,
  handler: edit,
};

async function edit(args: ToolArguments, context: ToolContext): Promise<string> {
  const { file, result } = await plan(args, context);
  if (typeof result === "string") return result;
  await save(file.path, result.text, file.info, context);
  return report(args.path, result);
}

/** The diff, or the `Error:` text that the call itself would come to. */
async function preview(args: ToolArguments, context: ToolContext): Promise<string> {
  try {
    const { file, result } = await plan(args, context);
    if (typeof result === "string") return result;
    return await diffPreview(args.path, file.text, result.text);
  } catch (error) {
    return `Error: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** The file and what becomes of it, or the `Error:` text. */
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

function report(path: string, { replaced, total, added, removed, left }: Replacement): string {
  const done = `Edited ${path} (${replaced} of ${total} occurrences, +${added} -${removed} lines)`;
  if (left.length === 0) return done;
  const lines = left.slice(0, 10).join(", ") + (left.length > 10 ? ", ..." : "");
  return `${done}\nLeft as they were: ${left.length} more, at line ${lines}. Pass count=0 to ` +
    "replace all.";
}
