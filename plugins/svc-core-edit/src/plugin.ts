import type { ToolDefinition, ToolRegistrar } from "../../../src/plugins/api.ts";

export function register_tools(registry: ToolRegistrar): void {
  registry.register(fileWrite);
  registry.register(fileEdit);
  registry.register(patch);
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
  confirm: async (...call) => await (await import("./edit.ts")).previewWrite(...call),
  details: (_, { mode }) => mode === "a" ? {} : { line: 1 },
  handler: async (...call) => await (await import("./edit.ts")).write(...call),
};

const fileEdit: ToolDefinition = {
  name: "file_edit",
  description: "Replace text in a file. Copy old exactly, without line numbers.",
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
      count: { type: "integer", description: "1: the first; 0: all." },
      edits: {
        type: "array",
        description: "Several {old, new}.",
        items: { type: "object" },
      },
    },
    required: ["path"],
  },
  status: (args) => `edit ${args.path}`,
  confirm: async (...call) => await (await import("./edit.ts")).previewEdit(...call),
  details: (result) => ({ line: Number(/, at line (\d+),/.exec(result)?.[1]) }),
  handler: async (...call) => await (await import("./edit.ts")).edit(...call),
};

/** Models that are trained on this format of patches. */
const TRAINED = /\b(?:gpt-5|gpt-4\.1|gpt-oss|codex|o3|o4)\b/i;

const patch: ToolDefinition = {
  name: "apply_patch",
  description:
    "Change files with a patch from *** Begin Patch to *** End Patch: all of it, or nothing.",
  short: "Change several files with one patch.",
  permission: "edit",
  aliases: ["applypatch"],
  param_aliases: { patch: "input" },
  parameters: {
    type: "object",
    properties: { input: { type: "string" } },
    required: ["input"],
  },
  offer: (model) => TRAINED.test(model),
  paths: ({ input }) => Array.from(String(input).matchAll(PATHS), ([, path]) => path!),
  status: (args) => `patch ${patch.paths!(args).join(", ")}`,
  confirm: async (...call) => await (await import("./patch.ts")).previewPatch(...call),
  handler: async (...call) => await (await import("./patch.ts")).applyPatch(...call),
};

/** The lines of a patch that name files; see `parsePatch`. */
const PATHS = /^\*\*\* (?:Add File|Update File|Delete File|Move to): (.*\S)/gm;
