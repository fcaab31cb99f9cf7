import { nameOf } from "../../commands/names.ts";
import { errorMessage, nearest, usageError } from "../../platform/error.ts";
import { stripControl } from "../../platform/terminal.ts";
import type { SlashCommand } from "./table.ts";
import {
  argument,
  command,
  type InferValue,
  optional,
  string,
  withDefault,
} from "../../commands/options.ts";

const parser = command("tool", {
  name: optional(argument(nameOf("tools", "TOOL"))),
  json: withDefault(
    argument(string("JSON"), "The arguments as a JSON object, without quotes around it."),
    "{}",
  ),
}, "Run a tool yourself, under the policy and into the log.");

/** `/tool` */
export const tool: SlashCommand<InferValue<typeof parser>> = {
  parser,
  textAfter: { "": 1 },
  examples: ["/tool", '/tool file_read {"path": "README.md"}'],
  async run({ name, json }, shell) {
    const { conversation, focus, output, style } = shell;
    if (name === undefined) return await (await import("./help.ts")).listTools(shell);
    try {
      JSON.parse(json);
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
      engine.call(`/tool ${name} ${json}`, { name, arguments: json }, { signal });
    await shell.cancellable(async (signal) => {
      for await (const event of call(signal)) {
        if (event.type !== "tool_result" || event.run !== focus.run) continue;
        results.push({ text: stripControl(event.output), failed: event.is_error });
      }
    });
    for (const { text, failed } of results) output.line(failed ? style.red(`! ${text}`) : text);
  },
};
