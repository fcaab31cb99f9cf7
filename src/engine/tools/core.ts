import type { AskStore } from "../../asks/store.ts";
import type { ToolArguments, ToolContext, ToolDefinition } from "../../plugins/api.ts";
import type { Operator } from "../../policy/operator.ts";
import type { TurnEvent } from "../events.ts";
import { askTool } from "./ask.ts";

/** What the core's own tools are given beside what any tool is; no plugin's tool gets it. */
export interface CoreContext extends ToolContext {
  readonly agent: {
    /** Number of the run that calls. */
    readonly run: number;
    readonly operator: Operator;
    readonly asks: AskStore;
    /** Adds an event to the turn's stream. */
    emit(event: TurnEvent): void;
  };
}

/** A tool that needs the engine, which the plugin API does not reach. */
export interface CoreTool extends Omit<ToolDefinition, "handler"> {
  handler(args: ToolArguments, context: CoreContext): string | Promise<string>;
}

/** The owner of the core's tools. No plugin can have this name, as none of its files could be called so. */
export const CORE = "svc/core";

/** The core's own tools. */
export const CORE_TOOLS: readonly CoreTool[] = [askTool];

/** Whether a tool of the registry is one of the core's. Its name would not prove it. */
export function isCoreTool(tool: ToolDefinition): boolean {
  return (CORE_TOOLS as readonly unknown[]).includes(tool);
}
