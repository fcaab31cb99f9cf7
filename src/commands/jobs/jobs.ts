import { argument, command, constant } from "@optique/core/primitives";
import { object, or } from "@optique/core/constructs";
import { string } from "@optique/core/valueparser";
import { jobContext } from "../../jobs/context.ts";
import { moveGate } from "../../jobs/gates.ts";
import { SvcError } from "../../platform/error.ts";
import { stripControl } from "../../platform/terminal.ts";
import { defineCommand, says } from "../command.ts";
import { toJson } from "../io.ts";
import { addJob, addParser, addSupervisorParser } from "./add.ts";
import { editTask } from "./edit.ts";
import { daemonParser, jobsDaemon } from "./daemon.ts";
import { runJob, runParser } from "./run.ts";
import { tellOperated } from "./tell.ts";
import { jobsStatus, listJobs, nextOf, showJob } from "./view.ts";
import { outputOption, pathOption } from "../options.ts";
import { openWorkspace } from "../workspace.ts";

const common = {
  output: outputOption,
  path: pathOption,
};
const name = argument(string({ metavar: "NAME" }), { description: says("The job.") });

const list = command("list", object({ action: constant("list"), ...common }), {
  description: says("List the jobs and their next runs."),
});
const status = command("status", object({ action: constant("status"), ...common }), {
  description: says("Show how each job fares, when it runs next, and who waits for you."),
});
const show = command("show", object({ action: constant("show"), name, ...common }), {
  description: says("Show one job: its definition, files, history and last output."),
});
const edit = command("edit", object({ action: constant("edit"), name, path: pathOption }), {
  description: says(
    "Open a job's task file in your editor (EDITOR), made from a template if missing.",
  ),
});
const remove = command("remove", object({ action: constant("remove"), name, ...common }), {
  description: says("Remove a job's definition. Its sessions, task file and memory stay."),
});

const gate = <T extends "approve" | "reject" | "enable" | "disable" | "stop">(
  action: T,
  description: string,
) =>
  command(action, object({ action: constant(action), name, ...common }), {
    description: says(description),
  });

const gates = or(
  gate(
    "approve",
    "Let a proposed job run by its schedule, or let the run that waits, or the next, pass.",
  ),
  gate("reject", "Take a job back to proposed, and disable it."),
  gate("enable", "Let a job run again. What it missed is not made up for."),
  gate("disable", "Keep a job from running until it is enabled."),
  gate("stop", "The same as disable; a run that has begun ends by itself."),
);

/** `svc jobs` (specification 2.6, 3.1, 4.5): named tasks that run by themselves. */
export const jobs = defineCommand({
  parser: command(
    "jobs",
    or(
      list,
      status,
      show,
      addParser,
      addSupervisorParser,
      gates,
      edit,
      remove,
      runParser,
      daemonParser,
    ),
    { description: says("Plan, run and watch jobs: named tasks that run by themselves.") },
  ),
  bare: "list",
  examples: [
    'svc jobs add nightly --cron "30 3 * * 1-5" --prompt "run the tests"',
    'svc jobs add-supervisor docs --interval 3600 --task "keep docs/ true to the code"',
    "svc jobs approve nightly",
    "svc jobs run nightly --verbose",
    "svc jobs status",
    "svc jobs show nightly --output json",
    "svc jobs daemon --detach",
    "svc jobs daemon stop",
  ],
  async run(values, io) {
    const workspace = openWorkspace(values.path, io);
    const context = jobContext(workspace);
    const { register } = context;
    const print = ({ value, text }: { value: unknown; text: string }) => {
      const json = "output" in values && values.output === "json";
      io.out(json ? toJson(value, 2) + "\n" : stripControl(text));
    };
    const view = { workspace, context, io };
    switch (values.action) {
      case "list":
      case "status": {
        print(values.action === "list" ? listJobs(view) : jobsStatus(view));
        if (register.list().length === 0 && values.output === "text") {
          io.note(`There are no jobs; add one: ${io.program}jobs add`);
        }
        return 0;
      }
      case "show":
        print(showJob(view, values.name));
        return 0;
      case "add":
      case "add-supervisor":
        print(await addJob(view, values));
        return 0;
      case "edit":
        return await editTask(view, values.name);
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
          job = await moveGate(context, values.name, action);
          await tellOperated(view, job, action);
        } catch (error) {
          // What is so already needs no second word, and fails no script.
          if (!(error instanceof SvcError) || error.code !== "job_refused") throw error;
          io.note(error.message);
        }
        const gate = job.enabled ? "enabled" : "disabled";
        const next = nextOf(job, context.clock.now());
        print({ value: job, text: `${job.name}: ${job.status}, ${gate}; next run: ${next}\n` });
        return 0;
      }
    }
  },
});
