import { argument, command, constant, option } from "@optique/core/primitives";
import { object } from "@optique/core/constructs";
import { multiple, optional, withDefault } from "@optique/core/modifiers";
import { choice, integer, string } from "@optique/core/valueparser";
import { resolve } from "node:path";
import { createJob } from "../../jobs/create.ts";
import { MAX_WAIT } from "../../jobs/schedule.ts";
import type { Job } from "../../jobs/schema.ts";
import { usageError } from "../../platform/error.ts";
import { says } from "../command.ts";
import { tellOperated } from "./tell.ts";
import { nextOf, type View } from "./view.ts";
import { outputOption, pathOption } from "../options.ts";

const text = (
  flag: `--${string}`,
  metavar: "TEXT" | "NAME" | "REF" | "FILE" | "DATETIME" | "EXPR",
  description: string,
) => optional(option(flag, string({ metavar }), { description: says(description) }));
const number = (flag: `--${string}`, description: string, fallback: number, max?: number) =>
  withDefault(
    option(flag, integer({ min: 0, max, metavar: "N" }), { description: says(description) }),
    fallback,
  );

const schedule = {
  cron: text("--cron", "EXPR", "Minute, hour, day of month, month, day of week; in UTC."),
  interval: optional(option("--interval", integer({ metavar: "SECONDS" }), {
    description: says("Seconds from the end of a run to the next, 60 or more."),
  })),
  at: text("--at", "DATETIME", "Once, at an ISO 8601 datetime; in UTC unless it says otherwise."),
};
const common = {
  file: text("--file", "FILE", "Its Markdown task file, made from a template if missing."),
  output: outputOption,
  path: pathOption,
};
const name = argument(string({ metavar: "NAME" }), { description: says("The job's name.") });

/** `jobs add`. */
export const addParser = command(
  "add",
  object("The job", {
    action: constant("add"),
    name,
    ...schedule,
    prompt: text("--prompt", "TEXT", "What to do in each run; or --file, or both."),
    session: text("--session", "NAME", "One session for all runs; default: a new one for each."),
    mode: text("--mode", "NAME", "build, plan, or a mode of your configuration."),
    provider: text("--provider", "NAME", "The provider of its runs."),
    model: text("--model", "REF", "A model, or <provider>/<model>."),
    role: text("--role", "NAME", "The role of the catalog that it runs as."),
    system_prompt: text("--system-prompt", "TEXT", "More for its system prompt."),
    tools_deny: multiple(option("--tools-deny", string({ metavar: "NAME" }), {
      description: says("A tool that it may not use; may be repeated."),
    })),
    tool_permission: multiple(option("--tool-permission", string({ metavar: "CATEGORY=ACTION" }), {
      description: says("allow, ask or deny for a category of tools; may be repeated."),
    })),
    retries: number("--retries", "Attempts after one that failed (default 3).", 3),
    backoff: number(
      "--backoff",
      "Seconds before the first of them, doubled each time (60).",
      60,
      MAX_WAIT,
    ),
    timeout: number(
      "--timeout",
      "Seconds that an attempt may take; 0: no cap (default).",
      0,
      MAX_WAIT,
    ),
    require_approval: option("--require-approval", {
      description: says("Park each run until it is approved."),
    }),
    approve_model: option("--approve-model", {
      description: says("Approve the model that it or its role refers to."),
    }),
    approval: withDefault(
      option("--approval", choice(["manual", "auto"]), {
        description: says("auto: it needs no `jobs approve` to start (default: manual)."),
      }),
      "manual",
    ),
    ...common,
  }),
  { description: says("Add a job. It runs by its schedule once it is approved.") },
);

/** `jobs add-supervisor`. */
export const addSupervisorParser = command(
  "add-supervisor",
  object("The supervisor", {
    action: constant("add-supervisor"),
    name,
    task: option("--task", string({ metavar: "TEXT" }), {
      description: says("What it is to see to; it goes into the task file."),
    }),
    ...schedule,
    ...common,
  }),
  { description: says("Add a standing supervisor: an approved job with the role leader.") },
);

type Given =
  & {
    name: string;
    cron?: string;
    interval?: number;
    at?: string;
    file?: string;
  }
  & (
    | { action: "add-supervisor"; task: string }
    | ({
      action: "add";
      tools_deny: readonly string[];
      tool_permission: readonly string[];
      approval: string;
    } & Partial<Pick<Job, AddedField>>)
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
  | "timeout"
  | "require_approval"
  | "approve_model";

/** Adds a job as it was asked for. */
export async function addJob(view: View, given: Given): Promise<{ value: unknown; text: string }> {
  const { workspace, context, io } = view;
  const { name, cron, interval, at } = given;
  const file = given.file === undefined ? undefined : resolve(io.environment.cwd, given.file);
  const schedule = Object.fromEntries(
    Object.entries({ cron, interval, at }).filter(([, value]) => value !== undefined),
  );
  const { job, created } = await createJob(context, workspace, {
    name,
    schedule,
    file,
    ...(given.action === "add" ? fields(given) : supervisor(given.task)),
  });
  await tellOperated(view, job, job.status === "approved" ? "approve" : "propose");
  const lines = [
    `Added the job ${name}, ${job.status}; next run: ${nextOf(job, context.clock.now())}`,
    ...(created === "" ? [] : [`Its task file: ${created}`]),
    ...(job.status === "proposed" ? [`Let it run with: ${io.program}jobs approve ${name}`] : []),
  ];
  return { value: job, text: lines.join("\n") + "\n" };
}

function fields(given: Extract<Given, { action: "add" }>) {
  if (!given.prompt?.trim() && given.file === undefined) {
    throw usageError(
      "no_task",
      "A job needs something to do: there is neither a prompt nor a task file.",
      "Pass --prompt, --file, or both.",
    );
  }
  const { prompt, session, mode, provider, model, role, system_prompt } = given;
  const { retries, backoff, timeout, require_approval, approve_model } = given;
  return {
    ...{ prompt, session, mode, provider, model, role, system_prompt },
    ...{ retries, backoff, timeout, require_approval, approve_model },
    tools_deny: [...given.tools_deny],
    tool_permission: permissions(given.tool_permission),
    status: given.approval === "auto" ? "approved" as const : "proposed" as const,
  };
}

function supervisor(task: string) {
  if (task.trim() === "") throw usageError("no_task", "The supervisor's task is empty.");
  const rest =
    "Each run: look at how things stand, have the roles of the catalog do what is missing " +
    "(delegate), check what they did, and ask a human where only they can decide. End with what was " +
    "done, what is open, and what waits for whom.";
  return { role: "leader", status: "approved" as const, task: `${task.trim()}\n\n${rest}` };
}

function permissions(given: readonly string[]): Job["tool_permission"] {
  return Object.fromEntries(given.map((pair) => {
    const [, category, action] = /^([\w.-]+)=(allow|ask|deny)$/.exec(pair) ?? [];
    if (category !== undefined) return [category, action as "allow" | "ask" | "deny"];
    throw usageError(
      "usage",
      `${JSON.stringify(pair)} is not of the form category=allow, =ask or =deny.`,
    );
  }));
}
