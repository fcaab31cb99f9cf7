import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "session, model, runs, sessions and parked questions at a glance",
  usage: ["status"],
  run(_line, { workspace, conversation, focus, output }) {
    const { config, sessions, asks, paths } = workspace;
    const { provider, model } = workspace.backendRequest();
    const row = (name: string, value: string) => output.line(`${name.padEnd(12)}${value}`);
    row("worktree", paths.worktree);
    row("session", conversation.name ?? "none yet: it begins with your first message");
    if (conversation.role !== "") row("role", conversation.role);
    row("model", [provider, model].filter((word) => word !== "").join("/") || "none: /connect");
    row("mode", config.get("mode") + (config.get("unattended") ? ", unattended" : ""));
    const runs = conversation.runs.list();
    const running = runs.filter(({ status }) => status === "running").length;
    row("runs", `${runs.length}, ${running} running; focus on #${focus.run}`);
    row("sessions", `${sessions.list().length} saved`);
    const parked = asks.list("pending").length;
    row("asks", parked === 0 ? "none waits" : `${parked} for you to answer: /asks`);
    return Promise.resolve();
  },
});
