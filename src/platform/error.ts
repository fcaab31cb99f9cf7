/**
 * What went wrong, in a form every front end can show: a stable code for programs, one sentence for a
 * person, and a hint that says what to do next.
 *
 * `exit` is the process exit code a command ends with: 1 the work failed, 2 wrong usage or
 * configuration, 130 cancelled.
 */
export class SvcError extends Error {
  override readonly name = "SvcError";
  readonly code: string;
  readonly hint: string;
  readonly exit: 1 | 2 | 130;

  constructor(
    code: string,
    message: string,
    options: { hint?: string; exit?: 1 | 2 | 130; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint ?? "";
    this.exit = options.exit ?? 1;
  }
}

/** A usage or configuration error: exit code 2. */
export function usageError(code: string, message: string, hint = ""): SvcError {
  return new SvcError(code, message, { hint, exit: 2 });
}

/** The sentence of any thrown value, without a stack trace. Never throws, whatever a plugin threw. */
export function errorMessage(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return "something was thrown that says nothing of itself";
  }
}
