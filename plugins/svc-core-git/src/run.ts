import type { ProcessResult, ToolContext } from "../../../src/plugins/api.ts";
import { UsageError } from "./usage_error.ts";

export interface Limits {
  /** Seconds. */
  timeout?: number;
  /** Characters. */
  max_output?: number;
}

/**
 * What holds for every command, over whatever a repository's configuration says: no hooks, no pager or
 * editor, no external diff, no file system monitor, no signing program, no network, nothing afterwards
 * in the background.
 */
const SETTINGS = {
  "core.hooksPath": "/dev/null",
  "core.fsmonitor": "false",
  "core.pager": "cat",
  "core.editor": ":",
  "sequence.editor": ":",
  "core.askPass": "",
  "core.sshCommand": "false",
  "core.gitProxy": "",
  "core.alternateRefsCommand": ":",
  "credential.helper": "",
  "diff.external": "",
  "interactive.diffFilter": "",
  "log.showSignature": "false",
  "commit.gpgSign": "false",
  "protocol.allow": "never",
  "submodule.recurse": "false",
  "status.submoduleSummary": "false",
  "diff.submodule": "short",
  "gc.auto": "0",
  "maintenance.auto": "false",
  "color.ui": "false",
};

const ENVIRONMENT = {
  GIT_ALLOW_PROTOCOL: "none",
  GIT_EDITOR: ":",
  GIT_LITERAL_PATHSPECS: "1",
  GIT_NO_LAZY_FETCH: "1",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_PAGER: "cat",
  GIT_TERMINAL_PROMPT: "0",
  LC_ALL: "C.UTF-8",
};

/** Runs one git command; `options` come before it. */
export async function runGit(
  args: string[],
  options: string[],
  cwd: string,
  context: ToolContext,
  { timeout = 60, max_output }: Limits = {},
): Promise<ProcessResult> {
  const fixed = Object.entries(SETTINGS).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const command = ["git", "--no-pager", ...fixed, ...options, ...args];
  try {
    return await context.run({ command, cwd, env: ENVIRONMENT, timeout, max_output });
  } catch (error) {
    if ((error as { code?: unknown }).code !== "program_not_found") throw error;
    throw new UsageError("git requires the program git, which is not installed");
  }
}

/** A finished command as a tool's result, as that of run_command. */
export function resultText(shown: string[], { code, output, ...ended }: ProcessResult): string {
  const why = ended.cancelled ? "Error: cancelled\n" : ended.timed_out ? "Error: timed out\n" : "";
  const line = ["git", ...shown].map(quoted).join(" ");
  return `${why}$ ${line}\nexit ${code}\n${output.trimEnd() || "(no output)"}`;
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word);
}
