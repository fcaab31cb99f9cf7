import type { ToolArguments, ToolContext, ToolDefinition } from "../../../src/plugins/api.ts";
import { answering, placeOf, repositoryOf } from "./git.ts";
import { resultText, UsageError } from "./run.ts";

/** The tool `git_commit` (specification 4.8). It never pushes and never rewrites history. */
export const gitCommit: ToolDefinition = {
  name: "git_commit",
  description:
    "Stage files (add) or commit what is staged (commit). Runs no hooks, signs nothing, never " +
    "pushes or rewrites history.",
  permission: "vcs",
  aliases: ["commit", "git_add"],
  alias_args: { commit: { operation: "commit" }, git_add: { operation: "add" } },
  path_arg: ["path", "cwd"],
  key_arg: "operation",
  parameters: {
    type: "object",
    properties: {
      operation: { type: "string", enum: ["add", "commit"] },
      message: { type: "string" },
      path: { type: "string", description: "add: file or folder. commit: only this one." },
      all: {
        type: "boolean",
        description: "add: every change. commit: every changed file that Git knows.",
      },
      cwd: { type: "string" },
    },
    required: ["operation"],
  },
  permission_fn: ({ all }) => (all === true ? "ask" : undefined),
  status: ({ operation, path, all, message }) =>
    ["git", operation, all ? "--all" : path, message?.split("\n")[0]].filter(Boolean).join(" "),
  confirm: (args, context) => preview(args, context),
  handler: (args, context) =>
    answering(async () => {
      const command = commandOf(args, context);
      const repository = await repositoryOf(args, context);
      // Without "all" and "path", a commit records what is staged and reads no file.
      const takes = args.operation === "add" || args.all === true || args.path !== undefined;
      const places = args.path === undefined ? [] : [placeOf(args.path, context)];
      const result = takes
        ? await repository.record(command, places, { timeout: 300 })
        : await repository.run(command, { timeout: 300 });
      return explained(resultText(command, result));
    }),
};

function commandOf(
  { operation, message, path, all }: ToolArguments,
  context: ToolContext,
): string[] {
  if (all === true && path !== undefined) throw new UsageError('pass either "path" or "all"');
  const place = path === undefined ? [] : ["--", placeOf(path, context)];
  if (operation === "add") {
    if (message !== undefined) throw new UsageError('add takes no "message"');
    if (all !== true && path === undefined) throw new UsageError('add needs a "path"');
    return all === true ? ["add", "--all"] : ["add", ...place];
  }
  if (operation !== "commit") throw new UsageError(`there is no operation "${operation}"`);
  const text = (message ?? "").trim();
  if (text === "") throw new UsageError('commit needs a "message"');
  const flags = ["--no-gpg-sign", ...all === true ? ["--all"] : []];
  return ["commit", ...flags, `--message=${text}`, ...place];
}

/** Explains a failed clean filter. It may encrypt, so a file must not be recorded without it. */
function explained(result: string): string {
  if (!/^fatal: .*: clean filter '.*' failed$/m.test(result)) return result;
  const why = "a program of the repository's own configuration (a filter) changes a file on its " +
    "way into the history; svc runs no such programs, so add it by hand";
  return `Error: ${why}\n${result}`;
}

/** The text of a confirmation: the command and the status of the files. */
async function preview(args: ToolArguments, context: ToolContext): Promise<string> {
  return await answering(async () => {
    const command = commandOf(args, context);
    const repository = await repositoryOf(args, context);
    const files = await repository.run(["status", "--short", "--ignore-submodules=dirty"]);
    return resultText(command, files).replace(/\nexit \d+\n/, "\n\n");
  });
}
