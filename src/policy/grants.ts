import { relative } from "node:path";
import type { ToolArguments, ToolDefinition } from "../plugins/api.ts";
import { callObjection, suggestedPrefixes } from "./bash_allow.ts";
import { LISTED_ENVIRONMENT, opens } from "./listed_commands.ts";
import type { PathContext } from "./paths.ts";
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
export interface Approval extends Pick<Decision, "environment"> {
  /** Who gave it. */
  by: string;
  /** What it covers, in words. */
  covers: string;
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
    for (const key of keys) this.#approvals.set(key, { by, covers });
    for (const prefix of prefixes) this.#prefixes.set(prefix, by);
    return { by, covers, environment: prefixes.length > 0 ? LISTED_ENVIRONMENT : undefined };
  }

  /** The approval that covers all causes of a decision; undefined when one is not approved. */
  approval({ causes }: Decision): Approval | undefined {
    const found = causes.map((cause) => this.#covering(cause));
    return found.includes(undefined) ? undefined : found[0];
  }

  #covering({ keys, listed }: Cause): Approval | undefined {
    const key = keys.find((key) => this.#approvals.has(key));
    if (key !== undefined) return this.#approvals.get(key);
    const prefixes = [...this.#prefixes.keys()];
    if (prefixes.length === 0 || !listed?.(prefixes)) return undefined;
    const needed = prefixes.filter((each) => !listed(prefixes.filter((other) => other !== each)));
    const used = needed.length > 0 ? needed : prefixes;
    const by = this.#prefixes.get(used[0]!)!;
    return { by, covers: beginning(used), environment: LISTED_ENVIRONMENT };
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

/** A call that the policy asks about. */
export interface AskedCall {
  tool: ToolDefinition;
  args: ToolArguments;
  /** The real paths that its path arguments lead to. */
  paths: string[];
  /** Those of them that need an approval of their own. */
  outside: string[];
  context: PathContext;
  /** `tool_permission.bash_allow` */
  bash_allow: string[];
}

/** The cause of a call that its category asks about, and what an `always` answer can cover, narrowest first. */
export function categoryCause(
  reason: string,
  call: AskedCall,
): { cause: Cause; choices: GrantChoice[] } {
  const { tool, args, paths, context, bash_allow } = call;
  const category = tool.permission;
  const all = grantKey("category", category);
  const every = choice(`every ${category} call`, [all]);
  if (category === "bash") {
    const exact = callKey(tool, args);
    const listed = (prefixes: string[]) =>
      callObjection(args, [...bash_allow, ...prefixes], context) === undefined;
    const prefixes = suggestedPrefixes(args.command);
    const begins = prefixes.length > 0 && listed(prefixes)
      ? [{ ...choice(beginning(prefixes), []), prefixes, opens: opened(prefixes) }]
      : [];
    const choices = [choice("this very command", [exact]), ...begins, every];
    return { cause: { reason, keys: [exact, all], listed }, choices };
  }
  const [covers, key] = narrowest(tool, args, paths, context);
  return { cause: { reason, keys: [key, all] }, choices: [choice(covers, [key]), every] };
}

/** The cause of a call that its tool asks about, and what an `always` answer can cover. */
export function callCause(
  reason: string,
  { tool, args }: AskedCall,
): { cause: Cause; choices: GrantChoice[] } {
  const key = callKey(tool, args);
  return { cause: { reason, keys: [key] }, choices: [choice("this very call", [key])] };
}

/** The cause of a call for a path that needs an approval of its own. */
export function pathCause(reason: string, { name }: ToolDefinition, real: string): Cause {
  return { reason, keys: [grantKey("path", [name, real])] };
}

/**
 * What an `always` answer to a call for paths that need an approval can cover: these paths, and as little of
 * the rest as possible.
 */
export function pathChoices(
  causes: Cause[],
  choices: GrantChoice[],
  { tool, outside }: AskedCall,
): GrantChoice[] {
  const keys = causes.flatMap((cause) => cause.keys);
  const [first] = choices;
  if (first === undefined) return [choice(`${tool.name} for ${outside.join(", ")}`, keys)];
  return [{ ...first, keys: [...first.keys, ...keys] }];
}

/** What a call is about, as the narrowest thing to approve: a path, an address, or the tool itself. */
function narrowest(
  tool: ToolDefinition,
  args: ToolArguments,
  paths: string[],
  { worktree }: PathContext,
): [covers: string, key: string] {
  const category = tool.permission;
  if (paths.length > 0) {
    const shown = paths.map((path) => relative(worktree, path) || ".").map((path, index) =>
      path.startsWith("..") ? paths[index]! : path
    );
    return [`every ${category} call for ${shown.join(", ")}`, grantKey("at", [category, paths])];
  }
  const origin = typeof args.url === "string" && URL.canParse(args.url)
    ? new URL(args.url).origin
    : "null";
  if (origin !== "null") {
    return [`every ${category} call for ${origin}`, grantKey("origin", [category, origin])];
  }
  // An MCP server may replace an approved tool with another one of the same name.
  const { name, description, parameters } = tool;
  return [`every call of ${name}`, grantKey("tool", [name, description, parameters])];
}

function choice(covers: string, keys: string[]): GrantChoice {
  return { covers, opens: "", keys, prefixes: [] };
}

function beginning(prefixes: string[]): string {
  return `commands that begin with: ${prefixes.join(", ")}`;
}

function opened(prefixes: string[]): string {
  const effects = prefixes.map((prefix) => opens(prefix.split(" "))).filter((each) => each !== "");
  return [...new Set(effects)].join("; ");
}

/** Covers the same tool with the same arguments, in any order. */
function callKey({ name }: ToolDefinition, args: ToolArguments): string {
  return grantKey("call", [name, Object.entries(args).sort(([a], [b]) => a < b ? -1 : 1)]);
}

function grantKey(
  kind: "call" | "at" | "origin" | "tool" | "category" | "path",
  subject: unknown,
): string {
  return JSON.stringify([kind, subject]);
}
