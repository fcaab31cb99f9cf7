import { createHash, timingSafeEqual } from "node:crypto";
import { isAbsolute } from "node:path";
import { usageError } from "../platform/error.ts";
import { readTextIfExists } from "../platform/files.ts";

/** Shorter ones could be guessed. */
const SHORTEST = 16;

/** The bearer tokens of the HTTP API. Only their digests are kept. */
export class Tokens {
  readonly #digests: Uint8Array[];

  constructor(tokens: string[]) {
    this.#digests = tokens.map(digest);
  }

  /**
   * Which token a request bears, counted from 0; undefined for none of them. The time that it takes says
   * nothing about how much of a token was right.
   */
  find(authorization: string | null): number | undefined {
    const [, given] = /^Bearer +(\S+) *$/i.exec(authorization ?? "") ?? [];
    const wanted = digest(given ?? "");
    let found: number | undefined;
    for (const [index, known] of this.#digests.entries()) {
      if (timingSafeEqual(known, wanted)) found = index;
    }
    return found;
  }
}

/**
 * Reads a token file: one token a line; empty lines and those that start with `#` do not count.
 *
 * @throws SvcError `token_file` (exit 2) when it is not there, holds no token or a short one
 */
export function readTokens(path: string, warn: (message: string) => void): Tokens {
  const wrong = (what: string) =>
    usageError("token_file", `The token file ${path} ${what}.`, "Make one with: svc serve token");
  if (!isAbsolute(path)) throw wrong("is not an absolute path");
  const text = readTextIfExists(path);
  if (text === undefined) throw wrong("is not there");
  const tokens = text.split("\n").map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  if (tokens.length === 0) throw wrong("holds no token");
  if (tokens.some((token) => token.length < SHORTEST || /\s/.test(token))) {
    throw wrong(`holds a token of less than ${SHORTEST} characters, or with a space in it`);
  }
  const { mode } = Deno.statSync(path);
  if (mode !== null && (mode & 0o077) !== 0) {
    warn(`The token file ${path} can be read by others; make it private with: chmod 600 ${path}`);
  }
  return new Tokens(tokens);
}

function digest(token: string): Uint8Array {
  return createHash("sha256").update(token).digest();
}
