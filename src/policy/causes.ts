import { relative } from "node:path";
import type { ToolArguments, ToolDefinition } from "../plugins/api.ts";
import { callObjection, suggestedPrefixes } from "./bash_allow.ts";
import { beginning, type Cause, type GrantChoice } from "./grants.ts";
import { opens } from "./listed_commands.ts";
import type { PathContext } from "./paths.ts";

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
export function pathCause(
  reason: string,
  tool: ToolDefinition,
  args: ToolArguments,
  real: string,
): Cause {
  const path = grantKey("path", [tool.name, real]);
  return { reason, keys: [path, path + callKey(tool, args)] };
}

/**
 * What an `always` answer to a call for paths that need an approval can cover: these paths, and as little of
 * the rest as possible.
 */
export function pathChoices(
  causes: Cause[],
  choices: GrantChoice[],
  { tool, args, outside }: AskedCall,
): GrantChoice[] {
  const [first] = choices;
  // An approval of this very call approves the paths for no other call.
  const exact = first?.keys.includes(callKey(tool, args));
  const keys = causes.map((cause) => cause.keys[exact ? 1 : 0]!);
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
