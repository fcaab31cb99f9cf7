import { command, option } from "@optique/core/primitives";
import { object } from "@optique/core/constructs";
import { argument } from "@optique/core/primitives";
import { optional, withDefault } from "@optique/core/modifiers";
import { choice, string } from "@optique/core/valueparser";
import { ROOT_RUN, type TurnEvent, type TurnResult } from "../engine/events.ts";
import { usageError } from "../platform/error.ts";
import { stripControl } from "../platform/terminal.ts";
import { withdrawUnusable } from "../policy/deno_permissions.ts";
import { headlessOperator } from "../policy/operator.ts";
import { approveModels } from "../providers/approvals.ts";
import type { Session } from "../sessions/session.ts";
import { activity } from "./activity.ts";
import { defineCommand, says } from "../commands/command.ts";
import { type Io, toJson } from "../commands/io.ts";
import { pathOption } from "../commands/options.ts";
import { openWorkspace } from "../commands/workspace.ts";

const parser = command(
  "run",
  object({
    prompt: optional(option("-p", "--prompt", string({ metavar: "TEXT" }), {
      description: says(
        "What the agent is to do; also taken as an argument or from standard input.",
      ),
    })),
    words: optional(argument(string({ metavar: "PROMPT" }), {
      description: says("The prompt; - reads it from standard input."),
    })),
    session: optional(option("--session-id", string({ metavar: "NAME" }), {
      description: says("Load this session and go on in it, or create it."),
    })),
    model: optional(option("--model", string({ metavar: "REF" }), {
      description: says("A model, or <provider>/<model>."),
    })),
    provider: optional(option("--provider", string({ metavar: "NAME" }), {
      description: says("The provider for this run."),
    })),
    base_url: optional(option("--base-url", string({ metavar: "URL" }), {
      description: says("The backend's address for this run."),
    })),
    role: optional(option("--role", string({ metavar: "NAME" }), {
      description: says("Run as this role of the catalog; see `svc roles list`."),
    })),
    mode: optional(option("--mode", string({ metavar: "MODE" }), {
      description: says("build, plan, or a mode of your configuration."),
    })),
    output: withDefault(
      option("--output", choice(["json", "text", "stream-json"]), {
        description: says(
          "json: the whole result. text: the answer as it comes. stream-json: one event per line.",
        ),
      }),
      "json",
    ),
    unattended: option("--unattended", {
      description: says("Nobody will answer: questions are parked, standard input is not used."),
    }),
    approve_model: option("--approve-model", {
      description: says("Approve the model that the configuration or the role refers to."),
    }),
    yes: option("--yes", { description: says("Approve every call that the policy asks about.") }),
    no: option("--no", { description: says("Refuse every such call (the default).") }),
    verbose: option("--verbose", { description: says("Show the activity on standard error.") }),
    path: pathOption,
  }),
  { description: says("Run one agent turn without a terminal and print its result.") },
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
    const prompt = await readPrompt(values.prompt ?? values.words, values, io);
    if (values.yes && values.no) {
      throw usageError("usage", "--yes and --no exclude each other.", "Pass one of them.");
    }
    const workspace = openWorkspace(values.path, io, overrides(values));
    await workspace.load({ tools: "all", providers: "all", roles: "all", skills: "all" });
    const role = values.role === undefined ? undefined : await workspace.role(values.role);
    const roleRef = workspace.adoptModel(role?.model ?? "");
    const backend = workspace.backend(); // nothing is created when there is no model to ask
    const ref = roleRef ?? workspace.backendRequest().ref;
    await approveModels(ref === undefined ? [] : [ref], workspace.models, {
      granted: values.model !== undefined || values.approve_model,
    });
    withdrawUnusable(workspace.authority(role), workspace.tools.list(), { yes: values.yes });

    const session = values.session === undefined
      ? workspace.sessions.create("ses", { role: role?.name })
      : workspace.sessions.open(values.session, { role: role?.name });
    if (role !== undefined) noteOtherRole(session, role.name, io);
    const operator = headlessOperator(values.yes);
    const engine = workspace.engine({
      session,
      operator,
      headless: !values.yes,
      role,
      approve_models: values.approve_model,
    });
    const interrupt = io.onInterrupt();
    const show = renderer(values, workspace.asks.path, io);
    let result: TurnResult | undefined;
    try {
      for await (const event of engine.turn(prompt, { signal: interrupt.signal })) {
        show(event);
        if (event.type === "turn_finished" && event.run === ROOT_RUN) result = event.result;
      }
    } finally {
      await engine.close();
      session.close();
      await workspace.beside.settle(interrupt.signal);
      interrupt.release();
    }
    await workspace.connections.touch(backend.provider);
    if (ref !== undefined) await workspace.models.touch(ref.provider, ref.model);
    if (result?.status === "cancelled") return 130;
    return result?.status === "ok" || result?.status === "truncated" ? 0 : 1;
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

async function readPrompt(
  given: string | undefined,
  values: { unattended: boolean },
  io: Io,
): Promise<string> {
  // Standard input is read only when it is the prompt: a pipe nobody closes must not block a run.
  const piped = given === "-" ||
    (given === undefined && !values.unattended && !io.isTerminal("in"));
  const prompt = (piped ? await io.readInput() : given ?? "").trim();
  if (prompt === "") {
    throw usageError(
      "no_prompt",
      "There is no prompt.",
      'Pass one: svc run -p "list the files", or pipe it in.',
    );
  }
  return prompt;
}

function overrides(values: {
  model?: string;
  provider?: string;
  base_url?: string;
  mode?: string;
  unattended: boolean;
}): Record<string, unknown> {
  const { model, provider, base_url, mode, unattended } = values;
  const given = { model, provider, base_url, mode, unattended: unattended || undefined };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function renderer(
  { output, verbose }: { output: "json" | "text" | "stream-json"; verbose: boolean },
  asksPath: string,
  io: Io,
): (event: TurnEvent) => void {
  const asks = verbose || output === "text" ? asksPath : undefined;
  const note = activity(io, { verbose, asks });
  let open = false; // text has been printed that does not end its line yet
  return (event) => {
    if (output === "stream-json") io.out(toJson(event) + "\n");
    if (output === "text" && event.run === ROOT_RUN) {
      if (event.type === "token") {
        io.out(stripControl(event.content));
        open = !event.content.endsWith("\n");
      } else if (open && event.type !== "thinking") {
        io.out("\n");
        open = false;
      }
    }
    note(event);
    if (output === "json" && event.type === "turn_finished" && event.run === ROOT_RUN) {
      io.out(toJson(event.result, 2) + "\n");
    }
  };
}
