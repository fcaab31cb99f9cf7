import { usageError } from "../platform/error.ts";
import { type Definition, parseCommand, pathOption, textOption, trustOption } from "./command.ts";
import type { Io } from "./io.ts";
import { nameOf } from "./names.ts";
import { command, type InferValue, option } from "./options.ts";

const parser = command("", {
  session: textOption(
    "--session-id",
    nameOf("sessions"),
    "Continue this session, or create it with the first message.",
  ),
  resume: option("-c/--continue", "Continue the newest session."),
  pick: option("-r/--resume", "Choose a saved session from a list."),
  model: textOption(
    "--model",
    nameOf("models", "REF"),
    "A model, or <provider>/<model>, for this process.",
  ),
  provider: textOption("--provider", nameOf("providers"), "The provider for this process."),
  mode: textOption(
    "--mode",
    nameOf("modes", "MODE"),
    "build, plan, or a mode of your configuration.",
  ),
  role: textOption(
    "--role",
    nameOf("roles"),
    "Run as this role of the catalog; see `svc roles list`.",
  ),
  unattended: option(
    "--unattended",
    "No operator: confirmations are denied, questions are parked.",
  ),
  trust: trustOption,
  path: pathOption,
}, "");

/** The options of a terminal session. */
export interface SessionOptions {
  path: string;
  session?: string;
  continue: boolean;
  /** Whether the session is chosen from a list. */
  pick?: boolean;
  role?: string;
  /** Whether all openings of the worktree are trusted in this process. */
  trust?: boolean;
  /** Settings for this process. */
  overrides: Record<string, unknown>;
}

/** The options of `svc` without a command: a terminal session. */
export const sessionOptions: Definition<InferValue<typeof parser>> = {
  parser,
  examples: ["svc", "svc --continue", "svc --resume", "svc --mode plan --path ~/notes"],
};

/**
 * Parses the arguments of `svc` without a command.
 *
 * @returns undefined when help was requested and printed
 * @throws SvcError `usage` (exit 2)
 */
export async function parseSessionOptions(
  args: string[],
  io: Io,
): Promise<SessionOptions | undefined> {
  const parsed = await parseCommand(
    sessionOptions,
    ["", ...args],
    io,
    'For one turn: svc run -p "..."; the options of a session: svc --continue --help',
  );
  if (parsed === undefined) return undefined;
  const { path, session, resume, pick, role, model, provider, mode, unattended, trust } =
    parsed.values;
  if ([resume, pick, session !== undefined].filter((given) => given).length > 1) {
    throw usageError(
      "usage",
      "--continue, --resume and --session-id exclude each other.",
      "Pass one of them.",
    );
  }
  const given = { model, provider, mode, unattended: unattended || undefined };
  const overrides = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  );
  return { path, session, continue: resume, pick, role, trust, overrides };
}
