import type { Action, ConfigView, ToolArguments, ToolDefinition } from "../plugins/api.ts";
import { errorMessage } from "../platform/error.ts";
import { callObjection } from "./bash_allow.ts";
import { callCause, categoryCause, pathCause, pathChoices } from "./causes.ts";
import { LISTED_ENVIRONMENT } from "./listed_commands.ts";
import type { Cause, GrantChoice } from "./grants.ts";
import type { PathContext, WorktreeGuard } from "./paths.ts";
import type { PolicySettings } from "./settings.ts";

/** The policy's decision about one call. */
export interface Decision {
  action: Action;
  category: string;
  /** The tool's path argument as given, several joined with `, `; empty when there is none. */
  path: string;
  /** Why, as the end of a sentence. */
  reason: string;
  /** Real absolute paths that need an approval: outside the worktree, or protected. */
  outside: string[];
  /** Of an `ask`, its causes. A call needs an approval of each. */
  causes: Cause[];
  /** Of an `ask`, what an `always` answer can cover, narrowest first; empty when it can be approved for once alone. */
  choices: GrantChoice[];
  /** Variables for the programs that the call runs: of a command that `bash_allow` covers. Default: none. */
  environment?: Readonly<Record<string, string>>;
}

interface Answer extends Pick<Decision, "environment"> {
  action: Action;
  reason: string;
  /** Whether the tool decided, and not its category. */
  own?: true;
}

/**
 * Decides about tool calls (specification 5.3). The steps, in order: the deny list, the allow list, the
 * category's action, `bash_allow`, the tool's own resolver, the worktree. A denial at any step is final. A
 * later step may turn `allow` into `ask`; only the resolver and `bash_allow` may turn `ask` into `allow`.
 * A tool with `confirm: false` never needs an approval: where another tool would ask, it runs, except
 * for paths that need an approval, where it is denied.
 */
export class Policy {
  readonly #settings: PolicySettings;
  readonly #limit: PolicySettings;
  readonly #guard: WorktreeGuard;
  readonly #config: ConfigView;

  /** @param limit the most that a permission grant can open; default: the settings, so it opens nothing */
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
   * Whether a tool is in the schema for the model; see {@linkcode isOffered}.
   *
   * @param granted whether the agent has a permission grant for the tool's category
   */
  offers(tool: ToolDefinition, granted = false): boolean {
    const { needs_setting } = tool;
    if (needs_setting && this.#config.get(needs_setting)?.length === 0) return false;
    return isOffered(granted ? this.#limit : this.#settings, tool);
  }

  /** The policy of a turn with a tool of its own, whose calls are allowed whatever the lists say. */
  allowing({ name, permission }: ToolDefinition): Policy {
    const { actions, allow, deny } = this.#settings;
    const settings = {
      ...this.#settings,
      actions: { ...actions, [permission]: "allow" as const },
      allow: allow.length === 0 ? allow : [...allow, name],
      deny: deny.filter((each) => each !== name),
    };
    return new Policy(settings, this.#guard, this.#config, this.#limit);
  }

  /** Whether files in the worktree may be read without an approval. */
  reads(): boolean {
    return actionOf(this.#settings, "read") === "allow";
  }

  /** The categories of these tools in which every call is denied. */
  deniedCategories(tools: ToolDefinition[]): string[] {
    const categories = new Set(tools.map(({ permission }) => permission));
    return [...categories].filter((category) => actionOf(this.#settings, category) === "deny");
  }

  /**
   * The categories of these tools whose calls are refused where no one approves them. A category in which some
   * calls are allowed all the same is followed by them: `bash (except commands that start with: ls)`.
   */
  refusedWithoutApproval(offered: ToolDefinition[]): string[] {
    const { bash_allow } = this.#settings;
    const asking = offered.filter(({ permission }) =>
      actionOf(this.#settings, permission) === "ask"
    );
    return [...Map.groupBy(asking, ({ permission }) => permission)].flatMap(([category, tools]) => {
      const gated = tools.filter(({ confirm }) => confirm !== false);
      if (gated.length === 0) return [];
      const names = (list: ToolDefinition[]) => list.map(({ name }) => name).join(", ");
      const ungated = tools.filter((tool) => tool.confirm === false && !runsNothing(tool));
      const judging = gated.filter(({ permission_fn }) => permission_fn !== undefined);
      const exceptions = [
        ...category === "bash" && bash_allow.length > 0
          ? [`commands that start with: ${bash_allow.join(", ")}`]
          : [],
        ...ungated.length > 0 ? [`calls of ${names(ungated)}`] : [],
        ...judging.length > 0 ? [`calls that ${names(judging)} allows for their arguments`] : [],
      ];
      return [exceptions.length === 0 ? category : `${category} (except ${exceptions.join("; ")})`];
    });
  }

  /**
   * Decides about one call with cleaned arguments. Never throws.
   *
   * @param granted whether the agent has a permission grant for the tool's category. The category's action
   * is then that of the limit, and `ask` counts as approved. All other steps apply as usual.
   * @param context the protected paths
   */
  resolve(
    tool: ToolDefinition,
    args: ToolArguments,
    granted = false,
    context = this.#guard.context(),
  ): Decision {
    const given = pathsOf(tool, args);
    const path = given.filter((value) => typeof value === "string").join(", ");
    const decision = { category: tool.permission, path, outside: [], causes: [], choices: [] };
    const denied = (reason: string): Decision => ({ ...decision, action: "deny", reason });

    const settings = granted ? this.#limit : this.#settings;
    const excluded = excludedBy(settings, tool);
    if (excluded !== "") return denied(excluded);
    if (this.#guard.seals && runsPrograms(tool) && namesOwnFiles(args)) {
      return denied("the call names svc's own files, which this agent cannot change");
    }
    const answer = this.#answer(tool, args, settings, granted, context);
    if (answer.action === "deny") return denied(answer.reason);
    if (settings.read_only && !changesNothing(tool, args)) {
      return denied(`plan mode changes nothing, and ${tool.name} may change something`);
    }
    const { environment } = answer;

    const outside: string[] = [];
    const paths: string[] = [];
    const pathCauses: Cause[] = [];
    let keptOnly = given.length > 0;
    for (const value of given) {
      const { action, reason, real, kept } = pathAnswer(tool, value, context);
      paths.push(real);
      keptOnly &&= kept === true;
      if (action === "allow") continue;
      if (action === "deny") return denied(reason);
      // A tool that never asks cannot use a path that needs an approval.
      if (tool.confirm === false) return denied(`${reason}, and ${tool.name} never asks`);
      outside.push(real);
      pathCauses.push(pathCause(reason, tool, args, real));
    }
    // The agent has had the result that its session keeps.
    const asks = answer.action !== "allow" && tool.confirm !== false && !keptOnly;
    if (!asks && outside.length === 0) {
      return { ...decision, action: "allow", reason: answer.reason, environment };
    }
    const { bash_allow } = settings;
    const call = { tool, args, paths, outside, context, bash_allow };
    const asked = !asks
      ? undefined
      : answer.own
      ? callCause(answer.reason, call)
      : categoryCause(answer.reason, call);
    const causes = [...asked === undefined ? [] : [asked.cause], ...pathCauses];
    const choices = asked?.choices ?? [];
    return {
      ...decision,
      environment,
      action: "ask",
      reason: causes.map((cause) => cause.reason).join("; "),
      outside,
      causes,
      choices: outside.length === 0 ? choices : pathChoices(pathCauses, choices, call),
    };
  }

  /** The category's action, refined for these arguments by `bash_allow` and the resolver. */
  #answer(
    tool: ToolDefinition,
    args: ToolArguments,
    settings: PolicySettings,
    granted: boolean,
    context: PathContext,
  ): Answer {
    const category = tool.permission;
    const action = actionOf(settings, category);
    let answer: Answer = {
      action,
      reason: `the category ${category} is set to ${action} in mode ${settings.mode}`,
    };
    if (category === "bash" && !runsNothing(tool)) {
      answer = bashList(answer, args, settings, context);
    }
    if (granted && answer.action === "ask") {
      answer = {
        ...answer,
        action: "allow",
        reason: `permission was granted for the category ${category}`,
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
        own: true,
      };
    } catch (error) {
      const reason = `${tool.name} cannot judge these arguments (${errorMessage(error)})`;
      return { action: "ask", reason, own: true };
    }
  }
}

/**
 * Whether a tool is in the schema for the model. It is not when a list excludes it (5.3) or its category
 * is denied, or plan mode denies each of its calls: no later step lifts such a denial. A call that the model makes
 * anyway is denied and recorded.
 */
export function isOffered(settings: PolicySettings, tool: ToolDefinition): boolean {
  return excludedBy(settings, tool) === "" && actionOf(settings, tool.permission) !== "deny" &&
    !(settings.read_only && !changesNothing(tool));
}

/** Whether a tool of the category `bash` runs no command, and never asks: it looks after those that run. */
export function runsNothing({ permission, confirm, parameters }: ToolDefinition): boolean {
  return permission === "bash" && confirm === false &&
    !Object.hasOwn(parameters.properties, "command");
}

/** The paths that a call names. A tool that cannot tell its paths names one that every check refuses. */
export function pathsOf(tool: ToolDefinition, args: ToolArguments): unknown[] {
  const names = [tool.path_arg ?? []].flat().filter((name) => Object.hasOwn(args, name));
  const given: unknown[] = names.map((name) => args[name]);
  try {
    return [...given, ...tool.paths?.(args) ?? []];
  } catch {
    return [...given, undefined];
  }
}

/** Whether a call of a tool changes nothing; without arguments, whether some call may change nothing. */
export function changesNothing(tool: ToolDefinition, args?: ToolArguments): boolean {
  const { read_only = ["read", "list", "web"].includes(tool.permission) } = tool;
  if (typeof read_only !== "function") return read_only === true;
  try {
    return args === undefined || read_only(args) === true;
  } catch {
    return false;
  }
}

/** The action for the path that an argument leads to. */
function pathAnswer(
  tool: ToolDefinition,
  value: unknown,
  context: PathContext,
): { action: Action; reason: string; real: string; kept?: boolean } {
  const answer = (action: Action, reason: string, real = "") => ({ action, reason, real });
  if (typeof value !== "string") return answer("deny", "a path argument is not a string");
  const shown = JSON.stringify(value.slice(0, 200));
  try {
    const location = context.locate(value);
    const { real, inside, closed, sealed, skill, kept } = location;
    if (closed) return answer("deny", `${shown} ${context.closedBecause(real)}`);
    const reads = tool.permission === "read" || tool.permission === "list";
    if (sealed && !reads) {
      return answer("deny", `${shown} is svc's own, which this agent cannot change`);
    }
    if (!inside && !(skill && reads)) {
      return answer("ask", `${shown} is outside the worktree`, real);
    }
    if (!reads && location.protected !== false) return answer("ask", `${shown} is protected`, real);
    return { ...answer("allow", "", real), kept };
  } catch (error) {
    return answer("deny", errorMessage(error).replace(/\.$/, ""));
  }
}

/** `tool_permission.bash_allow` (2.13) lifts `ask` for listed commands and narrows `allow` to them. */
function bashList(
  answer: Answer,
  args: ToolArguments,
  { bash_allow }: PolicySettings,
  context: PathContext,
): Answer {
  if (answer.action === "deny" || bash_allow.length === 0) return answer;
  const objection = callObjection(args, bash_allow, context);
  if (objection === undefined) {
    return {
      ...answer,
      action: "allow",
      reason: "tool_permission.bash_allow lists the command",
      environment: LISTED_ENVIRONMENT,
    };
  }
  const deny = objection.final || answer.action === "allow";
  const reason = `with tool_permission.bash_allow set, ${objection.reason}`;
  return { ...answer, action: deny ? "deny" : "ask", reason };
}

/**
 * The action of a category; `ask` when it is not configured. A team delegates to its roles, so its default is the
 * action of `delegate` (specification 4.8). `dev` runs commands from a project's files, so its default is the action
 * of `bash`, without the exemptions of `bash_allow`.
 */
export function actionOf(settings: PolicySettings, category: string): Action {
  if (Object.hasOwn(settings.actions, category)) return settings.actions[category]!;
  const other = FOLLOWS.get(category);
  if (other === undefined) return "ask";
  const action = actionOf(settings, other);
  const listed = other === "bash" && settings.bash_allow.length > 0;
  return action === "allow" && listed ? "ask" : action;
}

/** The categories that have the action of another one until they are set; see {@linkcode actionOf}. */
export const FOLLOWS: ReadonlyMap<string, string> = new Map([
  ["team", "delegate"],
  ["dev", "bash"],
]);

/** Which list excludes a tool, by its name or an alias; empty when none does. */
function excludedBy({ allow, deny }: PolicySettings, tool: ToolDefinition): string {
  if (allow.length === 0 && deny.length === 0) return "";
  const names = [tool.name, ...tool.aliases ?? []];
  const listed = (list: string[]) => names.some((name) => list.includes(name));
  if (listed(deny)) return `tools.deny names ${tool.name}`;
  return allow.length > 0 && !listed(allow) ? `tools.allow does not name ${tool.name}` : "";
}

/** Whether the tool starts programs, whose file access the path guard does not see. */
function runsPrograms({ permission }: ToolDefinition): boolean {
  return permission === "bash" || permission === "vcs" || permission === "dev";
}

/**
 * Whether a call names svc's state or settings literally. A program that assembles such a name itself
 * cannot be recognised here; an operator who allows commands accepts that.
 */
function namesOwnFiles(args: ToolArguments): boolean {
  return OWN_FILES.test(JSON.stringify(args).normalize("NFKC").replace(/\\+["']|["']/g, ""));
}

const OWN_FILES = /(?<![\w-])\.svc(?![\w-])|\.config\/+svc(?![\w-])/i;
