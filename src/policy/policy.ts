import type { Action, ConfigView, ToolArguments, ToolDefinition } from "../plugins/api.ts";
import { errorMessage } from "../platform/error.ts";
import { callObjection } from "./bash_list.ts";
import type { PolicySettings } from "./settings.ts";
import { namesOwnFiles, runsPrograms } from "./sealed.ts";
import type { WorktreeGuard } from "./worktree.ts";

/** What the policy says to one call. */
export interface Decision {
  action: Action;
  category: string;
  /** The tool's path argument as given, several joined with `, `; empty when there is none. */
  path: string;
  /** Why, as the end of a sentence. */
  reason: string;
  /** Real absolute paths that only an approval opens: outside the worktree, or protected. */
  outside: string[];
  /**
   * For an `ask`, what an `always` answers: one key a cause. A call needs all of its keys, so an
   * approval of one cause never covers another.
   */
  grants: string[];
}

/** A cause for asking and the key under which `always` is remembered. */
interface Cause {
  reason: string;
  grant: string;
}

interface Answer extends Cause {
  action: Action;
}

/**
 * Decides over tool calls (specification 5.3). In this order: the deny list, the allow list, the
 * category's action, `bash_allow`, the tool's own resolver, the worktree. A denial is final wherever it
 * falls; a later step makes an `ask` of an `allow`, and only the resolver and `bash_allow` the reverse.
 * A tool with `confirm: false` is never asked about: it runs where another would wait, save in a place
 * that only an approval opens, which it is denied.
 */
export class Policy {
  readonly #settings: PolicySettings;
  readonly #limit: PolicySettings;
  readonly #guard: WorktreeGuard;
  readonly #config: ConfigView;

  /** @param limit what leave can open at most; default: the settings, so that it opens no category */
  constructor(
    settings: PolicySettings,
    guard: WorktreeGuard,
    config: ConfigView,
    limit = settings,
  ) {
    this.#settings = settings;
    this.#limit = limit;
    this.#guard = guard;
    this.#config = config;
  }

  /**
   * Whether the model is told of a tool; see {@linkcode isOffered}.
   *
   * @param leave whether the agent has leave for a call of its category
   */
  offers(tool: ToolDefinition, leave = false): boolean {
    return isOffered(leave ? this.#limit : this.#settings, tool);
  }

  /** Whether files of the worktree may be read without an approval. */
  reads(): boolean {
    return actionOf(this.#settings, "read") === "allow";
  }

  /**
   * The categories among these tools of which every call needs an approval; where `bash_allow` opens a
   * part of `bash`, what it leaves open is named.
   */
  refusedWithoutApproval(offered: ToolDefinition[]): string[] {
    const refused = new Map<string, boolean>();
    for (const tool of offered) {
      const asks = actionOf(this.#settings, tool.permission) === "ask" &&
        tool.confirm !== false && tool.permission_fn === undefined;
      refused.set(tool.permission, asks && refused.get(tool.permission) !== false);
    }
    const { bash_allow } = this.#settings;
    return [...refused].filter(([, all]) => all).map(([category]) =>
      category === "bash" && bash_allow.length > 0
        ? `bash (save commands that start with: ${bash_allow.join(", ")})`
        : category
    );
  }

  /**
   * Decides over one call with cleaned arguments. Never throws.
   *
   * @param leave whether the agent has leave for a call of this category: then the limit says what the
   * category may do, and its `ask` is answered. Every other step stands.
   */
  resolve(tool: ToolDefinition, args: ToolArguments, leave = false): Decision {
    const names = [tool.path_arg ?? []].flat().filter((name) => Object.hasOwn(args, name));
    const given = names.map((name) => args[name]);
    const path = given.filter((value) => typeof value === "string").join(", ");
    const decision = { category: tool.permission, path, outside: [], grants: [] };
    const denied = (reason: string): Decision => ({ ...decision, action: "deny", reason });

    const settings = leave ? this.#limit : this.#settings;
    const barred = barredBy(settings, tool);
    if (barred !== "") return denied(barred);
    if (this.#guard.seals && runsPrograms(tool) && namesOwnFiles(args)) {
      return denied("the call names svc's own files, which this agent cannot change");
    }
    const answer = this.#answer(tool, args, settings, leave);
    if (answer.action === "deny") return denied(answer.reason);

    const asks = answer.action !== "allow" && tool.confirm !== false;
    const causes: Cause[] = asks ? [answer] : [];
    const outside: string[] = [];
    for (const value of given) {
      const { action, reason, real } = this.#place(tool, value);
      if (action === "allow") continue;
      if (action === "deny") return denied(reason);
      // A tool that is never confirm-gated cannot ask for a place that needs asking.
      if (tool.confirm === false) return denied(`${reason}, and ${tool.name} never asks`);
      outside.push(real);
      causes.push({ reason, grant: key("path", tool, real) });
    }
    if (causes.length === 0) return { ...decision, action: "allow", reason: answer.reason };
    return {
      ...decision,
      action: "ask",
      reason: causes.map((cause) => cause.reason).join("; "),
      outside,
      grants: causes.map((cause) => cause.grant),
    };
  }

  /** The category's action as the bash list and the resolver refine it for these arguments. */
  #answer(
    tool: ToolDefinition,
    args: ToolArguments,
    settings: PolicySettings,
    leave: boolean,
  ): Answer {
    const category = tool.permission;
    const action = actionOf(settings, category);
    // One command says nothing about the next, nor do a resolver's arguments.
    const exact = key("call", tool, Object.entries(args).sort(([a], [b]) => a < b ? -1 : 1));
    let answer: Answer = {
      action,
      reason: `the category ${category} is set to ${action} in mode ${settings.mode}`,
      // An MCP server may put another tool under the name of one that was approved.
      grant: category === "bash" ? exact : key("tool", tool, [tool.description, tool.parameters]),
    };
    if (category === "bash") answer = bashList(answer, args, settings, this.#guard);
    if (leave && answer.action === "ask") {
      answer = {
        ...answer,
        action: "allow",
        reason: `leave was given for the category ${category}`,
      };
    }
    const refines = tool.permission_fn !== undefined && Object.keys(args).length > 0;
    if (answer.action === "deny" || !refines) return answer;
    try {
      const refined = tool.permission_fn!(args, this.#config);
      if (refined === undefined) return answer;
      if (refined !== "allow" && refined !== "ask" && refined !== "deny") {
        throw new Error(`it answered ${JSON.stringify(refined)}`);
      }
      const verb = { allow: "allows", ask: "asks for", deny: "denies" }[refined];
      return {
        action: refined,
        reason: `${tool.name} ${verb} a call with these arguments`,
        grant: exact,
      };
    } catch (error) {
      const reason = `${tool.name} cannot judge these arguments (${errorMessage(error)})`;
      return { action: "ask", reason, grant: exact };
    }
  }

  /** What the place that a path argument leads to allows. */
  #place(tool: ToolDefinition, value: unknown): { action: Action; reason: string; real: string } {
    const answer = (action: Action, reason: string, real = "") => ({ action, reason, real });
    if (typeof value !== "string") return answer("deny", "a path argument is not a string");
    const shown = JSON.stringify(value.slice(0, 200));
    try {
      const { real, inside, protected: guarded, sealed } = this.#guard.locate(value);
      if (guarded === "read") return answer("deny", `${shown} holds keys, which no tool may touch`);
      const reads = tool.permission === "read" || tool.permission === "list";
      if (sealed && !reads) {
        return answer("deny", `${shown} is svc's own, which this agent cannot change`);
      }
      if (!inside) return answer("ask", `${shown} is outside the worktree`, real);
      if (guarded === "write" && !reads) return answer("ask", `${shown} is protected`, real);
      return answer("allow", "");
    } catch (error) {
      return answer("deny", errorMessage(error).replace(/\.$/, ""));
    }
  }
}

/**
 * Whether a tool is in the schema that the model gets: not when a list bars it (5.3), and not when its
 * category is denied. Nothing lifts a denied category, not even a resolver, so a schema with the tool in
 * it would only invite calls that fail. A model that calls it anyway is answered and recorded.
 */
export function isOffered(settings: PolicySettings, tool: ToolDefinition): boolean {
  return barredBy(settings, tool) === "" && actionOf(settings, tool.permission) !== "deny";
}

/** `tool_permission.bash_allow` (2.13): lifts `ask` for listed commands, and narrows `allow` to them. */
function bashList(
  answer: Answer,
  args: ToolArguments,
  { bash_allow }: PolicySettings,
  guard: WorktreeGuard,
): Answer {
  if (answer.action === "deny" || bash_allow.length === 0) return answer;
  const objection = callObjection(args, bash_allow, guard);
  if (objection === undefined) {
    return { ...answer, action: "allow", reason: "tool_permission.bash_allow lists the command" };
  }
  const deny = objection.final || answer.action === "allow";
  const reason = `with tool_permission.bash_allow set, ${objection.reason}`;
  return { ...answer, action: deny ? "deny" : "ask", reason };
}

/**
 * The action of a category; what nobody configured is asked for. `dev` runs what a project's files say,
 * and so goes as `bash` goes until it is set itself; a list of commands names none of its.
 */
export function actionOf(settings: PolicySettings, category: string): Action {
  if (Object.hasOwn(settings.actions, category)) return settings.actions[category]!;
  if (category !== "dev") return "ask";
  const bash = actionOf(settings, "bash");
  return bash === "allow" && settings.bash_allow.length > 0 ? "ask" : bash;
}

/** Which list keeps a tool out, under its name or an alias; empty when none does. */
function barredBy({ allow, deny }: PolicySettings, tool: ToolDefinition): string {
  const names = [tool.name, ...tool.aliases ?? []];
  const listed = (list: string[]) => names.some((name) => list.includes(name));
  if (listed(deny)) return `tools.deny names ${tool.name}`;
  return allow.length > 0 && !listed(allow) ? `tools.allow does not name ${tool.name}` : "";
}

function key(kind: "tool" | "call" | "path", tool: ToolDefinition, subject: unknown): string {
  return JSON.stringify([kind, tool.name, subject]);
}
