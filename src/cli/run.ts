import { defineCommand, textOption } from "../commands/command.ts";
import type { Io } from "../commands/io.ts";
import { readPrompt } from "../commands/prompt.ts";
import { readTask, showTurn, turnOptions, turnOverrides } from "../commands/turn.ts";
import { openShared } from "../commands/workspace.ts";
import { startAgent, type StartedAgent, withdrawFirst } from "../engine/start.ts";
import { AGENT_NEEDS } from "../engine/workspace.ts";
import { usageError } from "../platform/error.ts";
import { headlessOperator } from "../policy/operator.ts";
import type { Session } from "../sessions/session.ts";
import { nameOf } from "../commands/names.ts";
import { argument, command, multiple, option, optional, string } from "../commands/options.ts";

const parser = command("run", {
  prompt: optional(
    option(
      "-p/--prompt",
      string("TEXT"),
      "The task of the agent; also taken as an argument or from standard input.",
    ),
  ),
  words: optional(
    argument(
      string("PROMPT"),
      "The prompt; - reads it from standard input. With -p, what is piped in is added to it.",
    ),
  ),
  role: textOption(
    "--role",
    nameOf("roles"),
    "Run as this role of the catalog; see `svc roles list`.",
  ),
  attach: multiple(option(
    "--attach",
    string("PATH"),
    "Give the model this text or image along with the prompt, or the list of a folder; may be repeated.",
  )),
  ...turnOptions,
}, "Run one agent turn without a terminal and print its result.");

/** `svc run` (specification 4.4): one headless turn. */
export const runTurn = defineCommand({
  parser,
  examples: [
    'svc run -p "what does this project do?" --output text',
    "git diff | svc run --session-id review --mode plan -",
    'npm test 2>&1 | svc run -p "why does this fail?" -',
    'svc run --provider demo --verbose "list the files"',
    'svc run --attach screenshot.png -p "what is wrong here?"',
    'svc run --role code-reviewer "review the last commit"',
  ],
  async run(values, io) {
    const more = values.prompt !== undefined && values.words === "-";
    if (values.prompt !== undefined && values.words !== undefined && !more) {
      throw usageError(
        "usage",
        "There are two prompts: --prompt and an argument.",
        "Pass one of them; quote a prompt of several words.",
      );
    }
    const prompt = await readPrompt(values.prompt ?? values.words, { ...values, more }, io, {
      missing: "There is no prompt.",
      hint: 'Pass one: svc run -p "list the files", or pipe it in.',
    });
    const { session, role, model, approve_model, yes } = values;
    const task = await readTask(values, io);
    const attachments = values.attach.length === 0
      ? []
      : await import("../engine/attachments.ts").then(({ attachmentAt }) =>
        values.attach.map((path) => attachmentAt(path, io.environment.cwd))
      );
    const workspace = await openShared(values.path, io, turnOverrides(values), values.trust);
    const verifies = task.verify !== undefined;
    await workspace.load(AGENT_NEEDS, withdrawFirst(workspace, yes, verifies));
    const interrupt = io.onInterrupt();
    let agent: StartedAgent | undefined;
    try {
      agent = await startAgent(workspace, {
        session,
        role,
        operator: headlessOperator(yes),
        headless: !yes,
        model_named: model !== undefined,
        approve_models: approve_model,
        withdraw: true,
        verifies,
        task,
      });
      if (role !== undefined) noteOtherRole(agent.session, role, io);
      const turn = agent.turn(prompt, { signal: interrupt.signal, task, attachments });
      return await showTurn(turn, values, workspace, io);
    } finally {
      await agent?.close();
      await workspace.close(interrupt.signal);
      interrupt.release();
    }
  },
});

/** Warns when the turn runs as another role than that of the session, which the session keeps. */
function noteOtherRole(session: Session, role: string, io: Io): void {
  if (session.created) return;
  const owner = session.document().role;
  if (owner === "" || owner === role) return;
  io.note(
    `warning: Session ${session.name} belongs to the role ${owner}; this turn runs as ${role}.`,
  );
}
