import { ROOT_RUN } from "../../engine/events.ts";
import { usageError } from "../../platform/error.ts";
import type { Shell } from "../shell.ts";
import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "roles that work in turn; have one do a task",
  usage: [
    "teams [list [tag]]",
    "teams show <name>",
    "teams run <name> <task>",
    "teams new <name> [options]",
    "teams remove <name>",
  ],
  complete: {
    "": ["list", "show", "run", "new", "remove"],
    show: "teams",
    run: "teams",
    new: "teams",
    remove: "teams",
  },
  flags: { "--global": true, "--force": true, "--file": "files", "--stages": true },
  async run(line, shell) {
    const [action, name] = line.words;
    if (action === "run" && !line.words.includes("--help")) {
      return await runTeam(name, line.rest(2), shell);
    }
    const [{ runTwin }, { teams }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/teams.ts"),
    ]);
    await runTwin(teams, ["teams", ...line.words], shell);
  },
});

/** The team works in this session, and its stages become runs of it. */
async function runTeam(name: string | undefined, task: string, shell: Shell): Promise<void> {
  if (name === undefined || task === "") {
    throw usageError("usage", "/teams run needs a team and a task.", "See: /teams");
  }
  const [{ planTeam }, { teamTurn }, { showTurn }] = await Promise.all([
    import("../../engine/teams/plan.ts"),
    import("../../engine/teams/turn.ts"),
    import("../loop.ts"),
  ]);
  const agent = await shell.conversation.agent(ROOT_RUN);
  const plan = await planTeam(agent.agents, name);
  const turn = { plan, task, command: `/teams run ${name} ${task}` };
  await showTurn(ROOT_RUN, (signal) => teamTurn(agent, turn, { signal }), shell);
}
