import { usageError } from "../platform/error.ts";
import type { Io } from "../commands/io.ts";

/** What `svc` alone can be told. */
export interface ReplOptions {
  path: string;
  session: string | undefined;
  continue: boolean;
  role: string | undefined;
  /** Settings for this process alone. */
  overrides: Record<string, unknown>;
}

/** The options of `svc`; undefined when its help was asked for and shown. */
export async function replOptions(args: string[], io: Io): Promise<ReplOptions | undefined> {
  if (args.length === 0) {
    return { path: "", session: undefined, continue: false, role: undefined, overrides: {} };
  }
  // Only a start with options pays for the parser.
  const { parseReplOptions } = await import("./parse_options.ts");
  const values = parseReplOptions(args, io);
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
