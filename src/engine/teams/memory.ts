import type { Turn } from "../../sessions/schema.ts";
import type { StepEnd } from "../agents/agent.ts";
import type { Agents } from "../agents/agents.ts";
import { outcome } from "../agents/outcome.ts";

/**
 * Has a team remember what its stages came to, in the order in which they ran (specification 2.12), beside
 * what its caller does next. What the stages did in detail is in their own logs.
 */
export function rememberTeam(
  { name, task, steps }: { name: string; task: string; steps: readonly StepEnd[] },
  agents: Agents,
): void {
  const last = steps.at(-1);
  if (last === undefined || last.result.status === "cancelled") return;
  agents.remember({
    scope: "team",
    name,
    turns: [turn(0, `The team's task:\n\n${task}`, ""), ...steps.map(stage)],
    ended: outcome(last.result),
  });
}

function stage({ run: { role }, result }: StepEnd, place: number): Turn {
  const { ok, text } = outcome(result);
  const how = ok ? "answered" : `ended with status ${result.status}`;
  return turn(place + 1, `The stage of the role ${role} ${how}:`, text);
}

function turn(index: number, said: string, answer: string): Turn {
  const part = (type: "user" | "text", text: string) => ({ type, text, timestamp: "" });
  return {
    index,
    started_at: "",
    ended_at: "",
    status: "ok",
    model: "",
    provider: "",
    mode: "",
    reasoning: "",
    parts: [part("user", said), ...answer === "" ? [] : [part("text", answer)]],
  };
}
