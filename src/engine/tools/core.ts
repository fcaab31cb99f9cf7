import type { ToolArguments, ToolContext, ToolDefinition, Usage } from "../../plugins/api.ts";
import type { Agents } from "../agents.ts";
import type { TurnEvent } from "../events.ts";
import type { Questions } from "../questions.ts";
import type { RunRegistry } from "../runs.ts";
import { askTool } from "./ask.ts";
import { catalogTool } from "./catalog.ts";
import { delegateTool } from "./delegate.ts";
import { handoffTool } from "./handoff.ts";
import { teamTool } from "./team.ts";

/** What the core's own tools are given beside what any tool is; no plugin's tool gets it. */
export interface CoreContext extends ToolContext {
  readonly agent: {
    /** Number of the run that calls. */
    readonly run: number;
    /** Where it is registered, with all others of its tree. */
    readonly runs: RunRegistry;
    /** Where what it asks goes. */
    readonly questions: Questions;
    /** The categories of the tools that there are. */
    readonly categories: string[];
    /** Starts agents under the one that calls. */
    readonly agents: Agents;
    /** Adds an event to the turn's stream. */
    emit(event: TurnEvent): void;
    /** Adds to the usage of the turn. */
    spend?(usage: Usage): void;
  };
}

/** A tool that needs the engine, which the plugin API does not reach. */
export interface CoreTool extends Omit<ToolDefinition, "handler"> {
  handler(args: ToolArguments, context: CoreContext): string | Promise<string>;
  /** Why this very call is denied whatever the policy says of its category; empty when it is not. */
  refuse?(args: ToolArguments, agents: Agents): Promise<string>;
  /** Why somebody has to approve this very call whatever the policy says; empty when nobody has to. */
  demand?(args: ToolArguments, agents: Agents): Promise<string>;
}

/** The owner of the core's tools. No plugin can have this name, as none of its files could be called so. */
export const CORE = "svc/core";

/** The core's own tools. */
export const CORE_TOOLS: readonly CoreTool[] = [
  askTool,
  delegateTool,
  teamTool,
  handoffTool,
  catalogTool,
];

/** A tool of the registry as one of the core's, if it is one. Its name would not prove it. */
export function coreTool(tool: ToolDefinition): CoreTool | undefined {
  return CORE_TOOLS.find((each) => each as unknown === tool);
}
