import * as z from "zod/mini";
import { checkAgainst } from "../config/check.ts";
import { ROOT_RUN, type TurnEvent, type TurnResult } from "../engine/events.ts";
import { taskFields, type TurnTask } from "../engine/task.ts";
import type { ToolContext, ToolDefinition } from "../plugins/api.ts";
import { activityLine, type ToolRegistry } from "../tools/registry.ts";

/** A turn for an MCP client. */
export interface AgentCall {
  prompt: string;
  /** Name of a session to load or create, or a handle. Default: a new one. */
  session?: string;
  role?: string;
  task: TurnTask;
  signal: AbortSignal;
  emit: (event: TurnEvent) => void;
}

/** Runs a turn headless and unattended. @throws SvcError when it cannot begin */
export type RunAgent = (call: AgentCall) => Promise<TurnResult>;

/** The tool `run_agent`, which puts svc to work for an MCP client. */
export function runAgentTool(run: RunAgent, tools: ToolRegistry): ToolDefinition {
  return {
    name: "run_agent",
    description:
      "Have an agent of svc do a task in the worktree, by the tools and permissions of its role, and wait " +
      "for its answer. Name the session of an earlier answer to go on there.",
    short: "Have an agent do a task.",
    permission: "delegate",
    key_arg: "prompt",
    parameters: {
      type: "object",
      properties: {
        prompt: { type: "string", description: "The whole task: the agent sees nothing else." },
        role: { type: "string", description: "Default: the session's, or none." },
        session: { type: "string", description: "Default: a new one." },
        budget: {
          type: "object",
          description: "What it may use at most, with all agents that it starts.",
          properties: {
            cost: { type: "number" },
            tokens: { type: "integer" },
            tool_calls: { type: "integer" },
            seconds: { type: "number" },
          },
        },
      },
      required: ["prompt"],
    },
    async handler({ prompt, role, session, budget = {} }, { signal, progress }: ToolContext) {
      const asks: number[] = [];
      const emit = (event: TurnEvent) => {
        if (event.type === "ask") asks.push(event.id);
        if (event.type === "tool_call" && event.run === ROOT_RUN) {
          const tool = tools.find(event.name);
          progress?.(tool === undefined ? event.name : activityLine(tool, event.arguments));
        }
      };
      const { cost, tokens, tool_calls, seconds } = budget;
      const { problem } = checkAgainst(budgetOf(taskFields()), "budget", budget);
      if (problem !== undefined) throw new Error(`"${problem.path}" ${problem.fault}`);
      const task = defined({
        max_cost: cost,
        max_total_tokens: tokens,
        max_tool_calls: tool_calls,
        timeout: seconds,
      });
      return report(await run({ prompt, role, session, task, signal, emit }), asks);
    },
  };
}

function budgetOf(fields: ReturnType<typeof taskFields>) {
  const { max_cost: cost, max_total_tokens: tokens, max_tool_calls: tool_calls, timeout: seconds } =
    fields;
  return z.object({ cost, tokens, tool_calls, seconds });
}

function defined(task: TurnTask): TurnTask {
  return Object.fromEntries(Object.entries(task).filter(([, value]) => value !== undefined));
}

function report(
  { status, session, content, errors }: TurnResult,
  asks: number[],
): string {
  const waits = asks.length === 0
    ? ""
    : `; questions that wait for a person: ${asks.map((id) => `#${id}`).join(", ")}`;
  const frame = `[session ${session}, ${status}${waits}]`;
  if (status === "ok" || status === "truncated") return `${content}\n\n${frame}`;
  const why = errors.map(({ message }) => message).join(" ");
  return `Error: the agent ended with status ${status}: ${why}\n${content}\n\n${frame}`;
}
