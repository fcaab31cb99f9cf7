import { join } from "node:path";
import * as z from "zod/mini";
import type { Clock } from "../../platform/clock.ts";
import {
  jsonOr,
  lstatIfExists,
  makeFolder,
  readTextIfExists,
  tryRemove,
} from "../../platform/files.ts";
import { digest, randomToken, TOKEN_ROLES, type TokenRole, type Tokens } from "../admission.ts";

/** Milliseconds for which a link and a cookie are valid. */
export const VALID = { link: 5 * 60_000, cookie: 7 * 86_400_000 };

const signInSchema = z.object({
  kind: z.enum(["link", "cookie"]),
  role: z.enum(TOKEN_ROLES),
  /** Milliseconds since the epoch. */
  until: z.number(),
  /** Digest of the token that signed in; left out: a link did. */
  token: z.optional(z.string()),
});
type SignIn = z.infer<typeof signInSchema>;

/** The person who looks at a page. */
export interface Viewer {
  role: TokenRole;
  /** Which every form carries, and no other site can know. */
  formToken: string;
}

/**
 * The links and cookies that sign in to the console. Each is a file that is named by the digest of
 * its secret: making one takes the right to write there, and reading them reveals no secret. They are valid
 * after a restart of the server, and removing the file signs out.
 */
export class SignIns {
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #tokens: Tokens | undefined;

  /** @param folder see `consoleFolder` */
  constructor(folder: string, clock: Clock, tokens?: Tokens) {
    this.#folder = folder;
    this.#clock = clock;
    this.#tokens = tokens;
  }

  /** The secret of a new link. */
  makeLink(role: TokenRole): string {
    return this.#make({ kind: "link", role });
  }

  /**
   * The secret of the cookie that a link or a token of the HTTP API is exchanged for; undefined for an unknown one.
   * A link is valid once.
   */
  signIn(key: string): string | undefined {
    const link = this.#find(key, "link");
    if (link !== undefined) {
      try {
        Deno.removeSync(this.#path(key));
      } catch {
        return undefined; // another server on the worktree was quicker
      }
      return this.#make({ kind: "cookie", role: link.role });
    }
    const token = this.#tokens?.withDigest(digest(key));
    if (token === undefined) return undefined;
    return this.#make({ kind: "cookie", role: token.role, token: digest(key).toHex() });
  }

  /** The holder of a cookie; undefined when it is not valid any more. */
  viewer(secret: string): Viewer | undefined {
    const cookie = this.#find(secret, "cookie");
    if (cookie === undefined) return undefined;
    const { token } = cookie;
    const role = token === undefined
      ? cookie.role
      : this.#tokens?.withDigest(Uint8Array.fromHex(token))?.role;
    return role && { role, formToken: digest(`form ${secret}`).toHex() };
  }

  /** Makes a cookie invalid. */
  signOut(secret: string): void {
    if (this.#find(secret, "cookie") !== undefined) tryRemove(this.#path(secret));
  }

  #make(signIn: Omit<SignIn, "until">): string {
    makeFolder(this.#folder, 0o700);
    for (const { name } of Deno.readDirSync(this.#folder)) {
      if (name.endsWith(".json")) this.#read(join(this.#folder, name));
    }
    const secret = randomToken();
    const until = this.#clock.now() + VALID[signIn.kind];
    const text = JSON.stringify({ ...signIn, until });
    Deno.writeTextFileSync(this.#path(secret), text, { createNew: true, mode: 0o600 });
    return secret;
  }

  #find(secret: string, kind: SignIn["kind"]): SignIn | undefined {
    const found = this.#read(this.#path(secret));
    return found?.kind === kind ? found : undefined;
  }

  #path(secret: string): string {
    return join(this.#folder, `${digest(secret).toHex()}.json`);
  }

  /** A valid sign-in. An expired one is removed. */
  #read(path: string): SignIn | undefined {
    const info = lstatIfExists(path);
    // A file that others may write, such as one of a clone, was not made by `svc console`.
    if (!info?.isFile || ((info.mode ?? 0) & 0o077) !== 0) return undefined;
    const { data } = signInSchema.safeParse(jsonOr(readTextIfExists(path) ?? "", undefined));
    if (data === undefined) return undefined;
    const left = data.until - this.#clock.now();
    if (left > 0) return left <= VALID[data.kind] ? data : undefined;
    tryRemove(path);
    return undefined;
  }
}
