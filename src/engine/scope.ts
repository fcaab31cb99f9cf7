import type { ConfigView, EnvironmentService, Provider, SearchService } from "../plugins/api.ts";
import type { Clock, Pace } from "../platform/clock.ts";
import type { Sandbox } from "../platform/sandbox.ts";
import type { Grants } from "../policy/grants.ts";
import type { Operator } from "../policy/operator.ts";
import type { WorktreeGuard } from "../policy/paths.ts";
import type { Policy } from "../policy/policy.ts";
import type { PolicySettings } from "../policy/settings.ts";
import type { NamedWindows } from "../providers/windows.ts";
import type { Session } from "../sessions/session.ts";
import type { ToolRegistry } from "../tools/registry.ts";
import type { StructuredAnswer } from "./answer.ts";
import type { Checker } from "./checker.ts";
import type { Hooks } from "./hooks.ts";
import type { TreeChanges } from "./changes.ts";
import type { AgentPrompt } from "./context.ts";
import type { LoggedTurn } from "./conversation.ts";
import type { Meter } from "./meter.ts";
import type { TurnResult } from "./events.ts";
import type { TurnModel, TurnModels } from "./models.ts";
import type { Repetition } from "./repetition.ts";
import type { RunRegistry } from "./runs.ts";
import type { TurnMessage, TurnTask } from "./task.ts";
import type { AgentActions, CallHooks } from "./tools/core.ts";
import type { Workspace } from "./workspace.ts";

/** What one agent works with from turn to turn; `agentEngine` assembles it. */
export interface AgentScope {
  session: Session;
  /** Where the agent's run is registered (specification 2.5), and the run's number there. */
  runs: RunRegistry;
  run: number;
  provider: Provider;
  /** Counts the provider's requests. */
  meter: Meter;
  /** Called when a turn begins, which uses the provider. */
  used: () => void;
  /** The models of the setting `model_fallback`. */
  fallbacks: readonly TurnModel[];
  tools: ToolRegistry;
  rights: AgentRights;
  prompt: PromptSources;
  links: AgentLinks;
  config: ConfigView;
  clock: Clock;
  /** Admits the long pieces of work of all agents of the workspace, one after another. */
  pace: Pace;
  /** The context windows that backends name. */
  windows: NamedWindows;
  /** Runs the commands of tools. */
  sandbox: Sandbox;
  /** The commands in the background. */
  commands: Workspace["commands"];
  /** Keeps what the turns of the agent's tree change. */
  changes: TreeChanges;
  /** Masks known secrets in results and errors. */
  mask: (text: string) => string;
  /** The stored key of a name, if it was stored for the address; see `ToolContext`. */
  key: (name: string, address: string) => string;
  /** What describes the worktree to a new session. */
  environment: () => EnvironmentService[];
  /** What searches the web before a turn (`web_search`). Default: no turn is preceded by a search. */
  search?: () => SearchService | undefined;
}

/** What an agent may do, and the operator who is asked for more. */
interface AgentRights {
  settings: PolicySettings;
  /** What the agent can be granted at most. */
  limit: PolicySettings;
  /** The grants for the rest of the session; an engine that replaces another keeps them. */
  grants: Grants;
  guard: WorktreeGuard;
  operator: Operator;
  /** Whether no one can approve calls. The prompt then names what will be refused. */
  headless: boolean;
}

/** What the system prompt of an agent is composed of. */
interface PromptSources {
  /** Real absolute path. */
  worktree: string;
  /** The role's part. Default: none. */
  role?: AgentPrompt;
  /** A job's sections, in place of the configured prompt and the built-in one. */
  job?: string[];
  /** The memory of a job's runs. Default: none. */
  memory?: string;
}

/** An agent's relations: to those that it can start, and to those that it can ask. */
export interface AgentLinks {
  /** The section of the system prompt about these entries of the catalog; empty when there are none. */
  directory(listed: { role: boolean; team: boolean; skill: boolean }): Promise<string>;
  /** The categories among these for which the agent can be granted a permission. */
  obtainable(categories: string[]): string[];
  /** What a call of a core tool can do for the agent. */
  actions(categories: string[], hooks: CallHooks): AgentActions;
}

/** One turn of an agent, for its rounds and their calls. */
export interface TurnScope {
  agent: AgentScope;
  policy: Policy;
  /** The tools of this turn. */
  tools: ToolRegistry;
  log: LoggedTurn;
  signal: AbortSignal;
  /** The result so far; a call that a person typed has none, nor a task. */
  result?: TurnResult;
  task?: TurnTask;
  models?: TurnModels;
  /** As in {@linkcode TurnOptions}. */
  messages?: () => TurnMessage[] | Promise<TurnMessage[]>;
  repetition?: Repetition;
  /** The project's own checker, where the settings have one and the turn may change files. */
  checker?: Checker;
  /** The operator's programs that watch the turn, where the settings have some. */
  hooks?: Hooks;
  /** The characters that a result of so many may have in the context of the model. Default: any number. */
  room?: (length: number) => Promise<number>;
  /** How the model gives an answer that must satisfy a schema, for a task with one. */
  answer?: StructuredAnswer;
}
