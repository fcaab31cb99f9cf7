import type { ToolDefinition } from "../../../src/plugins/api.ts";

/** The tool `grep`, with a second thread for one long search of a workspace at a time. */
export function grep(): ToolDefinition {
  const thread = { taken: false };
  return {
    ...DEFINITION,
    async handler(args, context) {
      const { grepWithin } = await import("./grep.ts");
      return await grepWithin(args, context, undefined, thread);
    },
  };
}

const DEFINITION: Omit<ToolDefinition, "handler"> = {
  name: "grep",
  description:
    "Search lines of files by regular expression (JavaScript's, without look-ahead and " +
    "back-references; (?i) first ignores case). Results: file:line: text. Skips hidden files, " +
    ".git, node_modules and what .gitignore hides, unless path or glob names them.",
  short: "Search file contents with a regular expression.",
  permission: "read",
  aliases: ["find"],
  param_aliases: { query: "pattern" },
  path_arg: "path",
  parameters: {
    type: "object",
    properties: {
      pattern: { type: "string" },
      path: { type: "string", description: "File or folder (default: the worktree)." },
      glob: { type: "string", description: "Such as *.ts, src/**/*.{ts,js}." },
    },
    required: ["pattern"],
  },
  status: (args) => `grep ${args.pattern}${args.path ? ` in ${args.path}` : ""}`,
  note: (result) => result.startsWith("(no matches for ") ? "no matches" : "",
};
