import type { Clock } from "../platform/clock.ts";
import type { ConfigView, Provider, Usage } from "../plugins/api.ts";
import type { Grants } from "../policy/gate.ts";
import type { Operator } from "../policy/operator.ts";
import type { WorktreeGuard } from "../policy/paths.ts";
import type { Policy } from "../policy/policy.ts";
import type { Session, TurnLog } from "../sessions/session.ts";
import type { ToolRegistry } from "../tools/registry.ts";
import type { Agents } from "./agents.ts";
import type { Questions } from "./questions.ts";
import type { RunRegistry } from "./runs.ts";

/** What calls run against: one turn of one run. */
export interface CallScope {
  tools: ToolRegistry;
  policy: Policy;
  guard: WorktreeGuard;
  grants: Grants;
  operator: Operator;
  questions: Questions;
  agents: Agents;
  runs: RunRegistry;
  config: ConfigView;
  provider: Provider;
  session: Session;
  log: TurnLog;
  clock: Clock;
  signal: AbortSignal;
  run: number;
  /** Adds what a request beside the replies cost to the turn's usage; left out where there is none. */
  spend?: (usage: Usage) => void;
  /** See `ToolContext`. */
  key: (name: string, address: string) => string;
}
