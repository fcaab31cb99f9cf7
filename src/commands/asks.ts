import type { Ask } from "../asks/store.ts";
import { usageError } from "../platform/error.ts";
import { visible } from "../platform/terminal.ts";
import { defineCommand } from "./command.ts";
import { type Io, toJson } from "./io.ts";
import { outputOption, pathOption } from "./command.ts";
import { listText, printLists } from "./format.ts";
import { openShared } from "./workspace.ts";
import { nameOf } from "./names.ts";
import { argument, choice, command, optional, string, withDefault } from "./options.ts";

const common = {
  output: outputOption,
  path: pathOption,
};

const id = argument(nameOf("asks", "ID"));

const list = command("list", {
  action: "list",
  filter: withDefault(
    argument(
      choice(["all", "pending", "answered"], "FILTER"),
      "all, pending (default) or answered.",
    ),
    "pending",
  ),
  ...common,
}, "List the asks that wait for an answer; or all, or the answered ones.");

const show = command(
  "show",
  { action: "show", id, ...common },
  "Show one ask with its context, options and answer.",
);

const answer = command("answer", {
  action: "answer",
  id,
  text: optional(
    argument(string("TEXT"), "The answer; - or nothing reads it from standard input."),
  ),
  ...common,
}, "Answer an ask; the session that asked gets the answer into its log.");

/** `svc asks` (specification 2.7, 3.2): the inbox of parked questions. */
export const asks = defineCommand({
  parser: command(
    "asks",
    [list, show, answer],
    "List, show and answer the questions that agents have parked.",
  ),
  bare: "list",
  textAfter: { answer: 1 },
  examples: [
    "svc asks",
    "svc asks list all --output json",
    "svc asks show 3",
    'svc asks answer 3 "use the staging database"',
    "svc asks answer 3 < answer.txt",
  ],
  async run(values, io) {
    const workspace = await openShared(values.path, io);
    const { asks } = workspace;
    const json = values.output === "json";
    const print = (value: unknown, text: () => string) =>
      json ? io.out(toJson(value, 2) + "\n") : printLists(io, visible(text()));
    switch (values.action) {
      case "list": {
        const found = asks.list(values.filter);
        const workers = found.some(({ worker }) => worker !== undefined);
        const head = ["ASK", "STATE", "ASKED", "SESSION", ...workers ? ["WORKER"] : [], "QUESTION"];
        print(found, () => listText(io, head, found.map((ask) => row(ask, workers))));
        if (!json && found.length === 0) {
          io.note(values.filter === "all" ? "There are no asks." : `No ask is ${values.filter}.`);
        }
        return 0;
      }
      case "show": {
        const ask = asks.need(askId(values.id));
        print(ask, () => whole(ask, io));
        return 0;
      }
      case "answer": {
        const wanted = askId(values.id);
        const answered = await asks.answer(wanted, await answerText(values.text, io));
        const { session, resume, injected } = answered;
        const { jobContext } = await import("../jobs/context.ts");
        const { register } = jobContext(workspace);
        await workspace.store?.refresh();
        const jobs = register.list();
        const job = jobs.find((each) => each.session === session);
        const next = job === undefined
          ? `Continue it with:\n  ${resume}`
          : `The next run of the job ${job.name} reads it; run it now with:\n  ${io.program}jobs run ${job.name}`;
        print(
          answered,
          () =>
            injected
              ? `Ask #${wanted} is answered, and session ${session} has it. ${next}\n`
              : `Ask #${wanted} is answered; session ${session} does not exist any more.\n`,
        );
        return 0;
      }
    }
  },
});

function askId(text: string): number {
  const [, digits] = /^#?(\d{1,15})$/.exec(text) ?? [];
  if (digits !== undefined) return Number(digits);
  throw usageError("usage", `"${text}" is no id of an ask.`, "See the ids with: svc asks list");
}

async function answerText(given: string | undefined, io: Io): Promise<string> {
  if (given !== undefined && given !== "-") return given;
  if (given === undefined && io.isTerminal("in")) {
    throw usageError("no_answer", "There is no answer.", 'Pass one: svc asks answer 3 "yes"');
  }
  return await io.readInput();
}

function row({ id, status, created_at, origin, question, worker = "" }: Ask, workers: boolean) {
  const where = workers ? [worker] : [];
  return [`#${id}`, status, created_at, origin, ...where, question.trim().split("\n")[0]!];
}

function whole(ask: Ask, { program }: Io): string {
  const { id, question, context, options, origin, kind, permission, status, answer, worker } = ask;
  const about = kind === "permission" ? `permission ${permission}`.trim() : kind;
  const answered = status === "answered" ? [`answer (${ask.answered_at}):`, indent(answer)] : [];
  return [
    `Ask #${id} (${about}), ${status}`,
    `from session ${origin}${worker === undefined ? "" : ` on ${worker}`}, ${ask.created_at}`,
    "question:",
    indent(question),
    ...(context === "" ? [] : ["context:", indent(context)]),
    ...(options.length === 0 ? [] : ["options:", ...options.map((each) => `  - ${each}`)]),
    ...answered,
    ...(status === "pending" ? [`answer it with: ${program}asks answer ${id} "<text>"`] : []),
  ].join("\n") + "\n";
}

function indent(text: string): string {
  return text.trim().replaceAll(/^/gm, "  ");
}
