import { usageError } from "../platform/error.ts";
import type { Io } from "../commands/io.ts";

/** The options of a terminal session. */
export interface ReplOptions {
  path: string;
  session: string | undefined;
  continue: boolean;
  role: string | undefined;
  /** Settings for this process alone. */
  overrides: Record<string, unknown>;
}

/** The options of `svc`; undefined when its help was requested and printed. */
export async function replOptions(args: string[], io: Io): Promise<ReplOptions | undefined> {
  if (args.length === 0) {
    return { path: "", session: undefined, continue: false, role: undefined, overrides: {} };
  }
  // Only a start with options loads the parser.
  const { parseSessionOptions } = await import("../commands/session_options.ts");
  const values = parseSessionOptions(args, io);
  if (values === undefined) return undefined;
  const { path, session, resume, role, model, provider, mode, unattended } = values;
  if (resume && session !== undefined) {
    throw usageError(
      "usage",
      "--continue and --session-id exclude each other.",
      "Pass one of them.",
    );
  }
  const given = { model, provider, mode, unattended: unattended || undefined };
  const overrides = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  );
  return { path, session, continue: resume, role, overrides };
}
