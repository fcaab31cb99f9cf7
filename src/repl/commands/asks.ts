import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "questions that agents have parked",
  usage: ["asks [list [all|pending|answered]]", "asks show <id>", "asks answer <id> <text>"],
  complete: {
    "": ["list", "show", "answer"],
    list: ["all", "pending", "answered"],
    show: "asks",
    answer: "asks",
  },
  async run(line, shell) {
    const [{ runTwin }, { asks }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/asks.ts"),
    ]);
    const [action = "list", id] = line.words;
    const answer = action === "answer" && id !== undefined ? line.rest(2) : "";
    // Behind "--" an answer may begin with a dash.
    const words = answer === "" ? line.words.slice(1) : ["--", id!, answer];
    await runTwin(asks, ["asks", action, ...words], shell);
  },
});
