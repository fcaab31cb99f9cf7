import { nameOf } from "../../commands/names.ts";
import type { Workspace } from "../../engine/workspace.ts";
import { VERSION } from "../../platform/environment.ts";
import { errorMessage } from "../../platform/error.ts";
import { oneLine } from "../../platform/terminal.ts";
import { checkMode } from "../../policy/settings.ts";
import { amount } from "../../usage/ledger.ts";
import type { Conversation } from "../conversation.ts";
import { count } from "../../platform/text.ts";
import type { SlashCommand } from "./table.ts";
import { argument, choice, command, optional } from "../../commands/options.ts";

/** `/mode` */
export const mode: SlashCommand<{ name?: string }> = {
  parser: command(
    "mode",
    { name: optional(argument(nameOf("modes", "MODE"))) },
    "Show the mode, or choose another for this process.",
  ),
  examples: ["/mode", "/mode plan"],
  run({ name }, { workspace: { config }, output, io }) {
    if (name === undefined) {
      const names = ["build", "plan", ...Object.keys(config.get("modes"))];
      output.line(`${config.get("mode")} (of ${[...new Set(names)].join(", ")})`);
      return Promise.resolve();
    }
    checkMode(config, name);
    config.override("mode", name);
    io.note(`The mode is ${name} from the next turn on; keep it with: /config set mode ${name}`);
    return Promise.resolve();
  },
};

const EFFORTS = ["off", "on", "auto", "low", "medium", "high"] as const;

/** `/thinking` */
export const thinking: SlashCommand<{ word?: "show" | "hide" | typeof EFFORTS[number] }> = {
  parser: command("thinking", {
    word: optional(
      argument(
        choice(["show", "hide", ...EFFORTS], "SETTING"),
        "show or hide the reasoning, or set how much of it the model does.",
      ),
    ),
  }, "Show the settings of reasoning, or change them for this process."),
  examples: ["/thinking", "/thinking hide", "/thinking high"],
  run({ word }, { workspace: { config }, output, io }) {
    if (word === undefined) {
      const shown = config.get("show_thinking") ? "shown" : "hidden";
      output.line(`reasoning ${config.get("reasoning")}, ${shown}`);
    } else if (word === "show" || word === "hide") {
      config.override("show_thinking", word === "show");
      io.note(`The model's reasoning is ${word === "show" ? "shown" : "hidden"} from now on.`);
    } else {
      config.override("reasoning", word);
      io.note(`Reasoning is ${word} from the next turn on.`);
    }
    return Promise.resolve();
  },
};

/** `/unattended` */
export const unattended: SlashCommand<{ word?: "on" | "off" | "toggle" }> = {
  parser: command("unattended", {
    word: optional(argument(choice(["on", "off", "toggle"], "SETTING"))),
  }, "Show whether a person is there to answer, or change it."),
  examples: ["/unattended", "/unattended on"],
  run({ word }, { workspace: { config }, output }) {
    if (word !== undefined) {
      const now = config.get("unattended");
      config.override("unattended", word === "toggle" ? !now : word === "on");
    }
    output.line(
      config.get("unattended")
        ? "unattended: confirmations are denied, and questions for a human are parked (/asks)"
        : "attended: confirmations and questions come to you",
    );
    return Promise.resolve();
  },
};

/** `/status` */
export const status: SlashCommand<object> = {
  parser: command("status", {}, "Show the session, model, mode, runs, jobs and asks at a glance."),
  examples: ["/status"],
  async run(_values, { workspace, conversation, focus, output }) {
    const { config, sessions, asks, paths } = workspace;
    await workspace.load({ providers: "all" });
    const row = (name: string, value: string) => output.line(`${name.padEnd(12)}${value}`);
    row("worktree", paths.worktree);
    row("session", conversation.name ?? "none yet: it begins with your first message");
    if (conversation.role !== "") row("role", conversation.role);
    row("model", oneLine(await backendOf(workspace, conversation)));
    const { used, today } = await usageOf(workspace, conversation);
    if (used !== "") row("usage", used);
    if (today !== "") row("today", today);
    row("mode", config.get("mode") + (config.get("unattended") ? ", unattended" : ""));
    const runs = conversation.runs.list();
    const running = runs.filter(({ status }) => status === "running").length;
    row("runs", `${runs.length}, ${running} running; focus on #${focus.run}`);
    const commands = workspace.commands.of(conversation.name ?? "")?.running ?? [];
    for (const { id, line } of commands) row("command", `${id} runs: ${line}`);
    row("sessions", `${await sessions.count()} saved`);
    const parked = asks.list("pending").length;
    row("asks", parked === 0 ? "none waits" : `${parked} for you to answer: /asks`);
    row("jobs", await jobsAtAGlance(workspace));
  },
};

async function backendOf(workspace: Workspace, conversation: Conversation): Promise<string> {
  const { provider, base_url, model } = workspace.backendRequest();
  if (provider === "" && base_url === "" && model === "") return "none: /connect";
  try {
    const backend = await conversation.backend();
    return `${backend.provider}/${backend.model}`;
  } catch (error) {
    return errorMessage(error);
  }
}

/** What the session has used in all, and all agents of the worktree since midnight (UTC); empty for nothing. */
async function usageOf({ sessions, spending: { ledger } }: Workspace, { name }: Conversation) {
  const { summarise } = await import("../../usage/summary.ts");
  const text = (input: number, output: number, cost: number | null) =>
    input + output === 0 ? "" : `${count(input)} in, ${count(output)} out` +
      (cost === null ? "" : `, cost ${amount(cost)}`);
  const turns = name === undefined ? [] : sessions.read(name)?.turns ?? [];
  const sum = (key: string) => turns.reduce((all, { usage }) => all + (usage?.[key] ?? 0), 0);
  const costs = turns.flatMap(({ cost }) => cost ?? []);
  const cost = costs.length === 0 ? null : costs.reduce((all, each) => all + each, 0);
  const { total } = summarise(ledger, Date.parse(ledger.today()), "day");
  return {
    used: text(sum("prompt_tokens"), sum("completion_tokens"), cost),
    today: text(total.in, total.out, total.cost),
  };
}

/** How many jobs there are, and how many need attention. */
async function jobsAtAGlance(workspace: Workspace): Promise<string> {
  const { jobContext } = await import("../../jobs/context.ts");
  const jobs = jobContext(workspace).register.list();
  if (jobs.length === 0) return "none";
  const of = (status: string) => jobs.filter((job) => job.status === status);
  const running = of("executing").map(({ name }) => name);
  const counted = (number: number, state: string) => number === 0 ? [] : [`${number} ${state}`];
  return oneLine([
    String(jobs.length),
    ...running.length === 0 ? [] : [`running: ${running.join(" ")}`],
    ...counted(of("waiting_approval").length, "waiting for approval"),
    ...counted(of("proposed").length, "proposed"),
    ...counted(of("failed").length, "failed"),
  ].join(", "));
}

/** `/version` */
export const version: SlashCommand<object> = {
  parser: command("version", {}, "Show the version."),
  examples: ["/version"],
  run(_values, { output }) {
    output.line(`svc ${VERSION}`);
    return Promise.resolve();
  },
};

/** `/exit` */
export const exit: SlashCommand<object> = {
  parser: command("exit", {}, "Leave; the session stays saved."),
  examples: ["/exit"],
  run(_values, shell) {
    shell.left = true;
    return Promise.resolve();
  },
};
