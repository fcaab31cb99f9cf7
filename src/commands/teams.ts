import type { StartedAgent } from "../engine/start.ts";
import { headlessOperator } from "../policy/operator.ts";
import { catalogCommand, jsonEntry, words } from "./catalog.ts";
import { textOption } from "./command.ts";
import type { Io } from "./io.ts";
import { readPrompt } from "./prompt.ts";
import { readTask, showTurn, turnOptions, turnOutput, turnOverrides } from "./turn.ts";
import { AGENT_NEEDS } from "../engine/workspace.ts";
import { openShared } from "./workspace.ts";
import { nameOf } from "./names.ts";
import { argument, command, type InferValue, optional, string } from "./options.ts";

const parser = command("run", {
  action: "run",
  name: argument(nameOf("teams"), "A team of the catalog; see `svc teams list`."),
  task: optional(argument(string("TASK"), "The task of the team; - reads it from standard input.")),
  skills: textOption(
    "--skills",
    "NAMES",
    "Skills for every stage in addition to its own, separated by commas.",
  ),
  ...turnOptions,
  output: optional(turnOutput),
}, "Have a team do a task, and print the last stage's answer.");

/** The values of `teams run`. */
export type TeamRun = InferValue<typeof parser>;

/** `svc teams run` (specification 4.7): a team works on a task in a root session of its own. */
export const runTeam = {
  parser,
  textAfter: { run: 1 },
  async run(values: TeamRun, io: Io): Promise<number> {
    const task = await readPrompt(values.task, values, io, {
      missing: "There is no task.",
      hint: `Pass one: ${io.program}teams run ${values.name} "write the minutes", or pipe it in.`,
    });
    const turnTask = await readTask(values, io);
    const verifies = turnTask.verify !== undefined;
    const given = turnOverrides(values);
    const workspace = await openShared(
      values.path,
      io,
      Object.keys(given).length > 0 ? given : undefined,
      values.trust,
    );
    const { prepareAgent, withdrawFirst } = await import("../engine/start.ts");
    const person = values.yes || values.no ? undefined : io.operator;
    const attended = person !== undefined && !workspace.config.get("unattended");
    const headless = !attended && !values.yes;
    await workspace.load(
      AGENT_NEEDS,
      io.live === undefined ? withdrawFirst(workspace, !headless, verifies) : undefined,
    );
    const { planTeam } = await import("../engine/teams.ts");
    const { teamTurn } = await import("../engine/team_turn.ts");
    const interrupt = io.onInterrupt();
    let agent: StartedAgent | undefined;
    try {
      const prepared = await prepareAgent(workspace, {
        session: values.session,
        operator: person ?? headlessOperator(values.yes),
        headless,
        model_named: values.model !== undefined,
        approve_models: values.approve_model,
        withdraw: io.live === undefined,
        verifies,
        task: turnTask,
      });
      const plan = await planTeam(prepared, values.name, words(values.skills));
      agent = prepared.open();
      const { output = "json", result, verbose, max_rounds } = values;
      const shown = { output, result, verbose, max_rounds };
      const turn = { plan, task, command: `/teams run ${values.name} ${task}` };
      const options = { signal: interrupt.signal, task: turnTask };
      return await showTurn(teamTurn(agent, turn, options), shown, workspace, io);
    } finally {
      await agent?.close();
      if (workspace !== io.live) await workspace.close(interrupt.signal);
      interrupt.release();
    }
  },
};

/** `svc teams`. */
export const teams = catalogCommand({
  kind: "team",
  fields: {
    description: textOption("--description", "TEXT", "What the team is for, in one line."),
    tags: textOption("--tags", "WORDS", "Separated by commas."),
    stages: textOption("--stages", "ROLES", "The roles in their order, separated by commas."),
  },
  entryOf: ({ description, tags, stages }) => ({
    description,
    tags: words(tags),
    stages: words(stages),
  }),
  entryOfFile: jsonEntry,
  more: runTeam,
  examples: [
    'svc teams run programming "let export take several sessions" --verbose',
    "svc teams list",
    "svc teams show programming",
    "svc teams new review --stages tester,code-reviewer",
    "svc teams new review --file review.json --force",
    "svc teams remove review",
  ],
});
