import type { ConfigView, ProcessRequest, ProcessResult } from "../plugins/api.ts";
import { errorMessage, SvcError } from "../platform/error.ts";
import type { Sandbox } from "../platform/sandbox.ts";
import type { TurnLog } from "../sessions/session.ts";
import type { CheckedScope } from "./checks.ts";
import { type TurnEvent, TurnFailure } from "./events.ts";
import { LONGEST_WAIT, type TurnTask } from "./task.ts";

/** Where the command of a verification runs. */
interface VerifyPlace {
  worktree: string;
  sandbox: Pick<Sandbox, "run">;
  config: ConfigView;
  /** Masks known secrets in its output. */
  mask: (text: string) => string;
  run: number;
  /** Called before the command runs. */
  before: () => Promise<void>;
  /** Variables for a command that `bash_allow` lists. */
  env?: Readonly<Record<string, string>>;
}

/** What a verification needs of a turn. */
type VerifiedTurn = Pick<CheckedScope, "signal" | "result"> & { log: Pick<TurnLog, "append"> };

/** How often the model may correct its work, unless the task says otherwise. */
const CORRECTIONS = 3;
/** Characters of the end of the output that the model and the log get. */
const MAX_OUTPUT = 8000;

/**
 * The check of a turn by a command that must exit with 0: a {@linkcode Check}. svc runs it itself, in the sandbox
 * of commands and with the authority of the person who named it; the policy is not asked. Each run is in the log.
 */
export function verification(
  { verify: command = "", verify_rounds = CORRECTIONS }: TurnTask,
  place: VerifyPlace,
): (turn: VerifiedTurn) => AsyncGenerator<TurnEvent, string> {
  const { run, config, mask } = place;
  let corrections = 0;
  return async function* ({ log, signal, result }) {
    const notice = (level: "info" | "warning", message: string): TurnEvent => {
      return { type: "notice", run, level, message };
    };
    yield notice("info", `Verifying with: ${command}`);
    const limit: number = config.get("verify_timeout") || LONGEST_WAIT;
    await place.before();
    const ended = await runCommand(command, place, signal, limit);
    signal.throwIfAborted();
    const how = ended.timed_out
      ? `did not end within ${limit} seconds`
      : `ended with exit code ${ended.code}`;
    const output = lastOf(mask(ended.output));
    log.append({ type: "command", text: `verify: ${command}\n${how}\n${output}`.trimEnd() });
    if (ended.code === 0 && !ended.timed_out) {
      result.verified = true;
      yield notice("info", "Verified: the command ended with exit code 0.");
      return "";
    }
    if (corrections === verify_rounds) {
      const last = output.split("\n").findLast((line) => line.trim() !== "")?.trim() ?? "";
      const times = corrections === 1 ? "1 correction" : `${corrections} corrections`;
      const after = corrections === 0 ? "" : ` after ${times}`;
      throw new TurnFailure(
        "verify",
        `Not verified: ${command} ${how}${after}${last === "" ? "" : `: ${last.slice(0, 200)}`}`,
      );
    }
    corrections++;
    const which = `correction ${corrections} of ${verify_rounds}`;
    yield notice(
      "warning",
      `Not verified yet: ${command} ${how}; the model is asked for ${which}.`,
    );
    return `Your work is not accepted yet. To verify it, this command was run, and it ${how}; it has to end with ` +
      `exit code 0:\n\n$ ${command}\n${
        output || "(no output)"
      }\n\nCorrect the work, then say that you are ` +
      `done; the command is run again then (${which}).`;
  };
}

async function runCommand(
  command: string,
  { sandbox, worktree, env }: VerifyPlace,
  signal: AbortSignal,
  timeout: number,
): Promise<ProcessResult> {
  try {
    const request = { cwd: worktree, env, timeout, max_output: 2 * MAX_OUTPUT };
    return await runShell(sandbox, command, request, signal);
  } catch (error) {
    throw new TurnFailure(
      "verify",
      `Not verified: ${command} cannot be run: ${errorMessage(error)}`,
    );
  }
}

/** Runs a command line of a person, by `bash` where there is one, else by `sh`. */
export function runShell(
  sandbox: Pick<Sandbox, "run">,
  command: string,
  request: Omit<ProcessRequest, "command">,
  signal: AbortSignal,
): Promise<ProcessResult> {
  const shell = (program: string) =>
    sandbox.run({ ...request, command: [program, "-c", command] }, signal);
  return shell("bash").catch((error) => {
    if (error instanceof SvcError && error.code === "program_not_found") return shell("sh");
    throw error;
  });
}

/** The end of an output, from the beginning of a line where one is near. */
function lastOf(output: string): string {
  const text = output.trimEnd();
  if (text.length <= MAX_OUTPUT) return text;
  const end = text.slice(-MAX_OUTPUT);
  const line = end.indexOf("\n");
  return `... (${text.length - MAX_OUTPUT} characters or more left out)\n` +
    end.slice(line >= 0 && line < MAX_OUTPUT / 2 ? line + 1 : 0).toWellFormed();
}
