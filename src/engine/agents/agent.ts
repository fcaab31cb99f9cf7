import type { ConfigView, Usage } from "../../plugins/api.ts";
import {
  type AskPolicy,
  type Authority,
  authorityUnder,
  childAuthority,
  type RolePermissions,
} from "../../policy/roles.ts";
import type { Grants } from "../../policy/gate.ts";
import type { Operator } from "../../policy/operator.ts";
import { policySettings } from "../../policy/settings.ts";
import type { Backend } from "../../providers/resolve.ts";
import type { Session } from "../../sessions/session.ts";
import type { TurnEvent, TurnResult } from "../events.ts";
import type { AgentPrompt } from "../prompt.ts";
import type { Workspace } from "../workspace.ts";
import type { Target } from "./resume.ts";
import type { Run, RunRegistry, RunStage } from "./runs.ts";

/** What the agents of one tree have in common. */
export interface Tree {
  workspace: Workspace;
  runs: RunRegistry;
  operator: Operator;
  headless: boolean;
  /** Models that a role refers to count as approved by the operator. */
  approve_models: boolean;
  /** None of them may change svc's own state and settings (specification 5.3.9). Default: they may. */
  immutable?: boolean;
}

/** What a role makes of an agent (specification 2.12). */
export interface AgentRole extends RolePermissions {
  name: string;
  prompt: AgentPrompt;
  /** What it says of its questions; the rest is the configuration's. */
  ask_policy?: Partial<AskPolicy>;
  /** A model id or ref; empty: the configured one. */
  model: string;
  /** The roles of those that it worked for, the outermost first, where it goes on without them. */
  above?: RolePermissions[];
}

/** One agent of a tree. */
export interface Agent {
  session: Session;
  run: number;
  role?: AgentRole;
  /** For a job's agent: see `EngineOptions`. */
  job?: string[];
  authority: Authority;
  backend: Backend;
  /** Names of the sessions from the root's to this agent's own. */
  lineage: string[];
  /** Names of the teams that it works in, the outermost first. Default: none. */
  teams?: string[];
  /** What its operator has approved for the rest of the session so far. */
  grants?: Grants;
  /** The agent that started this one; the root has none. */
  lead?: Lead;
}

/** What the agents that one started know of it. */
export type Lead = Pick<Agent, "run" | "role" | "backend" | "lead"> & {
  session: Pick<Session, "name" | "id">;
};

/** What an agent is to do for another. */
export interface Delegation {
  role: string;
  task: string;
  skills?: string[];
  /** An agent to go on with. */
  resume?: string;
  context?: "continue" | "compact" | "new";
}

/** One turn of an agent under another. */
export interface Step extends Pick<Delegation, "task" | "context"> {
  role: AgentRole;
  backend: Backend;
  /** What is gone on with; left out: a new session. */
  target?: Target;
  /** The stage of a team that the turn is. */
  stage?: RunStage;
}

/** How a step went. */
export interface StepEnd {
  run: Run;
  result: TurnResult;
  /** What the agent had less than its role asks for. */
  clamps: string[];
}

/** What the agents that are started share with the call that starts them. */
export interface CallHooks {
  signal: AbortSignal;
  emit: (event: TurnEvent) => void;
  /** Adds what a consultation cost to the usage of the turn that asks. */
  spend?: (usage: Usage) => void;
}

/**
 * What a role of the catalog makes of an agent: its prompt with further skills and its memory, its permissions.
 *
 * @throws SvcError (exit 2) when there is no such role, or no skill or file that it names
 */
export async function agentRole(
  workspace: Workspace,
  name: string,
  skills?: string[],
): Promise<AgentRole> {
  const catalog = await workspace.catalog();
  const { value } = catalog.need("role", name);
  const { tool_permission, grant_permission, ask_policy, model } = value;
  const prompt = { ...catalog.prompt(name, skills), memory: workspace.memory.block("role", name) };
  return { name, prompt, tool_permission, grant_permission, ask_policy, model };
}

/** What a root agent may do and hand down: the settings in their mode, under its role and those above it. */
export function authorityOf(config: ConfigView, role?: AgentRole): Authority {
  const settings = policySettings(config, config.get("mode"));
  const roles = role === undefined ? [] : [...role.above ?? [], role];
  const [first = { tool_permission: {} }, ...others] = roles;
  return others.reduce(
    (authority, each) => childAuthority(config, authority, each),
    authorityUnder(settings, first),
  );
}
