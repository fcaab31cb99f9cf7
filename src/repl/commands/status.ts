import type { Workspace } from "../../engine/workspace.ts";
import { errorMessage } from "../../platform/error.ts";
import { oneLine } from "../../platform/terminal.ts";
import type { Shell } from "../shell.ts";
import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "session, model, runs, jobs, asks at a glance",
  usage: ["status"],
  async run(_line, shell) {
    const { workspace, conversation, focus, output } = shell;
    const { config, sessions, asks, paths } = workspace;
    await workspace.load({ providers: "all" });
    const row = (name: string, value: string) => output.line(`${name.padEnd(12)}${value}`);
    row("worktree", paths.worktree);
    row("session", conversation.name ?? "none yet: it begins with your first message");
    if (conversation.role !== "") row("role", conversation.role);
    row("model", oneLine(await backendOf(shell)));
    row("mode", config.get("mode") + (config.get("unattended") ? ", unattended" : ""));
    const runs = conversation.runs.list();
    const running = runs.filter(({ status }) => status === "running").length;
    row("runs", `${runs.length}, ${running} running; focus on #${focus.run}`);
    row("sessions", `${sessions.list().length} saved`);
    const parked = asks.list("pending").length;
    row("asks", parked === 0 ? "none waits" : `${parked} for you to answer: /asks`);
    row("jobs", await jobsAtAGlance(workspace));
  },
});

async function backendOf({ workspace, conversation }: Shell): Promise<string> {
  const { provider, base_url, model } = workspace.backendRequest();
  if (provider === "" && base_url === "" && model === "") return "none: /connect";
  try {
    const backend = await conversation.backend();
    return `${backend.provider}/${backend.model}`;
  } catch (error) {
    return errorMessage(error);
  }
}

/** How many jobs there are, and of these what a person may want to know. */
async function jobsAtAGlance(workspace: Workspace): Promise<string> {
  const { jobContext } = await import("../../jobs/context.ts");
  const jobs = jobContext(workspace).register.list();
  if (jobs.length === 0) return "none";
  const of = (status: string) => jobs.filter((job) => job.status === status);
  const running = of("executing").map(({ name }) => name);
  const many = (number: number, what: string) => number === 0 ? [] : [`${number} ${what}`];
  return oneLine([
    String(jobs.length),
    ...running.length === 0 ? [] : [`running: ${running.join(" ")}`],
    ...many(of("waiting_approval").length, "waiting for approval"),
    ...many(of("proposed").length, "proposed"),
    ...many(of("failed").length, "failed"),
  ].join(", "));
}
