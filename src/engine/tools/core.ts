import type { Catalog } from "../../catalog/catalog.ts";
import type { Kind } from "../../catalog/schema.ts";
import type { Question, ToolArguments, ToolContext, ToolDefinition } from "../../plugins/api.ts";
import type { DeniedCall, TurnEvent } from "../events.ts";
import type { Meter } from "../meter.ts";
import type { RunRegistry } from "../runs.ts";
import { askTool } from "./ask.ts";
import { catalogTool } from "./catalog.ts";
import { delegateTool } from "./delegate.ts";
import { handoffTool } from "./handoff.ts";
import { planTool } from "./plan.ts";
import { teamTool } from "./team.ts";

/** A tool that needs the engine, which the plugin API does not reach. */
export interface CoreTool extends Omit<ToolDefinition, "handler"> {
  handler(args: ToolArguments, context: CoreContext): string | Promise<string>;
  /** Why this call is denied whatever the policy says of its category; empty when it is not. */
  refuse?(args: ToolArguments, agent: AgentActions): Promise<string>;
  /** Why this call needs an approval whatever the policy says; empty when it does not. */
  demand?(args: ToolArguments, agent: AgentActions): Promise<string>;
  /** The setting that caps how many neighbouring calls run side by side. Default: as for any tool. */
  parallel_setting?: string;
  /** Whether an error of the tool counts as a refusal, so that the loop stops after several. Default: false. */
  error_refuses?: boolean;
  /** The entries of the catalog that the system prompt lists for the tool. Default: none. */
  lists?: "role" | "team";
  /** Whether the system prompt names the categories for which the tool can get a grant. Default: false. */
  obtains_grants?: boolean;
}

/** The context of a core tool's call; no plugin's tool gets it. */
export interface CoreContext extends ToolContext {
  readonly agent: AgentActions;
}

/** What a core tool can do for the agent that calls it. */
export interface AgentActions {
  /** The number of the agent's run, and the registry of its tree. */
  readonly run: number;
  readonly runs: RunRegistry;
  /** The categories of the tools there are. */
  readonly categories: string[];
  /** Whether no agent of the tree may change svc's own state and settings. */
  readonly immutable: boolean;
  /** Asks for a direction. @returns the answer, `[parked] ...`, or a text that starts with `Error:` */
  ask(question: Question): Promise<string>;
  /** Asks the human alone; see {@linkcode ToolContext.ask}. */
  askHuman: NonNullable<ToolContext["ask"]>;
  /** Asks for a permission for calls of a category. */
  askPermission(category: string, question: Question): Promise<string>;
  /** Has another agent do a task. @returns its answer and its handle, or a text that starts with `Error:` */
  delegate(delegation: Delegation): Promise<string>;
  /** Has a team do a task. */
  team(delegation: TeamDelegation): Promise<string>;
  /** The names of the roles there are. */
  roles(): Promise<string[]>;
  catalog(): Promise<Catalog>;
  /** Why a change of the catalog needs an approval; empty when it does not. */
  approvalNeeded(change: CatalogChange): Promise<string>;
  /** Adds an event to the turn's stream. */
  emit(event: TurnEvent): void;
}

/** The turn that a call belongs to. */
export interface CallHooks {
  signal: AbortSignal;
  emit: (event: TurnEvent) => void;
  /** Adds refused calls of an agent that was started to those of the turn. */
  deny?: (calls: DeniedCall[]) => void;
  /** The time left to wait for announced quotas, of the turn with all agents that it starts. */
  quota_wait?: { seconds: number };
  /** Counts the requests of the agent that makes the call. */
  meter: Meter;
}

/** A task for an agent of a role. */
export interface Delegation extends Resumption {
  role: string;
  task: string;
  skills?: string[];
}

/** A task for a team. */
export interface TeamDelegation extends Resumption {
  name: string;
  task: string;
  skills?: string[];
}

/** The agent, or the stage, that continues; without `resume`, a new one starts. */
export interface Resumption {
  /** A run (`#2`), or the name or id of its session. */
  resume?: string;
  context?: "continue" | "compact" | "new";
}

/** A change of the local layer of the catalog that an agent requests. */
export interface CatalogChange {
  kind: Kind;
  name: string;
  /** Undefined: the entry is removed. */
  entry: Record<string, unknown> | undefined;
}

/** The owner of the core's tools. No plugin can have this name, as none of its files could be called so. */
export const CORE = "svc/core";

/** The core's own tools. */
export const CORE_TOOLS: readonly CoreTool[] = [
  askTool,
  delegateTool,
  teamTool,
  handoffTool,
  planTool,
  catalogTool,
];

/** A tool of the registry as one of the core's, if it is one. Its name would not prove it. */
export function coreTool(tool: ToolDefinition): CoreTool | undefined {
  return CORE_TOOLS.find((each) => each as unknown === tool);
}
