import type { Grants } from "../../policy/gate.ts";
import type { Operator } from "../../policy/operator.ts";
import type { Backend } from "../../providers/resolve.ts";
import type { Session } from "../../sessions/session.ts";
import type { Engine } from "../engine.ts";
import type { Workspace } from "../workspace.ts";
import type { AgentRole } from "./agent.ts";
import { agentEngine } from "./agents.ts";
import type { RunRegistry } from "./runs.ts";

/** What a root agent is made of; the rest is its workspace's. */
export interface RootAgentRequest {
  session: Session;
  operator: Operator;
  headless: boolean;
  /** Left out: the one that the configuration names. */
  backend?: Backend;
  role?: AgentRole;
  /** A job's sections of the system prompt. */
  job?: string[];
  /** Whether the models that roles refer to are approved beforehand (specification 5.2). */
  approve_models?: boolean;
  /**
   * Whether neither the agent nor those that it starts may change svc's own state and settings, whoever
   * approves it (specification 5.3.9). Default: they may, as far as the policy lets them.
   */
  immutable?: boolean;
  /** The runs and approvals of an engine of this session whose place this one takes. */
  runs?: RunRegistry;
  grants?: Grants;
}

/** The engine of an agent that no other has started: the root of a tree. */
export function rootEngine(workspace: Workspace, request: RootAgentRequest): Engine {
  const { session, role, job, operator, headless, approve_models = false, immutable, grants } =
    request;
  const backend = request.backend ?? workspace.backend();
  const runs = request.runs ?? workspace.runs();
  const run = runs.list()[0]?.id ??
    runs.start({ parent: 0, role: role?.name ?? "", session, task: "" }).id;
  const tree = { workspace, runs, operator, headless, approve_models, immutable };
  const authority = workspace.authority(role);
  const lineage = [session.name];
  return agentEngine(tree, { session, run, role, job, authority, backend, lineage, grants });
}
