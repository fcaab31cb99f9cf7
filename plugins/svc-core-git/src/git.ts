import { basename, dirname, join } from "node:path";
import type { ToolArguments, ToolContext, ToolDefinition } from "../../../src/plugins/api.ts";
import type { Repository } from "./repository.ts";
import { resultText, UsageError } from "./run.ts";

const OPERATIONS = ["status", "diff", "log", "branch", "show", "rev_parse"] as const;
/** Commits that `log` shows unless told otherwise, and the most it shows. */
const COMMITS = 20;
const MAX_COMMITS = 1000;
/** Only the comparison of git itself, even if attributes of a file name a program. */
const PLAIN = ["--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"];

/** The tool `git` (specification 4.8), which is read-only. */
export const git: ToolDefinition = {
  name: "git",
  description: "Look into the Git repository. Changes nothing.",
  permission: "vcs",
  read_only: true,
  aliases: OPERATIONS.map((operation) => `git_${operation}`),
  alias_args: Object.fromEntries(
    OPERATIONS.map((operation) => [`git_${operation}`, { operation }]),
  ),
  path_arg: ["path", "cwd"],
  key_arg: "operation",
  parallel: true,
  parameters: {
    type: "object",
    properties: {
      operation: { type: "string", enum: [...OPERATIONS] },
      path: { type: "string" },
      limit: {
        type: "integer",
        description: `log: commits (default ${COMMITS}).`,
      },
      staged: { type: "boolean", description: "diff: staged changes." },
      rev: {
        type: "string",
        description: "Commit, branch, tag or range (main..HEAD).",
      },
      cwd: { type: "string" },
    },
    required: ["operation"],
  },
  status: ({ operation, rev, path }) =>
    ["git", operation, rev, path].filter((word) => word !== undefined).join(" "),
  handler: (args, context) =>
    answering(async () => {
      const repository = await repositoryOf(args, context);
      const command = commandOf(args, context);
      return resultText(command, await repository.run(command));
    }),
};

function commandOf(args: ToolArguments, context: ToolContext): string[] {
  const { operation, staged } = args;
  const rev = args.rev === undefined ? [] : [revision(args.rev)];
  const place = args.path === undefined ? [] : [placeOf(args.path, context)];
  // A word before the dashes is a revision, even if a file has that name.
  const path = rev.length + place.length === 0 ? [] : ["--", ...place];
  const only = (...allowed: string[]) => {
    for (const name of ["rev", "staged", "limit", "path"]) {
      if (args[name] === undefined || allowed.includes(name)) continue;
      throw new UsageError(`${operation} takes no "${name}"`);
    }
  };
  switch (operation) {
    case "status":
      only("path");
      return ["status", "--short", "--branch", "--ignore-submodules=dirty", ...path];
    case "diff":
      only("path", "staged", "rev");
      return ["diff", ...PLAIN, ...staged ? ["--cached"] : [], ...END, ...rev, ...path];
    case "log": {
      only("path", "rev", "limit");
      const limit = Math.min(Math.max(1, args.limit ?? COMMITS), MAX_COMMITS);
      const format = ["--date=iso-strict", "--format=%h %ad %an%d%n    %s"];
      return ["log", "--no-ext-diff", `--max-count=${limit}`, ...format, ...END, ...rev, ...path];
    }
    case "branch":
      only();
      return ["branch", "--list", "--all", "--verbose"];
    case "show":
      only("path", "rev");
      return ["show", ...PLAIN, "--format=medium", "--stat", "--patch", ...END, ...rev, ...path];
    case "rev_parse":
      only("rev");
      return ["rev-parse", "--verify", ...END, revision(args.rev ?? "HEAD")];
    default:
      throw new UsageError(`there is no operation "${operation}"; use ${OPERATIONS.join(", ")}`);
  }
}

/** The words after it are no options, even if they begin with a dash. */
const END = ["--end-of-options"];

function revision(text: string): string {
  // deno-lint-ignore no-control-regex
  const odd = text === "" || text.length > 500 || /^-|[\x00-\x1f\x7f]/.test(text);
  // With a path outside the worktree, git would compare two files (`diff --no-index`).
  if (odd || /^\/|(^|\/)\.\.(\/|$)/.test(text)) {
    throw new UsageError(`${JSON.stringify(text.slice(0, 80))} is no revision`);
  }
  return text;
}

/** The repository that the argument `cwd` names. */
export async function repositoryOf(args: ToolArguments, context: ToolContext): Promise<Repository> {
  const { openRepository } = await import("./repository.ts");
  return await openRepository(context.paths.resolve(args.cwd ?? "."), context);
}

/** Turns a UsageError of a call into an `Error:` result. */
export async function answering(call: () => Promise<string>): Promise<string> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof UsageError) return `Error: ${error.message}`;
    throw error;
  }
}

/**
 * The absolute path of an argument, with links in its parent folders resolved. A link itself is not
 * resolved: git records its target and does not follow it.
 *
 * @throws when the path is outside the worktree
 */
export function placeOf(path: string, { paths }: ToolContext): string {
  const name = basename(path);
  if (name === "" || name === "." || name === "..") return paths.resolve(path);
  const place = join(paths.resolve(dirname(path)), name);
  return isLink(place) ? place : paths.resolve(path);
}

function isLink(path: string): boolean {
  try {
    return Deno.lstatSync(path).isSymlink;
  } catch {
    return false; // the file was deleted or is only in the history
  }
}
