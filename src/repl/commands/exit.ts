import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "leave; the session stays saved",
  usage: ["exit"],
  aliases: ["quit", "q"],
  run(_line, shell) {
    shell.left = true;
    return Promise.resolve();
  },
});
