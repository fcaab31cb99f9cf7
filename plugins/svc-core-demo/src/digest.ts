import { contentText, type RequestMessage } from "./chat_request.ts";

/** Longest excerpt of a message in a digest, in characters. */
const EXCERPT = 120;

/** Whether the request wants a summary of the conversation, as compaction does, and not of a file. */
export function isDigest(
  text: string,
  messages: readonly RequestMessage[],
  tools: number,
): boolean {
  if (tools > 0) return wantsSummary(text) && COMMAND.test(text);
  const system = messages.find((message) => message.role === "system");
  return wantsSummary(text) || wantsSummary(contentText(system?.content));
}

/** With tools on offer, a summary is only what a request is for, not what it mentions. */
const COMMAND =
  /^\W*(?:(?:please|now|can you|could you|give me|write|create|make|a|short|brief|the) )*(?:summari[sz]e|summary|condense|compact)\b/i;

function wantsSummary(text: string): boolean {
  const start = text.slice(0, 400);
  return /\b(?:summari[sz]e|summary|condense|compact)\b/i.test(start) &&
    /\b(?:conversation|session|chat|discussion|transcript|history|so far|exchange|turns|messages)\b/i
      .test(start);
}

/** What was asked and which tools ran. */
export function digest(messages: readonly RequestMessage[]): string {
  const asked = messages.filter((message) => message.role === "user")
    .map((message) => contentText(message.content))
    .filter((text) => text !== "" && !wantsSummary(text));
  const tools = new Map<string, number>();
  for (const { tool_calls } of messages) {
    for (const call of Array.isArray(tool_calls) ? tool_calls : []) {
      const name = String(call?.function?.name);
      tools.set(name, (tools.get(name) ?? 0) + 1);
    }
  }
  const requests = asked.length === 0 ? transcript(messages) : asked.slice(-20).map(excerpt);
  const used = [...tools].map(([name, count]) => count === 1 ? name : `${name} ${count} times`);
  return "Summary of the conversation. The user asked:\n" +
    requests.map((request) => `- ${request}\n`).join("") +
    `Tools used: ${used.length === 0 ? "none" : used.join(", ")}.`;
}

/** Whether the service wants a log summed up, for a compaction or as the memory of a role, team or job. */
export function isMemory(messages: readonly RequestMessage[]): boolean {
  const system = messages.find((message) => message.role === "system");
  return contentText(system?.content).startsWith("You keep the memory of ");
}

/** What is known of earlier requests, and those of the log that follows it. */
export function memory(text: string): string {
  const at = text.lastIndexOf("The next part of the log:\n\n");
  const known = Array.from(text.slice(0, at).matchAll(/^- (.+)$/gm), ([, line]) => line!);
  const asked = Array.from(
    text.slice(at).matchAll(/^\[user\] (.+)$/gm),
    ([, line]) => excerpt(line!),
  );
  const requests = [...new Set([...known, ...asked])].slice(-20);
  return `The user asked:\n${requests.map((request) => `- ${request}`).join("\n")}`;
}

/** The first lines of a conversation that came as one text. */
function transcript(messages: readonly RequestMessage[]): string[] {
  const text = contentText(messages.findLast((message) => message.role === "user")?.content);
  const lines = text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  return lines.slice(0, 10).map(excerpt);
}

function excerpt(text: string): string {
  const line = text.trim().replace(/\s+/g, " ");
  return line.length > EXCERPT ? `${line.slice(0, EXCERPT).toWellFormed()}…` : line;
}

/** Whether the service asks for its one-line insight on a tool result (`tool_analysis`). */
export function isAnalysis(text: string): boolean {
  return /^A tool was called: /.test(text);
}

export function analysis(text: string): string {
  const name = /^A tool was called: (\S+)/.exec(text)?.[1] ?? "the tool";
  const result = text.slice(text.indexOf("\n\n") + 2).trim();
  const lines = result.split("\n");
  return `${name} gave ${lines.length} ${lines.length === 1 ? "line" : "lines"}: ${
    excerpt(lines[0]!)
  }`;
}
