import { join } from "node:path";
import type { ToolArguments, ToolContext, ToolDefinition } from "../../../src/plugins/api.ts";
import { isInPlace, locate, shown } from "./paths.ts";
import type { Found } from "./walk.ts";

const MAX_RESULTS = 200;

export const globTool: ToolDefinition = {
  name: "glob",
  description:
    "Find files and folders by name, with *, ?, [a-z], {a,b} and ** for any number of folders: " +
    "src/**/*.ts. Skips hidden entries, .git, node_modules and what .gitignore hides, unless " +
    "named.",
  short: "Find files and folders by name pattern.",
  permission: "list",
  path_arg: "path",
  parameters: {
    type: "object",
    properties: {
      pattern: { type: "string" },
      path: { type: "string", description: "Folder (default: the worktree)." },
    },
    required: ["pattern"],
  },
  status: (args) => `glob ${args.pattern}${args.path ? ` in ${args.path}` : ""}`,
  note: (result) => result.startsWith("(no matches for ") ? "no matches" : "",
  handler: (args, context) => globWithin(args, context),
};

/** The handler of {@linkcode globTool}, with a limit on the number of entries. */
export async function globWithin(
  args: ToolArguments,
  context: ToolContext,
  limit?: number,
): Promise<string> {
  const [{ Glob }, { MAX_ENTRIES, walk }] = await Promise.all([
    import("./glob.ts"),
    import("./walk.ts"),
  ]);
  const entries = limit ?? MAX_ENTRIES;
  const glob = new Glob(args.pattern);
  const { path, info } = await locate(args.path ?? ".", context);
  if (!info.isDirectory) return `Error: ${args.path} is not a directory`;
  const found: Found[] = [];
  let count = 0;
  const steps = walk(path, glob, context, entries);
  let step = await steps.next();
  for (; !step.done; step = await steps.next()) {
    count += step.value.length;
    found.push(...step.value.slice(0, MAX_RESULTS - found.length));
  }
  const lines = found
    .map(({ path: below, entry }) => ({ entry, absolute: join(path, below) }))
    .filter(({ absolute }) => isInPlace(absolute))
    .map(({ entry, absolute }) => shown(absolute, context) + (entry.isDirectory ? "/" : ""));
  if (lines.length === 0) lines.push(`(no matches for "${args.pattern}")`);
  if (count > MAX_RESULTS) {
    lines.push(`... (showing first ${MAX_RESULTS} of ${count} matches)`);
  }
  if (!step.value) {
    const seen = entries.toLocaleString("en");
    lines.push(`... (stopped after ${seen} entries; search a smaller folder)`);
  }
  return lines.join("\n");
}
