import { words } from "../../commands/catalog.ts";
import { nameOf } from "../../commands/names.ts";
import type { TeamRun } from "../../commands/teams.ts";
import { ROOT_RUN } from "../../engine/events.ts";
import { SESSION_NEEDS } from "../../engine/workspace.ts";
import { usageError } from "../../platform/error.ts";
import type { Shell } from "../shell.ts";
import type { SlashCommand } from "./table.ts";
import { targetOf } from "./turns.ts";
import { argument, command, type InferValue } from "../../commands/options.ts";

const scope = <T extends "role" | "team" | "job">(scope: T) =>
  command(
    scope,
    { scope: scope, name: argument(nameOf(`${scope}s`)) },
    `Write what a ${scope} remembers.`,
  );

const memorizeParser = command("memorize", [
  scope("role"),
  scope("team"),
  scope("job"),
  command(
    "session",
    { scope: "session", name: "" },
    "Write what the role of this session remembers (the default).",
  ),
], "Summarise this session into the memory of a role, a team or a job.");

/** `/memorize` */
export const memorizeSession: SlashCommand<InferValue<typeof memorizeParser>> = {
  parser: memorizeParser,
  bare: "session",
  examples: ["/memorize", "/memorize role tester"],
  async run(values, shell) {
    const { workspace, conversation, focus, io } = shell;
    const scope = values.scope === "session" ? "role" : values.scope;
    const name = values.name || focus.current()?.role || conversation.role;
    if (name === "") {
      throw usageError(
        "usage",
        "This session runs as no role.",
        "Name one: /memorize role <name>, team <name> or job <name>.",
      );
    }
    workspace.memory.path(scope, name); // rejects invalid names and links out of the folder
    if (!workspace.memory.enabled(scope)) {
      const hint = `See the settings memory_enabled and memory.${scope}.`;
      throw usageError("memory_off", `Memory of ${scope}s is switched off.`, hint);
    }
    await workspace.load(SESSION_NEEDS);
    if (scope === "job") {
      const { jobContext } = await import("../../jobs/context.ts");
      jobContext(workspace).register.need(name);
    } else if (values.name !== "") (await workspace.catalog()).need(scope, name);
    const { memorize } = await import("../../engine/memorize.ts");
    const { document } = await targetOf(undefined, shell);
    if (document.turns.length === 0) throw usageError("usage", "There is nothing to remember yet.");
    await shell.cancellable(async (signal) => {
      await memorize({
        workspace,
        scope,
        name,
        turns: document.turns,
        ended: { ok: true, text: lastAnswer(document.turns) },
        backend: await conversation.backend(),
        session_id: document.session_id || document.session_name,
        signal,
      });
    });
    io.note(`The ${scope} ${name} remembers: /memory show ${scope} ${name}`);
  },
};

function lastAnswer(
  turns: readonly { parts: readonly { type: string; text?: string }[] }[],
): string {
  return turns.flatMap(({ parts }) => parts).findLast(({ type }) => type === "text")?.text ?? "";
}

/**
 * `/teams run`: the team works in the open session, and its stages become runs of it. With options that
 * choose a session, a backend, rights or an output, it runs as `svc teams run` does, in a session of its own.
 *
 * @returns whether it ran here
 */
export async function runTeamHere(values: TeamRun, shell: Shell): Promise<boolean> {
  const { action: _, name, task, skills, verbose: __, ...options } = values;
  if (Object.values(options).some(Boolean)) return false;
  if (task === undefined) {
    throw usageError("usage", "TASK is missing.", "Try: /teams run --help");
  }
  const [{ planTeam }, { teamTurn }, { showTurn }] = await Promise.all([
    import("../../engine/teams.ts"),
    import("../../engine/team_turn.ts"),
    import("../loop.ts"),
  ]);
  const agent = await shell.conversation.agent(ROOT_RUN);
  const plan = await planTeam(agent.agents, name, words(skills));
  const turn = { plan, task, command: `/teams run ${name} ${task}` };
  await showTurn(ROOT_RUN, (signal) => teamTurn(agent, turn, { signal }), shell);
  return true;
}
