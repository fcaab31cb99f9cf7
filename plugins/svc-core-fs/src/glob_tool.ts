import { join } from "node:path";
import type { ToolArguments, ToolContext, ToolDefinition } from "../../../src/plugins/api.ts";
import { Glob } from "./glob.ts";
import { locate, shown } from "./place.ts";
import { walk } from "./walk.ts";

const MAX_RESULTS = 200;

export const globTool: ToolDefinition = {
  name: "glob",
  description:
    "Find files and folders by name. The pattern may use *, ?, [a-z], {a,b} and ** for any number " +
    'of folders: "src/**/*.ts". Hidden entries, .git and node_modules are left out unless named.',
  short: "Find files and folders by name pattern.",
  permission: "list",
  path_arg: "path",
  parameters: {
    type: "object",
    properties: {
      pattern: { type: "string", description: "Pattern, relative to path." },
      path: { type: "string", description: "Folder to search (default: the worktree)." },
    },
    required: ["pattern"],
  },
  status: (args) => `glob ${args.pattern}${args.path ? ` in ${args.path}` : ""}`,
  note: (result) => result.startsWith("(no matches for ") ? "no matches" : "",
  handler: search,
};

async function search(args: ToolArguments, context: ToolContext): Promise<string> {
  const glob = new Glob(args.pattern);
  const { path, info } = await locate(args.path ?? ".", context);
  if (!info.isDirectory) return `Error: ${args.path} is not a directory`;
  const { found, complete } = await walk(path, glob, context.signal);
  const lines = found.slice(0, MAX_RESULTS).map(({ path: below, entry }) =>
    shown(join(path, below), context) + (entry.isDirectory ? "/" : "")
  );
  if (found.length === 0) lines.push(`(no matches for "${args.pattern}")`);
  if (found.length > MAX_RESULTS) {
    lines.push(`... (showing first ${MAX_RESULTS} of ${found.length} matches)`);
  }
  if (!complete) lines.push("... (stopped: too many entries; search a smaller folder)");
  return lines.join("\n");
}
