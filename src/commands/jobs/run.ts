import { beginRun, finishRun, JobRun } from "../../jobs/run.ts";
import { SvcError } from "../../platform/error.ts";
import { stripControl } from "../../platform/terminal.ts";
import { pathOption } from "../command.ts";
import { span } from "../format.ts";
import { toJson } from "../io.ts";
import { nextOf, type View } from "./view.ts";
import { activity, callLines, turnRenderer } from "../turn.ts";
import { nameOf } from "../names.ts";
import { argument, choice, command, multiple, option, string, withDefault } from "../options.ts";

/** `jobs run`. */
export const runParser = command("run", {
  action: "run",
  name: argument(nameOf("jobs"), "The job."),
  no_retry: option("--no-retry", "Make one attempt only."),
  label: multiple(
    option(
      "--label",
      string("LABEL"),
      "This machine has the label, as svc worker; may be repeated.",
    ),
  ),
  verbose: option("--verbose", "Print the answer as it comes, and the activity on standard error."),
  output: withDefault(
    option("--output", choice(["text", "json"]), "text (default) or json."),
    "text",
  ),
  path: pathOption,
}, "Run a job now, whatever its schedule; this also approves it.");

/** Runs a job with its retries; exit code 0 when it is verified, 1 when it failed, 130 when interrupted. */
export async function runJob(
  { workspace, context, io }: View,
  { name, no_retry, label: labels, verbose, output }: {
    name: string;
    no_retry: boolean;
    label: readonly string[];
    verbose: boolean;
    output: string;
  },
): Promise<number> {
  const { register, clock } = context;
  const { status, label } = register.need(name);
  const proposed = status === "proposed";
  const interrupt = io.onInterrupt();
  try {
    const calls = verbose ? await callLines(workspace, io) : undefined;
    const show = verbose && output === "text"
      ? turnRenderer({ output, calls }, workspace.asks.path, io)
      : activity(io, { calls });
    const run = await beginRun({ ...context, show }, name, "run", {
      retry: !no_retry,
      labels,
      signal: interrupt.signal,
    });
    if (!(run instanceof JobRun)) {
      const hint = run.refused === "is disabled"
        ? `Let it run with: ${io.program}jobs ${proposed ? "approve" : "enable"} ${name}`
        : label !== undefined && run.refused.endsWith(`label ${label}`)
        ? `Where it may run: ${io.program}jobs run ${name} --label ${label}`
        : "";
      throw new SvcError("job_refused", `The job ${name} ${run.refused}.`, { hint });
    }
    if (proposed) io.note(`This run approves the job ${name}, which then runs by its schedule.`);
    const waits = (ms: number) => {
      const { attempt, reason } = run.last!;
      io.note(`Attempt ${attempt} failed (${reason}); the next one comes in ${span(ms / 1000)}.`);
    };
    await finishRun(run, { clock, signal: interrupt.signal, waits });
    const report = run.report!;
    const job = register.get(name);
    if (output === "json") {
      const { event: _, ...value } = report;
      io.out(toJson({ ...value, next_run_at: job?.next_run_at ?? "" }, 2) + "\n");
    } else {
      if (!verbose && report.content !== "") io.out(stripControl(report.content).trimEnd() + "\n");
      const next = job?.enabled && job.next_run_at ? `, next run ${nextOf(job, clock.now())}` : "";
      const why = report.reason === "" ? "" : ` (${report.reason})`;
      const asks = report.parked_asks.map(({ id }) => `, ask #${id} waits for you`).join("");
      const line = `summary: ${report.outcome}${why} in ${report.duration} s, ` +
        `session ${report.session || "none"}${asks}${next}`;
      io.out(stripControl(line).replace(/\s*\n\s*/g, " ") + "\n");
    }
    if (interrupt.signal.aborted && report.status === "failed") return 130;
    return report.status === "verified" ? 0 : 1;
  } finally {
    interrupt.release();
  }
}
