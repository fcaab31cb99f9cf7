import { argument, command, option } from "@optique/core/primitives";
import { object } from "@optique/core/constructs";
import { optional } from "@optique/core/modifiers";
import { string } from "@optique/core/valueparser";
import { defineCommand, text } from "../commands/command.ts";
import type { Io } from "../commands/io.ts";
import { readPrompt } from "../commands/turn.ts";
import { showTurn } from "../commands/turn.ts";
import { turnOptions, turnOverrides } from "../commands/turn.ts";
import { openWorkspace } from "../commands/workspace.ts";
import { ownerRole, ownersOf } from "../engine/agents/owner.ts";
import { usageError } from "../platform/error.ts";
import { withdrawUnusable } from "../policy/deno_permissions.ts";
import { headlessOperator } from "../policy/operator.ts";
import { approveModels } from "../providers/model_approval.ts";
import type { Session } from "../sessions/session.ts";

const parser = command(
  "run",
  object({
    prompt: optional(option("-p", "--prompt", string({ metavar: "TEXT" }), {
      description: text(
        "What the agent is to do; also taken as an argument or from standard input.",
      ),
    })),
    words: optional(argument(string({ metavar: "PROMPT" }), {
      description: text("The prompt; - reads it from standard input."),
    })),
    role: optional(option("--role", string({ metavar: "NAME" }), {
      description: text("Run as this role of the catalog; see `svc roles list`."),
    })),
    ...turnOptions,
  }),
  { description: text("Run one agent turn without a terminal and print its result.") },
);

/** `svc run` (specification 4.4): one headless turn. */
export const runTurn = defineCommand({
  parser,
  examples: [
    'svc run -p "what does this project do?" --output text',
    "git diff | svc run --session-id review --mode plan -",
    'svc run --provider demo --verbose "list the files"',
    'svc run --role code-reviewer "review the last commit"',
  ],
  async run(values, io) {
    if (values.prompt !== undefined && values.words !== undefined) {
      throw usageError(
        "usage",
        "There are two prompts: --prompt and an argument.",
        "Pass one of them; quote a prompt of several words.",
      );
    }
    const prompt = await readPrompt(values.prompt ?? values.words, values, io, {
      missing: "There is no prompt.",
      hint: 'Pass one: svc run -p "list the files", or pipe it in.',
    });
    const workspace = openWorkspace(values.path, io, turnOverrides(values));
    await workspace.load({
      tools: "all",
      providers: "all",
      roles: "all",
      teams: "all",
      skills: "all",
    });
    const role = values.role !== undefined
      ? await workspace.role(values.role)
      : await ownerRole(workspace, ownersOf(workspace.sessions, values.session ?? ""));
    // Nothing is created when there is no model to ask.
    const backend = workspace.backend({ role_model: role?.model });
    const { ref } = backend;
    await approveModels(ref === undefined ? [] : [ref], workspace.models, {
      granted: values.model !== undefined || values.approve_model,
    });
    withdrawUnusable(workspace.authority(role), workspace.tools.list(), { yes: values.yes });

    const session = values.session === undefined
      ? workspace.sessions.create("ses", { role: role?.name })
      : workspace.sessions.open(values.session, { role: role?.name });
    if (values.role !== undefined) noteOtherRole(session, values.role, io);
    const operator = headlessOperator(values.yes);
    const engine = workspace.engine({
      session,
      backend,
      operator,
      headless: !values.yes,
      role,
      approve_models: values.approve_model,
    });
    const interrupt = io.onInterrupt();
    let code: number;
    try {
      const turn = engine.turn(prompt, { signal: interrupt.signal });
      code = await showTurn(turn, values, workspace, io);
    } finally {
      await engine.close();
      session.close();
      await workspace.beside.settle(interrupt.signal);
      await workspace.close();
      interrupt.release();
    }
    await workspace.connections.touch(backend.provider);
    if (ref !== undefined) await workspace.models.touch(ref.provider, ref.model);
    return code;
  },
});

/** A session keeps the role it was made with; the turn is run as the one that was asked for. */
function noteOtherRole(session: Session, role: string, io: Io): void {
  if (session.created) return;
  const owner = session.document().role;
  if (owner === "" || owner === role) return;
  io.note(
    `warning: Session ${session.name} belongs to the role ${owner}; this turn runs as ${role}.`,
  );
}
