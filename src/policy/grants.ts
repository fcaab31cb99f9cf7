import type { Decision } from "./policy.ts";

/** A reason to ask for approval. */
export interface Cause {
  /** The end of a sentence. */
  reason: string;
  /** The keys of approvals that cover it. An approval of one cause never covers another. */
  keys: string[];
  /** Whether approved beginnings of commands cover it. Default: they do not. */
  listed?(prefixes: string[]): boolean;
}

/** What an `always` answer to a confirmation can cover, until the session ends. */
export interface GrantChoice {
  /** In words: `commands that begin with: git status`. */
  covers: string;
  /** What that opens in addition, in words; empty when it opens nothing. */
  opens: string;
  /** The keys to approve, which cover each cause. */
  keys: string[];
  /** Beginnings of commands to approve. */
  prefixes: string[];
}

/** An approval that covers a call. */
export interface Approval {
  /** Who gave it. */
  by: string;
  /** What it covers, in words. */
  covers: string;
  /** Whether it is one of beginnings of commands, so that the call runs as a command of `bash_allow` does. */
  listed: boolean;
}

/** A permission grant for calls of a category. */
export interface PermissionGrant {
  /** `once`: for one call; `always`: for the rest of the run. */
  scope: "once" | "always";
  /** Who granted it, as {@linkcode ConfirmAnswer.by}. */
  by: string;
}

/**
 * The approvals and permission grants of one agent. They apply to no other agent.
 *
 * Approvals are the `always` answers of a session: each covers what its {@linkcode GrantChoice} says.
 * A call that is asked for several causes needs an approval of each.
 *
 * Permission grants are requested with the tool `ask` (specification 4.8, kind `permission`). A grant opens
 * a category as far as the agent's limit allows.
 */
export class Grants {
  readonly #approvals = new Map<string, Approval>();
  /** Who approved a beginning of commands. */
  readonly #prefixes = new Map<string, string>();
  /** By category. */
  readonly #grants = new Map<string, PermissionGrant>();

  /** Adds an `always` answer. @returns the approval for the call that it answered */
  add({ covers, keys, prefixes }: GrantChoice, by: string): Approval {
    for (const key of keys) this.#approvals.set(key, { by, covers, listed: false });
    for (const prefix of prefixes) this.#prefixes.set(prefix, by);
    return { by, covers, listed: prefixes.length > 0 };
  }

  /** The approval that covers all causes of a decision; undefined when one is not approved. */
  approval({ causes }: Decision): Approval | undefined {
    const found = causes.map((cause) => this.#covering(cause));
    return found.includes(undefined) ? undefined : found[0];
  }

  /** What the approvals cover, in words. */
  get covers(): string[] {
    const begins = this.#prefixes.size > 0 ? [beginning([...this.#prefixes.keys()])] : [];
    const keyed = Array.from(this.#approvals.values(), ({ covers }) => covers);
    return [...new Set([...keyed, ...begins])];
  }

  #covering({ keys, listed }: Cause): Approval | undefined {
    const key = keys.find((key) => this.#approvals.has(key));
    if (key !== undefined) return this.#approvals.get(key);
    const prefixes = [...this.#prefixes.keys()];
    if (prefixes.length === 0 || !listed?.(prefixes)) return undefined;
    const needed = prefixes.filter((each) => !listed(prefixes.filter((other) => other !== each)));
    const used = needed.length > 0 ? needed : prefixes;
    const by = this.#prefixes.get(used[0]!)!;
    return { by, covers: beginning(used), listed: true };
  }

  /** Adds a permission grant. A grant for one call does not replace one for all calls. */
  give(category: string, grant: PermissionGrant): void {
    if (this.#grants.get(category)?.scope !== "always") this.#grants.set(category, grant);
  }

  has(category: string): boolean {
    return this.#grants.has(category);
  }

  /** The permission grant for a category. One for a single call is removed. */
  take(category: string): PermissionGrant | undefined {
    const grant = this.#grants.get(category);
    if (grant?.scope === "once") this.#grants.delete(category);
    return grant;
  }

  /** Removes unused permission grants for one call. */
  endTurn(): void {
    for (const [category, { scope }] of this.#grants) {
      if (scope === "once") this.#grants.delete(category);
    }
  }
}

/** What an approval of beginnings of commands covers, in words. */
export function beginning(prefixes: string[]): string {
  return `commands that begin with: ${prefixes.join(", ")}`;
}
