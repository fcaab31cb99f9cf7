import { resolve } from "node:path";
import { checkJob } from "../../jobs/attempt.ts";
import { jobContext, jobOpening } from "../../jobs/context.ts";
import { isOver } from "../../jobs/health.ts";
import { createJob } from "../../jobs/create.ts";
import { moveGate } from "../../jobs/transitions.ts";
import { reportServices, sendJobEvent } from "../../jobs/report.ts";
import { MAX_WAIT } from "../../jobs/schedule.ts";
import { type Job, MAX_PRIORITY } from "../../jobs/schema.ts";
import { createTaskFile, taskPath } from "../../jobs/prompt.ts";
import { readTextIfExists, writeFileAtomic } from "../../platform/files.ts";
import { openEditor, visible } from "../../platform/terminal.ts";
import { SvcError, usageError } from "../../platform/error.ts";
import type { JobEvent } from "../../plugins/api.ts";
import { defineCommand, outputOption, pathOption, textOption } from "../command.ts";
import { printLists } from "../format.ts";
import { toJson } from "../io.ts";
import { actionsOption, readActions, readDenied, toolsDenyOption } from "../tool_permission.ts";
import { duration, readTask, taskOptions } from "../turn.ts";
import { daemonParser, jobsDaemon } from "./daemon.ts";
import { digestParser, jobsDigest } from "./digest.ts";
import { runJob, runParser } from "./run.ts";
import { jobsStatus, listJobs, nextOf, showJob, statusText, type View } from "./view.ts";
import { openWorkspace } from "../workspace.ts";
import { nameOf, pathOf } from "../names.ts";
import {
  argument,
  choice,
  command,
  integer,
  option,
  optional,
  string,
  withDefault,
} from "../options.ts";

const common = {
  output: outputOption,
  path: pathOption,
};
const newName = argument(string("NAME"), "The job's name.");
const name = argument(nameOf("jobs"), "The job.");

const number = (flag: `--${string}`, description: string, fallback: number, max?: number) =>
  withDefault(
    option(flag, integer("N", 0, max), description),
    fallback,
  );

const schedule = {
  cron: textOption("--cron", "EXPR", "Minute, hour, day of month, month, day of week."),
  tz: textOption("--tz", "ZONE", "The time zone of --cron, such as Europe/Berlin; default: UTC."),
  interval: optional(
    option(
      "--interval",
      duration,
      "From the end of a run to the next, such as 90, 20m or 6h; 60 seconds or more.",
    ),
  ),
  at: textOption(
    "--at",
    "DATETIME",
    "Once, at an ISO 8601 datetime; in UTC unless it names an offset.",
  ),
};
const taskFile = {
  file: textOption(
    "--file",
    pathOf("FILE"),
    "Its Markdown task file, made from a template if missing.",
  ),
};

const addParser = command("add", {
  action: "add",
  name: newName,
  ...schedule,
  prompt: textOption("--prompt", "TEXT", "What to do in each run; or --file, or both."),
  session: textOption(
    "--session",
    nameOf("sessions"),
    "One session for all runs; default: a new one for each.",
  ),
  mode: textOption(
    "--mode",
    nameOf("modes", "MODE"),
    "build, plan, or a mode of your configuration.",
  ),
  provider: textOption("--provider", nameOf("providers"), "The provider of its runs."),
  model: textOption("--model", nameOf("models", "REF"), "A model, or <provider>/<model>."),
  role: textOption("--role", nameOf("roles"), "The role of the catalog that it runs as."),
  system_prompt: textOption("--system-prompt", "TEXT", "More for its system prompt."),
  tools_deny: toolsDenyOption,
  tool_permission: actionsOption("--tool-permission"),
  retries: number("--retries", "Attempts after one that failed (default 3).", 3),
  backoff: number(
    "--backoff",
    "Seconds before the first of them, doubled each time (60).",
    60,
    MAX_WAIT,
  ),
  ...taskOptions,
  keep_days: optional(
    option(
      "--keep-days",
      integer("DAYS", 0),
      "Days that its sessions are kept (default: setting sessions.keep_days).",
    ),
  ),
  keep_count: optional(
    option(
      "--keep-count",
      integer("N", 0),
      "Its newest sessions are kept (default: sessions.keep_count).",
    ),
  ),
  label: textOption("--label", "LABEL", "Only workers with this label run it (with a store)."),
  priority: optional(
    option(
      "--priority",
      integer("N", -MAX_PRIORITY, MAX_PRIORITY),
      "Of the jobs that are due, those with a larger one run first (default 0).",
    ),
  ),
  git: textOption(
    "--git",
    "URL",
    "Work in a clone of this repository, at the branch, tag or commit after #.",
  ),
  push: optional(
    option("--push/--no-push", "Push what a run changes as a branch svc/NAME/RUN (default: yes)."),
  ),
  require_approval: option("--require-approval", "Park each run until it is approved."),
  approve_model: option("--approve-model", "Approve the model that it or its role refers to."),
  approval: withDefault(
    option(
      "--approval",
      choice(["manual", "auto"]),
      "auto: it needs no `jobs approve` to start (default: manual).",
    ),
    "manual",
  ),
  ...taskFile,
  ...common,
}, "Add a job. It runs by its schedule once it is approved.");

const addSupervisorParser = command("add-supervisor", {
  action: "add-supervisor",
  name: newName,
  task: option("--task", string("TEXT"), "Its standing task; it is written into the task file."),
  ...schedule,
  ...taskFile,
  ...common,
}, "Add a standing supervisor: an approved job with the role leader.");

const list = command("list", { action: "list", ...common }, "List the jobs and their next runs.");
const status = command(
  "status",
  { action: "status", ...common },
  "Show each job's last and next run, and what waits for you; exit code 1 when a job fails.",
);
const show = command(
  "show",
  { action: "show", name, ...common },
  "Show one job: its definition, files, history and last output.",
);
const edit = command(
  "edit",
  { action: "edit", name, path: pathOption },
  "Open a job's task file in your editor (EDITOR), made from a template if missing.",
);
const remove = command(
  "remove",
  { action: "remove", name, ...common },
  "Remove a job's definition. Its sessions, task file and memory stay.",
);

const gate = <T extends "approve" | "reject" | "enable" | "disable" | "stop">(
  action: T,
  description: string,
) => command(action, { action: action, name, ...common }, description);

const gates = [
  gate(
    "approve",
    "Let a proposed job run by its schedule, or let the run that waits, or the next, pass.",
  ),
  gate("reject", "Take a job back to proposed, and disable it."),
  gate("enable", "Let a job run again. What it missed is not made up for."),
  gate("disable", "Keep a job from running until it is enabled."),
  gate("stop", "The same as disable; a run that has begun ends by itself."),
];

/** `svc jobs` (specification 2.6, 3.1, 4.5): named tasks that run by themselves. */
export const jobs = defineCommand({
  parser: command("jobs", [
    list,
    status,
    show,
    addParser,
    addSupervisorParser,
    ...gates,
    edit,
    remove,
    digestParser,
    runParser,
    daemonParser,
  ], "Plan, run and watch jobs: named tasks that run by themselves."),
  bare: "list",
  lends: ({ action }) => action === "edit",
  examples: [
    'svc jobs add nightly --cron "30 3 * * 1-5" --prompt "run the tests"',
    'svc jobs add-supervisor docs --interval 1h --task "keep docs/ true to the code"',
    "svc jobs approve nightly",
    "svc jobs run nightly --verbose",
    "svc jobs status",
    "svc jobs digest --since 7d",
    "svc jobs show nightly --output json",
    "svc jobs daemon --detach",
    "svc jobs daemon stop",
  ],
  async run(values, io) {
    const trusted = "trust" in values && values.trust;
    const workspace = openWorkspace(values.path, io, undefined, trusted);
    const context = jobContext(workspace);
    await workspace.store?.refresh();
    const { register } = context;
    /** Trusts a job as it is now: the user has changed it through svc. */
    const trust = (name: string) => workspace.trust.accept([jobOpening(register.need(name))]);
    const print = ({ value, text }: { value: unknown; text: string }) => {
      const json = "output" in values && values.output === "json";
      if (json) io.out(toJson(value, 2) + "\n");
      else printLists(io, visible(text));
    };
    const view = { workspace, context, io };
    switch (values.action) {
      case "list":
      case "status": {
        const shown = values.action === "list" ? { ...listJobs(view), code: 0 } : jobsStatus(view);
        print(shown);
        if (register.list().length === 0 && values.output === "text") {
          io.note(`There are no jobs; add one: ${io.program}jobs add`);
        }
        return shown.code;
      }
      case "digest":
        print(await jobsDigest(view, values));
        return 0;
      case "show":
        print(showJob(view, values.name));
        return 0;
      case "add":
      case "add-supervisor":
        print(await addJob(view, values));
        await trust(values.name);
        return 0;
      case "edit": {
        const code = await editTask(view, values.name);
        if (code === 0) await trust(values.name);
        return code;
      }
      case "remove": {
        if (!await register.remove(values.name)) register.need(values.name);
        print({ value: { removed: values.name }, text: `Removed the job ${values.name}.\n` });
        return 0;
      }
      case "run":
        return await runJob(view, values);
      case "daemon":
        return await jobsDaemon(workspace, values, io);
      default: {
        const { action } = values;
        let job = register.need(values.name);
        try {
          if (action === "approve" || action === "enable") await trust(values.name);
          job = await moveGate(context, values.name, action);
          if (action === "approve") await warnOfFault(view, job);
          await tellOperated(view, job, action);
        } catch (error) {
          // A job that is in this state already is not an error for scripts.
          if (!(error instanceof SvcError) || error.code !== "job_refused") throw error;
          io.note(error.message);
        }
        const gate = job.enabled ? "enabled" : "disabled";
        const next = nextOf(job, context.clock.now());
        const status = statusText(job, context);
        print({ value: job, text: `${job.name}: ${status}, ${gate}; next run: ${next}\n` });
        const opens = action === "approve" || action === "enable";
        if (opens && isOver(job)) io.note(`Run it again with: ${io.program}jobs run ${job.name}`);
        else if (opens && !job.enabled) {
          io.note(`Let it run with: ${io.program}jobs enable ${job.name}`);
        } else if (opens && job.status === "proposed") {
          io.note(`Let it run with: ${io.program}jobs approve ${job.name}`);
        }
        return 0;
      }
    }
  },
});

type Given =
  & {
    name: string;
    cron?: string;
    tz?: string;
    interval?: number;
    at?: string;
    file?: string;
  }
  & (
    | { action: "add-supervisor"; task: string }
    | (
      & {
        action: "add";
        tools_deny: readonly string[];
        tool_permission: readonly string[];
        approval: string;
        git?: string;
        push?: boolean;
      }
      & Partial<Pick<Job, AddedField>>
      & Parameters<typeof readTask>[0]
    )
  );
type AddedField =
  | "prompt"
  | "session"
  | "mode"
  | "provider"
  | "model"
  | "role"
  | "system_prompt"
  | "retries"
  | "backoff"
  | "require_approval"
  | "approve_model"
  | "keep_days"
  | "keep_count"
  | "label"
  | "priority";

/** Adds the job that the arguments describe. */
export async function addJob(view: View, given: Given): Promise<{ value: unknown; text: string }> {
  const { context, io } = view;
  const { name, cron, tz, interval, at } = given;
  const file = given.file === undefined ? undefined : resolve(io.environment.cwd, given.file);
  const schedule = Object.fromEntries(
    Object.entries({ cron, tz, interval, at }).filter(([, value]) => value !== undefined),
  );
  const { job, created } = await createJob(context, {
    name,
    schedule,
    file,
    ...(given.action === "add" ? await fields(given, view) : supervisor(given.task)),
  });
  await tellOperated(view, job, job.status === "approved" ? "approve" : "propose");
  const lines = [
    `Added the job ${name}, ${job.status}; next run: ${nextOf(job, context.clock.now())}`,
    ...(created === "" ? [] : [`Its task file: ${created}`]),
    ...(job.status === "proposed" ? [`Let it run with: ${io.program}jobs approve ${name}`] : []),
  ];
  return { value: job, text: lines.join("\n") + "\n" };
}

async function fields(
  given: Extract<Given, { action: "add" }>,
  { workspace, io }: View,
) {
  if (!given.prompt?.trim() && given.file === undefined) {
    throw usageError(
      "no_task",
      "A job needs something to do: there is neither a prompt nor a task file.",
      "Pass --prompt, --file, or both.",
    );
  }
  const { prompt, mode, provider, model, role, system_prompt } = given;
  const session = given.session && await workspace.sessions.locate(given.session);
  const { retries, backoff, require_approval, approve_model, keep_days, keep_count } = given;
  const { label, priority } = given;
  const git = given.git === undefined ? undefined : await repositoryOf(given.git, given.push, io);
  return {
    ...{ prompt, session, mode, provider, model, role, system_prompt },
    ...{ retries, backoff, require_approval, approve_model, keep_days, keep_count },
    ...{ label, priority, git },
    ...await readTask(given, io),
    tools_deny: await readDenied(given.tools_deny, workspace),
    tool_permission: await readActions(given.tool_permission, workspace),
    status: given.approval === "auto" ? "approved" as const : "proposed" as const,
  };
}

async function repositoryOf(given: string, push = true, { environment }: View["io"]) {
  const { readRepository } = await import("../../jobs/clones.ts");
  const { url, ref } = readRepository(given, environment);
  return { url, ref, push };
}

function supervisor(task: string) {
  if (task.trim() === "") throw usageError("no_task", "The supervisor's task is empty.");
  const rest =
    "Each run: look at the current state, have the roles of the catalog do what is missing " +
    "(delegate), check what they did, and ask a human where only they can decide. End with what was " +
    "done, what is open, and what waits for whom.";
  return { role: "leader", status: "approved" as const, task: `${task.trim()}\n\n${rest}` };
}

/** Warns of a job that could not run now. */
async function warnOfFault({ context, io }: View, job: Job): Promise<void> {
  try {
    await checkJob(context, job);
  } catch (error) {
    const { message, hint } = error as SvcError;
    io.note(`warning: the job cannot work yet: ${message}`);
    if (hint !== "") io.note(`hint: ${hint}`);
  }
}

/** `jobs edit`: the task file in the user's editor. Without a terminal, only in one that the environment names. */
export async function editTask({ context, io }: View, name: string): Promise<number> {
  const job = context.register.need(name);
  const path = taskPath(context.worktree, job) ??
    taskPath(context.worktree, { ...job, task_file: undefined })!;
  createTaskFile(path, name);
  if (job.task_file === "") {
    await context.register.change(name, () => ({ set: { task_file: undefined } }));
  }
  const named = io.environment.get("EDITOR");
  if (!named && !(io.isTerminal("in") && io.isTerminal("out"))) {
    const hint = `Set EDITOR, or edit the file itself: ${path}`;
    throw usageError("no_terminal", "There is neither a terminal nor an EDITOR.", hint);
  }
  const code = await openEditor(named || "vi", path);
  if (code !== 0) io.note(`The editor ended with exit code ${code}.`);
  else if (context.store !== undefined) {
    const text = readTextIfExists(path);
    await context.register.change(name, () => {
      // Its row has the task. A change of another machine meanwhile has brought the text from before.
      if (text !== undefined) writeFileAtomic(path, text);
      return {};
    });
  }
  return code === 0 ? 0 : 1;
}

/** Reports an operator's change of a job to the report services. */
export async function tellOperated(
  { workspace, context }: View,
  { name: job }: Job,
  action: "propose" | "approve" | "reject" | "enable" | "disable" | "stop",
): Promise<void> {
  const steps: Partial<Record<typeof action, JobEvent["event"]>> = {
    propose: "job.proposed",
    approve: "job.approved",
    reject: "job.proposed", // its state after a rejection
  };
  const event = steps[action];
  if (event === undefined) return;
  const { services } = await workspace.load({ services: ["report"] });
  await sendJobEvent(reportServices(workspace, services), { event, job }, context.clock);
}
