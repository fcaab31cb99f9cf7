import { object } from "@optique/core/constructs";
import { optional } from "@optique/core/modifiers";
import type { InferValue } from "@optique/core/parser";
import { argument, command, constant, option } from "@optique/core/primitives";
import { string } from "@optique/core/valueparser";
import { withdrawUnusable } from "../policy/deno_permissions.ts";
import { headlessOperator } from "../policy/operator.ts";
import { approveModels } from "../providers/model_approval.ts";
import { catalogCommand, jsonEntry, words } from "./catalog.ts";
import { text } from "./command.ts";
import type { Io } from "./io.ts";
import { readPrompt, showTurn, turnOptions, turnOverrides } from "./turn.ts";
import { openWorkspace } from "./workspace.ts";

const parser = command(
  "run",
  object({
    action: constant("run"),
    name: argument(string({ metavar: "NAME" }), {
      description: text("A team of the catalog; see `svc teams list`."),
    }),
    task: optional(argument(string({ metavar: "TASK" }), {
      description: text("What the team is to do; - reads it from standard input."),
    })),
    skills: optional(option("--skills", string({ metavar: "NAMES" }), {
      description: text("Skills for every stage beside its own, separated by commas."),
    })),
    ...turnOptions,
  }),
  { description: text("Have a team do a task, and print the last stage's answer.") },
);

type Values = InferValue<typeof parser>;

/** `svc teams run` (specification 4.7): a team works on a task in a root session of its own. */
export const runTeam = {
  parser,
  async run(values: Values, io: Io): Promise<number> {
    const task = await readPrompt(values.task, values, io, {
      missing: "There is no task.",
      hint: `Pass one: ${io.program}teams run ${values.name} "write the minutes", or pipe it in.`,
    });
    const given = turnOverrides(values);
    const workspace = openWorkspace(
      values.path,
      io,
      Object.keys(given).length > 0 ? given : undefined,
    );
    await workspace.load({
      tools: "all",
      providers: "all",
      roles: "all",
      teams: "all",
      skills: "all",
    });
    const { planTeam } = await import("../engine/teams/plan.ts");
    const { teamTurn } = await import("../engine/teams/turn.ts");
    const { roleBackends } = await import("../engine/agents/role_backend.ts");
    const operator = io.operator ?? headlessOperator(values.yes);
    const backend = workspace.backend(); // nothing is created when a model is missing
    const { ref } = backend;
    await approveModels(ref === undefined ? [] : [ref], workspace.models, {
      granted: values.model !== undefined || values.approve_model,
    });
    const approve_models = values.approve_model;
    const skills = words(values.skills);
    const plan = await planTeam(
      {
        workspace,
        teams: [],
        backends: (models) =>
          roleBackends(models, { workspace, own: backend, operator, approve_models }),
      },
      values.name,
      skills,
    );
    const attended = io.operator !== undefined && !workspace.config.get("unattended");
    const headless = !attended && !values.yes;
    if (io.live === undefined) {
      withdrawUnusable(workspace.authority(), workspace.tools.list(), { yes: values.yes });
    }

    const session = values.session === undefined
      ? workspace.sessions.create("ses")
      : workspace.sessions.open(values.session);
    const interrupt = io.onInterrupt();
    const { signal } = interrupt;
    const command = `/teams run ${values.name} ${task}`;
    const turn = { plan, task, command, session, backend, operator, headless, approve_models };
    let code: number;
    try {
      code = await showTurn(teamTurn(workspace, turn, { signal }), values, workspace, io);
    } finally {
      session.close();
      if (workspace !== io.live) {
        await workspace.beside.settle(signal);
        await workspace.close();
      }
      interrupt.release();
    }
    for (const { backend: { provider, model } } of plan.stages) {
      await workspace.connections.touch(provider);
      await workspace.models.touch(provider, model);
    }
    return code;
  },
};

/** `svc teams`. */
export const teams = catalogCommand({
  kind: "team",
  fields: object({
    description: optional(option("--description", string({ metavar: "TEXT" }), {
      description: text("What the team is for, in one line."),
    })),
    tags: optional(option("--tags", string({ metavar: "WORDS" }), {
      description: text("Separated by commas."),
    })),
    stages: optional(option("--stages", string({ metavar: "ROLES" }), {
      description: text("The roles in their order, separated by commas."),
    })),
  }),
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
