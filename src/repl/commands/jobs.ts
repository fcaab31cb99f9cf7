import { slashCommand } from "./command.ts";

const GATES = ["approve", "reject", "enable", "disable", "stop"] as const;
const NAMED = ["show", "run", ...GATES, "edit", "remove"] as const;

export const command = slashCommand({
  summary: "named tasks that run by themselves",
  usage: [
    "jobs [list|status]",
    "jobs show <name>",
    "jobs add <name> --cron <expr>|--interval <seconds>|--at <time> [options]",
    "jobs add-supervisor <name> --interval <seconds> --task <text>",
    `jobs ${GATES.join("|")} <name>`,
    "jobs edit <name>",
    "jobs remove <name>",
    "jobs run <name> [--no-retry] [--verbose]",
    "jobs daemon [status|stop] [--tick <seconds>] [--quiet] [--detach]",
  ],
  complete: {
    "": ["list", "status", "add", "add-supervisor", "daemon", ...NAMED],
    daemon: ["status", "stop"],
    ...Object.fromEntries(NAMED.map((action) => [action, "jobs" as const])),
  },
  flags: {
    "--cron": [],
    "--interval": [],
    "--at": [],
    "--prompt": [],
    "--file": "files",
    "--session": "sessions",
    "--mode": "modes",
    "--provider": "providers",
    "--model": "models",
    "--role": "roles",
    "--system-prompt": [],
    "--tools-deny": "tools",
    "--tool-permission": [],
    "--retries": [],
    "--backoff": [],
    "--timeout": [],
    "--tick": [],
    "--quiet": true,
    "--detach": true,
    "--require-approval": true,
    "--approve-model": true,
    "--approval": ["auto"],
    "--task": [],
    "--no-retry": true,
    "--verbose": true,
    "--output": ["text", "json"],
  },
  lends: ({ words: [action] }) => action === "edit",
  async run({ words }, shell) {
    const [{ runTwin }, { jobs }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/jobs/jobs.ts"),
    ]);
    await runTwin(jobs, ["jobs", ...(words.length === 0 ? ["list"] : words)], shell);
  },
});
