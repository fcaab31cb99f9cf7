import { errorMessage, nearest, usageError } from "../../platform/error.ts";
import { stripControl } from "../../platform/terminal.ts";
import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "run a tool yourself, under the same policy",
  usage: ["tool", "tool <name> <json arguments>"],
  complete: { "": "tools" },
  async run(line, shell) {
    const [name] = line.words;
    const { conversation, focus, output, style } = shell;
    if (name === undefined) {
      const { findCommand } = await import("./table.ts");
      const { readLine } = await import("../words.ts");
      return await (await findCommand("help"))!.command.run(readLine("tool"), shell);
    }
    const typed = line.rest(1) || "{}";
    try {
      JSON.parse(typed);
    } catch (error) {
      throw usageError(
        "usage",
        `The arguments are no JSON: ${errorMessage(error)}.`,
        'Such as: /tool file_read {"path": "README.md"}',
      );
    }
    const { engine } = await conversation.agent(focus.run);
    const tools = await shell.cancellable((signal) => engine.tools(signal));
    if (tools.find(name) === undefined) {
      const guess = nearest(name, tools.list().map((tool) => tool.name));
      throw usageError(
        "unknown_tool",
        `There is no tool ${name}.`,
        guess === undefined ? "See: /help tool" : `Did you mean ${guess}?`,
      );
    }
    const results: { text: string; failed: boolean }[] = [];
    const call = (signal: AbortSignal) =>
      engine.call(`/tool ${name} ${typed}`, { name, arguments: typed }, { signal });
    await shell.cancellable(async (signal) => {
      for await (const event of call(signal)) {
        if (event.type !== "tool_result" || event.run !== focus.run) continue;
        results.push({ text: stripControl(event.output), failed: event.is_error });
      }
    });
    for (const { text, failed } of results) output.line(failed ? style.red(`! ${text}`) : text);
  },
});
