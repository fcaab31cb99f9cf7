import type { ChatMessage, WireTool } from "../plugins/api.ts";
import type { BackendError } from "./failure.ts";

/** Messages of backends whose model, or server, takes no tools. */
const REFUSALS = [
  String.raw`(?:does not|doesn't|do not|cannot|not) support\b.{0,30}\b(?:tools?|functions?)\b`,
  String
    .raw`\b(?:tools?|functions?)\b.{0,40}\b(?:not|un)[ -]?(?:supported|available|allowed|enabled)`,
  String.raw`support tool use|tool choice requires --enable|tools param requires --jinja`,
  String
    .raw`(?:unknown|unrecogni[sz]ed|unexpected|extra|unsupported)\b.{0,40}["'\x60]tools["'\x60]`,
];
const REFUSED = RegExp(REFUSALS.join("|"), "i");
/** A server without the template of its model sends 500. */
const STATUS = [400, 404, 422, 500, 501];

/** Whether a request was rejected because it offers tools. */
export function refusesTools({ status, message }: BackendError): boolean {
  return STATUS.includes(status) && REFUSED.test(message);
}

/**
 * A conversation for a model that takes no tools: the system prompt tells of them, calls are text, and results are
 * messages of the user.
 */
export function textMessages(messages: ChatMessage[], tools: readonly WireTool[]): ChatMessage[] {
  const [first, ...rest] = messages;
  const system = first?.role === "system" ? first : undefined;
  const prompt = [system?.content ?? "", toolsPrompt(tools)].filter((text) => text !== "");
  const made: ChatMessage[] = [{ role: "system", content: prompt.join("\n\n") }];
  const names = new Map<string, string>();
  for (const message of system === undefined ? messages : rest) {
    const { role, content, tool_calls, tool_call_id, reasoning_details: _, ...others } = message;
    const { images = [] } = message;
    for (const call of tool_calls ?? []) names.set(call.id, call.function.name);
    const last = made.at(-1)!;
    if (role !== "tool") {
      const calls = (tool_calls ?? []).map((call) => written(call.function));
      const text = [content ?? "", ...calls].filter((each) => each !== "").join("\n");
      made.push({ ...others, role, content: text });
      continue;
    }
    const name = names.get(tool_call_id ?? "") ?? "";
    const result = `<tool_response name=${JSON.stringify(name)}>\n${
      content ?? ""
    }\n</tool_response>`;
    if (last.role === "user" && last.content!.startsWith("<tool_response ")) {
      last.content += `\n${result}`;
    } else made.push({ role: "user", content: result });
    if (images.length > 0) made.at(-1)!.images = [...made.at(-1)!.images ?? [], ...images];
  }
  return made;
}

function written({ name, arguments: args }: { name: string; arguments: string }): string {
  return `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${args}}\n</tool_call>`;
}

function toolsPrompt(tools: readonly WireTool[]): string {
  if (tools.length === 0) return "";
  const lines = tools.map(({ function: { name, description, parameters } }) => {
    const { properties, required = [] } = parameters;
    const list = Object.entries(properties).map(([key, schema]) => {
      const type = Array.isArray(schema.enum)
        ? schema.enum.map((each) => JSON.stringify(each)).join("|")
        : [schema.type ?? "any"].flat().join("|");
      const about = typeof schema.description === "string" ? ` (${schema.description})` : "";
      return `${key}${required.includes(key) ? "" : "?"}: ${type}${about}`;
    });
    return `- ${name} {${list.join(", ")}}: ${description}`;
  });
  return `## Tools\n\nTo call a tool, end your message with the call, on lines of its own, and wait for its result in ` +
    `the next message:\n\n${
      written({ name: "<tool>", arguments: '{"<parameter>": "<value>"}' })
    }\n\n` +
    `"?" marks optional parameters. A message without a call is your answer.\n\n${
      lines.join("\n")
    }`;
}
