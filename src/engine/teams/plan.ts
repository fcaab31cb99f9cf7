import type { Stage, Team } from "../../catalog/schema.ts";
import { SvcError, usageError } from "../../platform/error.ts";
import { checkMode } from "../../policy/settings.ts";
import type { Backend } from "../../providers/resolve.ts";
import { type AgentRole, agentRole } from "../agents/agent.ts";
import type { Workspace } from "../workspace.ts";

/** A team whose stages can all run. */
export interface TeamPlan {
  name: string;
  stages: PlannedStage[];
  loop: Team["loop"];
}

export interface PlannedStage extends Stage {
  agent: AgentRole;
  backend: Backend;
}

/** Who is to start a team. */
export interface TeamCaller {
  workspace: Workspace;
  /** Names of the teams that the caller works in, the outermost first. */
  teams: readonly string[];
  /** The backends of roles' models, approved all at once. */
  backends(models: string[]): Promise<Backend[]>;
}

/**
 * Looks up all that a team needs, so that none starts that could not end (specification 7.4).
 *
 * @param skills names of skills that every stage gets beside its own and its role's
 * @throws SvcError for an unknown team, one without stages, an unknown role, skill or mode of a stage, a
 * team that is at work already, teams that nest too deep, and models that are not approved
 */
export async function planTeam(
  caller: TeamCaller,
  name: string,
  skills: string[] = [],
): Promise<TeamPlan> {
  const { workspace, teams } = caller;
  const catalog = await workspace.catalog();
  const { stages, loop } = catalog.need("team", name).value;
  checkNesting(teams, name, workspace.config.get("max_team_depth"));
  if (stages.length === 0) {
    throw usageError("no_stages", `The team ${name} has no stages.`);
  }
  const agents: AgentRole[] = [];
  for (const [index, stage] of stages.entries()) {
    try {
      if (stage.mode !== "") checkMode(workspace.config, stage.mode);
      agents.push(await agentRole(workspace, stage.role, [...stage.skills, ...skills]));
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      const { code, message, hint } = error;
      throw usageError(code, `Stage ${index + 1} of the team ${name} cannot run: ${message}`, hint);
    }
  }
  const served = await caller.backends(agents.map(({ model }) => model));
  return {
    name,
    loop,
    stages: stages.map((stage, index) => ({
      ...stage,
      agent: agents[index]!,
      backend: served[index]!,
    })),
  };
}

function checkNesting(teams: readonly string[], name: string, most: number): void {
  if (teams.includes(name)) {
    const way = [...teams.slice(teams.indexOf(name)), name].join(" > ");
    throw usageError("team_cycle", `A team cannot be started from within itself: ${way}.`);
  }
  if (teams.length < most) return;
  throw usageError(
    "team_depth",
    most === 0
      ? "No teams may run (setting max_team_depth)."
      : `Teams start teams ${most} levels deep at most (setting max_team_depth).`,
  );
}
