import type { ProcessResult, ToolContext } from "../../../src/plugins/api.ts";

export interface Limits {
  /** Seconds. */
  timeout?: number;
  /** Characters. */
  max_output?: number;
  /** `false` leaves out what git says on standard error. */
  errors?: false;
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
 * Where svc itself was started by git (a hook, an alias) these name the repository of that: here the
 * folder of the call says which one is meant.
 */
const FOREIGN = [
  "GIT_ALTERNATE_OBJECT_DIRECTORIES",
  "GIT_COMMON_DIR",
  "GIT_CONFIG",
  "GIT_DIFF_OPTS",
  "GIT_DIR",
  "GIT_EXTERNAL_DIFF",
  "GIT_GLOB_PATHSPECS",
  "GIT_GRAFT_FILE",
  "GIT_ICASE_PATHSPECS",
  "GIT_INDEX_FILE",
  "GIT_NAMESPACE",
  "GIT_NOGLOB_PATHSPECS",
  "GIT_OBJECT_DIRECTORY",
  "GIT_PREFIX",
  "GIT_REFERENCE_BACKEND",
  "GIT_REPLACE_REF_BASE",
  "GIT_SHALLOW_FILE",
  "GIT_WORK_TREE",
];

/** Runs one git command; `options` come before it. */
export async function runGit(
  args: string[],
  options: string[],
  cwd: string,
  context: ToolContext,
  { timeout = 60, max_output, errors }: Limits = {},
): Promise<ProcessResult> {
  const fixed = Object.entries(SETTINGS).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const bare = ["env", ...FOREIGN.flatMap((name) => ["-u", name])];
  const command = [...bare, "git", "--no-pager", ...fixed, ...options, ...args];
  const result = await context.run({
    command,
    cwd,
    env: ENVIRONMENT,
    timeout,
    max_output,
    errors,
  });
  if (result.code === NOT_FOUND) {
    throw new UsageError("git requires the program git, which is not installed");
  }
  return result;
}

/** What `env` exits with when there is no such program. */
const NOT_FOUND = 127;

/** What git has against a command that failed, in one line. */
export function complaint({ output }: ProcessResult): string {
  return output.trim().split("\n")[0]!.replace(/^fatal: /, "");
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

/** A call that cannot be run as it is; the message is the result. */
export class UsageError extends Error {}
