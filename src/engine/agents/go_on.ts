import type { Grants } from "../../policy/gate.ts";
import { childAuthority } from "../../policy/roles.ts";
import type { Backend } from "../../providers/resolve.ts";
import type { AgentRole, Lead, Tree } from "./agent.ts";
import { agentEngine } from "./agents.ts";
import type { Engine } from "../engine.ts";
import { roleBackends } from "./role_backend.ts";
import type { Run } from "./runs.ts";

/** An agent that a front end goes on with itself. */
export interface OpenAgent {
  engine: Engine;
  /** Releases its provider and its session. */
  close(): Promise<void>;
}

/**
 * Takes up a run below the root where it stands (specification 3.6), with the rights, the model and the
 * session that it had when the agents above it had it start, or last go on.
 *
 * @param root the role of the root agent, if it has one
 * @throws SvcError when a role of the line is gone, or its model is not approved
 */
export async function goOn(
  tree: Tree,
  run: Run,
  { root, grants }: { root?: AgentRole; grants: Grants },
): Promise<OpenAgent> {
  const { workspace, runs } = tree;
  const line = [...runs.line(run.id), run];
  let [role, authority] = [root, workspace.authority(root)];
  let backend: Backend = workspace.backend({ role_model: root?.model });
  let lead: Lead | undefined;
  for (const [above, each] of line.slice(1).entries()) {
    const { id: number, session: name, session_id: id } = line[above]!;
    lead = { run: number, session: { name, id }, role, backend, lead };
    role = each.role === "" ? undefined : await workspace.role(each.role);
    authority = childAuthority(workspace.config, authority, role, each.stage?.mode);
    const { operator, approve_models } = tree;
    const models = [role?.model ?? ""];
    const caller = { workspace, operator, approve_models, own: backend };
    [backend] = await roleBackends(models, caller) as [Backend];
  }
  const session = workspace.sessions.open(run.session);
  const lineage = line.map((each) => each.session);
  const teams = line.flatMap(({ stage }) => stage === undefined ? [] : [stage.team]);
  const agent = { session, run: run.id, role, authority, backend, lineage, teams, lead, grants };
  const engine = agentEngine(tree, agent);
  return {
    engine,
    async close() {
      await engine.close();
      session.close();
    },
  };
}
