import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "begin a new session",
  usage: ["clear"],
  aliases: ["new"],
  async run(_line, { conversation, focus, io }) {
    const before = conversation.name;
    await conversation.switchTo(undefined);
    focus.reset();
    if (before !== undefined) io.note(`Session ${before} stays saved: /session load ${before}`);
    io.note("A new session begins with your next message.");
  },
});
