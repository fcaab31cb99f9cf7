import type { ProcessResult, ToolContext } from "../../../src/plugins/api.ts";

export interface Limits {
  /** Seconds. */
  timeout?: number;
  /** Characters. */
  max_output?: number;
  /** `false` omits standard error. */
  errors?: false;
}

/**
 * Settings of every command, which override the configuration of the repository: no hooks, pager, editor,
 * external diff, file system monitor, signing program, network or background maintenance.
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
  "gpg.program": "false",
  "gpg.openpgp.program": "false",
  "gpg.x509.program": "false",
  "gpg.ssh.program": "false",
  "gpg.ssh.defaultKeyCommand": "",
  "protocol.allow": "never",
  "submodule.recurse": "false",
  "status.submoduleSummary": "false",
  "diff.submodule": "short",
  "diff.ignoreSubmodules": "dirty",
  "gc.auto": "0",
  "maintenance.auto": "false",
  "color.ui": "false",
  "color.diff": "false",
  "color.status": "false",
  "color.branch": "false",
  "i18n.logOutputEncoding": "UTF-8",
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

/**
 * Runs one git command; `options` precede it. Variables that git sets when it starts svc itself, and that would select
 * another repository, are not in the environment of commands.
 */
export async function runGit(
  args: string[],
  options: string[],
  cwd: string,
  context: ToolContext,
  { timeout = 60, max_output, errors }: Limits = {},
): Promise<ProcessResult> {
  const fixed = Object.entries(SETTINGS).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const command = ["git", "--no-pager", ...fixed, ...options, ...args];
  return await context.run({ command, cwd, env: ENVIRONMENT, timeout, max_output, errors });
}

/** The first line of the error of a failed command. */
export function complaint({ output }: ProcessResult): string {
  return output.trim().split("\n")[0]!.replace(/^fatal: /, "");
}

/** Formats a finished command like the result of run_command. */
export function resultText(shown: string[], { code, output, ...ended }: ProcessResult): string {
  const why = ended.cancelled ? "Error: cancelled\n" : ended.timed_out ? "Error: timed out\n" : "";
  const line = ["git", ...shown].map(quoted).join(" ");
  return `${why}$ ${line}\nexit ${code}\n${output.trimEnd() || "(no output)"}`;
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word);
}

/** The error of an invalid call; its message is the result. */
export class UsageError extends Error {}
