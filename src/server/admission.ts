import { createHash, timingSafeEqual } from "node:crypto";
import { isAbsolute, join } from "node:path";
import type { Workspace } from "../engine/workspace.ts";
import type { Clock } from "../platform/clock.ts";
import { usageError } from "../platform/error.ts";
import { exists, readTextIfExists, updateFile } from "../platform/files.ts";
import { TOKENS } from "../policy/paths.ts";
import { HttpError } from "./http.ts";

/** What the holder of a token may do. Each role includes the ones before it. */
export const TOKEN_ROLES = ["read", "answer", "operate"] as const;
export type TokenRole = typeof TOKEN_ROLES[number];

/**
 * Decides for the HTTP API and the console whether a role is enough.
 *
 * @throws HttpError 403
 */
export function requireRole(role: TokenRole, needed: TokenRole): void {
  if (includesRole(role, needed)) return;
  throw new HttpError(403, `this needs the role ${needed}, and you have the role ${role}`);
}

/** Whether a role includes another one. */
export function includesRole(role: TokenRole, needed: TokenRole): boolean {
  return TOKEN_ROLES.indexOf(role) >= TOKEN_ROLES.indexOf(needed);
}

/** The hosts, origins, tokens and request rates that a server accepts. */
export interface Admission {
  hosts: HostCheck;
  limit: RateLimit;
  /** The known tokens. Left out: there are none. */
  tokens?: Tokens;
  /** Whether a request may come without a token. It is refused with a wrong one all the same. */
  optional: boolean;
}

/**
 * The admission rules of a server that listens on `host`.
 *
 * @param insecure accepts a host beyond loopback without tokens
 * @throws SvcError `no_token_file` or `token_file` (exit 2)
 */
export function admissionOf(workspace: Workspace, host: string, insecure: boolean): Admission {
  const { config, clock } = workspace;
  return {
    hosts: new HostCheck({
      host,
      hosts: config.get("serve.hosts"),
      origins: config.get("serve.cors_origins"),
    }),
    limit: new RateLimit(config.get("serve.rate_limit"), clock),
    tokens: tokensOf(workspace, host, insecure),
    optional: config.get("serve.token_file") === "",
  };
}

function tokensOf(workspace: Workspace, host: string, insecure: boolean): Tokens | undefined {
  const { config, guard, paths, warn } = workspace;
  const path = config.get("serve.token_file");
  if (path === "") {
    const made = join(paths.user, TOKENS);
    if (isLoopback(host) || insecure) return exists(made) ? readTokens(made, warn) : undefined;
    throw usageError(
      "no_token_file",
      `Without tokens, svc serve listens on this machine alone, and ${host} is not that.`,
      "Make a token with: svc serve token; or pass --insecure if something else keeps others out.",
    );
  }
  const tokens = readTokens(path, warn);
  const { inside, protected: guarded } = guard.locate(path);
  if (inside && guarded !== "read") {
    throw usageError(
      "token_file",
      `The token file ${path} is inside the worktree, where the agent can read it.`,
      "Keep it elsewhere; svc serve token makes one in the right place.",
    );
  }
  return tokens;
}

/** Whether a host name or address is this machine alone. */
export function isLoopback(host: string): boolean {
  const name = bare(host);
  return name === "localhost" || name === "::1" || /^127\.\d+\.\d+\.\d+$/.test(name);
}

/**
 * Checks the host that a request names, and its `Origin` header. The check of the host prevents DNS rebinding: a page
 * of another site that makes its own name resolve to this address still sends that name.
 */
export class HostCheck {
  readonly #names: Set<string>;
  readonly #origins: Set<string>;
  /** Bound to every address of the machine: any address is then a valid host, and none can be rebound. */
  readonly #everywhere: boolean;

  constructor(options: { host: string; hosts: string[]; origins: string[] }) {
    const { host, hosts, origins } = options;
    this.#names = new Set(["localhost", "127.0.0.1", "::1", host, ...hosts].map(bare));
    this.#origins = new Set(origins.map((origin) => origin.toLowerCase().replace(/\/$/, "")));
    this.#everywhere = ["0.0.0.0", "::"].includes(bare(host));
  }

  /**
   * The other origin whose page may read the answer (CORS); undefined for a request of the same origin, or
   * of no page.
   *
   * @throws HttpError 403 for an unknown host, or an origin that is not allowed
   */
  check(request: Pick<Request, "headers" | "url">): string | undefined {
    const host = this.checkHost(request);
    const origin = request.headers.get("origin")?.toLowerCase();
    if (origin === undefined) return undefined;
    if (this.#origins.has(origin)) return origin;
    if (origin === `http://${host.toLowerCase()}`) return undefined;
    throw new HttpError(403, "origin not allowed");
  }

  /**
   * The host that a request names.
   *
   * @throws HttpError 403 for an unknown one
   */
  checkHost({ headers, url }: Pick<Request, "headers" | "url">): string {
    const host = headers.get("host") ?? "";
    // A request target in the absolute form names a host too, and takes precedence over the header (RFC 9112).
    const [, target = ""] = /^\w+:\/\/([^/?#]*)/.exec(url) ?? [];
    if (!this.#allows(host) || target !== host && !this.#allows(target)) {
      throw new HttpError(403, "host not allowed");
    }
    return host;
  }

  #allows(host: string): boolean {
    const name = nameOf(host);
    if (name === undefined) return false;
    return this.#names.has(name) || (this.#everywhere && isAddress(name));
  }
}

/** The name in a `Host` header; undefined for a malformed one. */
function nameOf(host: string): string | undefined {
  const [, name] = /^(\[[\da-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/i.exec(host) ?? [];
  return name === undefined ? undefined : bare(name);
}

function bare(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

function isAddress(name: string): boolean {
  return name.includes(":") || /^\d+\.\d+\.\d+\.\d+$/.test(name);
}

/** Callers that are remembered at most. Beyond that, the least recent one is forgotten. */
const MAX_CALLERS = 10_000;

/** A token bucket per caller: `limit` requests a minute, evenly or in one burst. */
export class RateLimit {
  readonly #limit: number;
  readonly #clock: Clock;
  readonly #callers = new Map<string, { left: number; at: number }>();

  /** @param limit requests a minute; 0: no limit */
  constructor(limit: number, clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
  }

  /** Counts a request. Returns 0 when it may pass, otherwise the seconds until the next one may. */
  take(caller: string): number {
    if (this.#limit === 0) return 0;
    const now = this.#clock.now();
    const known = this.#callers.get(caller) ?? { left: this.#limit, at: now };
    this.#callers.delete(caller);
    const gained = Math.max(0, now - known.at) / 60_000 * this.#limit;
    const left = Math.min(this.#limit, known.left + gained);
    const passes = left >= 1;
    this.#callers.set(caller, { left: passes ? left - 1 : left, at: now });
    if (this.#callers.size > MAX_CALLERS) this.#callers.delete(this.#callers.keys().next().value!);
    return passes ? 0 : Math.ceil((1 - left) / this.#limit * 60);
  }
}

/** Characters of the shortest token that is accepted: shorter ones could be guessed. */
const MIN_TOKEN = 16;

/** A token of the HTTP API, by its digest. */
export interface KnownToken {
  /** Which one it is, for its rate limit. */
  id: string;
  digest: Uint8Array;
  role: TokenRole;
}

/** The bearer tokens of the HTTP API. */
export class Tokens {
  readonly #known: KnownToken[];

  constructor(tokens: { token: string; role: TokenRole }[]) {
    this.#known = tokens.map(({ token, role }, index) => ({
      id: `token ${index}`,
      digest: digest(token),
      role,
    }));
  }

  /** The token in an `Authorization` header; undefined for an unknown one. */
  find(authorization: string): KnownToken | undefined {
    const [, given = ""] = /^Bearer +(\S+) *$/i.exec(authorization) ?? [];
    return this.withDigest(digest(given));
  }

  /** The token with a digest. The comparison takes constant time. */
  withDigest(wanted: Uint8Array): KnownToken | undefined {
    let found: KnownToken | undefined;
    for (const known of this.#known) {
      if (timingSafeEqual(known.digest, wanted)) found = known;
    }
    return found;
  }
}

/** What is kept of a secret that is not to be read from a file. */
export function digest(token: string): Uint8Array {
  return createHash("sha256").update(token).digest();
}

/**
 * Reads a token file: one token a line, after its role and a space where that is not `operate`. Empty lines and
 * lines that start with `#` are ignored.
 *
 * @throws SvcError `token_file` (exit 2) when the file is missing, empty, or holds a malformed token
 */
function readTokens(path: string, warn: (message: string) => void): Tokens {
  const wrong = (what: string) =>
    usageError("token_file", `The token file ${path} ${what}.`, "Make one with: svc serve token");
  if (!isAbsolute(path)) throw wrong("is not an absolute path");
  const text = readTextIfExists(path);
  if (text === undefined) throw wrong("is not there");
  const tokens = text.split("\n").map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const role = TOKEN_ROLES.find((role) => line.startsWith(`${role} `));
      return {
        role: role ?? "operate",
        token: line.slice(role === undefined ? 0 : role.length + 1),
      };
    });
  if (tokens.length === 0) throw wrong("holds no token");
  if (tokens.some(({ token }) => token.length < MIN_TOKEN || /\s/.test(token))) {
    throw wrong(`holds a token of less than ${MIN_TOKEN} characters, or with a space in it`);
  }
  const { mode } = Deno.statSync(path);
  if (mode !== null && (mode & 0o077) !== 0) {
    warn(`The token file ${path} can be read by others; make it private with: chmod 600 ${path}`);
  }
  return new Tokens(tokens);
}

/** Random bytes in a token. */
const TOKEN_BYTES = 32;

/**
 * Adds a new bearer token to the token file, which only its owner can read: the file of `serve.token_file`,
 * or a new one in the user's settings folder, where no tool of an agent reaches it. The setting then names
 * the new file.
 *
 * @returns the token, and a note for the operator
 */
export async function makeToken(
  { config, paths }: Workspace,
  role: TokenRole,
): Promise<{ token: string; note: string }> {
  const configured = config.get("serve.token_file");
  const path = configured || join(paths.user, TOKENS);
  const token = randomToken();
  await updateFile(path, (text = "") => {
    const lines = text === "" || text.endsWith("\n") ? text : `${text}\n`;
    return `${lines}${role === "operate" ? "" : `${role} `}${token}\n`;
  }, 0o600);
  const kept = `It is kept in ${path}; a server that runs knows it after a restart.`;
  if (configured !== "") return { token, note: kept };
  await config.set("global", "serve.token_file", path);
  const effect =
    "From its next start, svc serve asks every request for a token, in all worktrees " +
    "(setting serve.token_file).";
  return { token, note: `${kept} ${effect}` };
}

/**
 * Makes a token file in the user's settings folder where `serve.token_file` is not set and there is none yet. Only a
 * request with one of its tokens can give an approval (`approves` of a route; `mcp_server.allow_ask`); other requests
 * need none.
 *
 * @returns the path of the new file; undefined when none was made
 */
export async function makeFirstToken({ config, paths }: Workspace): Promise<string | undefined> {
  const path = join(paths.user, TOKENS);
  if (config.get("serve.token_file") !== "" || exists(path)) return undefined;
  let made = false;
  await updateFile(path, (text) => {
    made = text === undefined; // another server may have been quicker
    return made ? `${randomToken()}\n` : undefined;
  }, 0o600);
  return made ? path : undefined;
}

/** A secret that cannot be guessed, of characters that need no quotes in a shell, a header or an address. */
export function randomToken(): string {
  return crypto.getRandomValues(new Uint8Array(TOKEN_BYTES))
    .toBase64({ alphabet: "base64url", omitPadding: true });
}
