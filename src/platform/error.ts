/**
 * An error in a form that every front end can show: a stable code for programs, one sentence for a person, and a
 * hint about what to do next.
 *
 * `exit` is the exit code of the process: 1 the work failed, 2 wrong usage or configuration, 130 cancelled.
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

/** The message of any thrown value, without a stack trace. Never throws, even for a proxy or a getter that throws. */
export function errorMessage(error: unknown): string {
  try {
    if (error instanceof Deno.errors.NotCapable) return refusal(error.message);
    return String(error instanceof Error ? error.message : error);
  } catch {
    return "something was thrown that says nothing of itself";
  }
}

/** What Deno's permissions refuse, without its advice to pass a flag, which an executable does not take. */
function refusal(message: string): string {
  return message.replace(
    /^Requires (.*?) access(?: to (.*))?, run again with the --allow-\S+ flag$/s,
    (_, access, what) =>
      `${thisProcess()} has no ${access} access${what === undefined ? "" : ` to ${what}`}`,
  );
}

/** Begins a sentence about what the permissions of this process refuse. */
export function thisProcess(): string {
  const profile = narrowProfile();
  return profile === undefined ? "This process" : `This svc, of the profile ${profile},`;
}

/** The profile of compile.sh that an executable is built with, where it permits less than `build`. */
function narrowProfile(): string | undefined {
  try {
    const [, profile] = Deno.env.get("SVC_BUILD")?.split(" ") ?? [];
    return profile === "build" ? undefined : profile;
  } catch {
    return undefined;
  }
}

/**
 * The error for a file that the operating system refused to write (exit 1).
 *
 * @param what the file, or its purpose
 */
export function writeFailure(code: string, what: string, cause: unknown): SvcError {
  const message = `${what} cannot be written: ${errorMessage(cause).replace(/\.$/, "")}.`;
  return new SvcError(code, message, { hint: writeHint(cause), cause });
}

/** A hint for a write that failed, or that Deno's permissions refuse; empty for an unknown cause. */
export function writeHint(error: unknown): string {
  if (error instanceof Deno.errors.NotCapable) return PROFILES[narrowProfile() ?? ""] ?? "";
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return HINTS[code] ?? "";
}

const PROFILES: Record<string, string> = {
  plan:
    "The profile plan writes into .svc alone and starts no program. Do this with an svc of the profile build.",
  sandboxed:
    "The profile sandboxed starts bubblewrap alone. Do this with an svc of the profile build.",
};
const ACCESS = "Look at the owner and the mode of that file and of its folder.";
const FULL = "The disk is full, or your share of it: make room, then do it again.";
const HINTS: Record<string, string> = {
  ENOSPC: FULL,
  EDQUOT: FULL,
  EROFS: "That file system is read-only.",
  EACCES: ACCESS,
  EPERM: ACCESS,
};

/** The candidate most similar to `word`: at most two edits away, or starting with it. Undefined without one. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Math.min(3, word.length); // replacing every letter makes another word
  for (const candidate of candidates) {
    const distance = candidate.startsWith(word) && word.length > 1 ? 1 : edits(word, candidate);
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

/** Number of edits from one word to another. A swap of two neighbours is one edit. */
function edits(from: string, to: string): number {
  let before: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const change = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(change, row[j]! + 1, next[j - 1]! + 1));
      if (from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1] && i > 1 && j > 1) {
        next[j] = Math.min(next[j]!, before[j - 2]! + 1);
      }
    }
    [before, row] = [row, next];
  }
  return row[to.length]!;
}
