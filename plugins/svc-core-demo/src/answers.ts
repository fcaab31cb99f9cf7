import { contentText, type RequestMessage } from "./completion.ts";
import type { Intent } from "./intents.ts";

/** A tool call and its result. */
export interface Exchange {
  id: unknown;
  tool: string;
  args: Record<string, unknown>;
  result: string;
  failed: boolean;
}

/** Maximum lines of a result in an answer. */
const SHOWN = 20;

/** A few sentences about the result of a call, given the request. */
export function report(exchange: Exchange, intent: Intent | undefined): string {
  const { tool, args, result, failed } = exchange;
  if (failed) return failure(exchange);
  switch (tool) {
    case "file_read":
      return intent?.kind === "count" ? count(exchange) : reading(exchange);
    case "list_dir":
      return listing(exchange);
    case "glob":
      return matches(result, `match ${args.pattern}`, "file", "files");
    case "grep":
      return search(exchange, intent?.kind === "find" ? intent.text : String(args.pattern));
    case "file_write":
      return `Done. ${capital(result.split("\n")[0]!)}.`;
    case "file_edit":
      return `Done. ${result.split("\n").map(capital).join(". ").replace(/\.?$/, ".")}`;
    case "run_command":
      return command(exchange);
    default:
      return `${tool} answered:\n\n${block(result.split("\n"))}`;
  }
}

function failure({ tool, args, result }: Exchange): string {
  const what = args.path ?? args.command ?? args.pattern;
  const target = what === undefined ? "" : ` for ${what}`;
  const reason = result.replace(/^Error:\s*/, "").trim();
  const refused = /^permission denied|declined/i.test(reason);
  // The sentences after the first one of a denial are advice to a model.
  const said = (refused ? reason.split(". ")[0]! : reason).replace(/\.$/, "");
  const kind = refused ? "was not permitted" : "did not work";
  return `That ${kind}: the call of ${tool}${target} came back with "${said}". I left it at that.`;
}

interface Header {
  lines: number;
  chars: number;
}

function header(result: string): Header | undefined {
  const match = /^# .* - (\d+) lines?, (\d+) chars?/.exec(result);
  return match === null ? undefined : { lines: Number(match[1]), chars: Number(match[2]) };
}

function count({ args, result }: Exchange): string {
  const size = header(result);
  if (size === undefined) return `I could not count ${args.path}: ${result.split("\n")[0]}`;
  return `${args.path} has ${plural(size.lines, "line", "lines")} (${
    plural(size.chars, "character", "characters")
  }).`;
}

function reading({ args, result }: Exchange): string {
  const size = header(result);
  const [first, ...rest] = result.split("\n");
  if (size === undefined) {
    return `This is what ${args.path} gave:\n\n${block([first!, ...rest])}`;
  }
  const facts = `${args.path} has ${plural(size.lines, "line", "lines")} and ${
    plural(size.chars, "character", "characters")
  }.`;
  const lines = rest.map((line) => line.replace(/^\d+\|/, ""));
  if (size.chars === 0 || lines.length === 0) return facts;
  const window = / \(showing (\d+)-(\d+)\)$/.exec(first!);
  const begin = window ? ` Lines ${window[1]} to ${window[2]}` : " It";
  const verb = window ? "read" : lines.length > SHOWN ? "begins" : "reads";
  return `${facts}${begin} ${verb}:\n\n${block(lines)}`;
}

function listing({ args, result }: Exchange): string {
  const lines = result.split("\n").filter((line) => line.trim() !== "");
  const where = args.path === "." ? "This folder" : String(args.path);
  if (result.startsWith("(empty")) return `${where} is empty.`;
  const entries = lines.filter((line) => !line.startsWith("... ("));
  const folders = entries.filter((line) => line.endsWith("/")).length;
  const files = entries.length - folders;
  return `${where} holds ${plural(folders, "folder", "folders")} and ${
    plural(files, "file", "files")
  }:\n\n${block(lines)}`;
}

function search({ args, result }: Exchange, text: string): string {
  const where = args.path === undefined ? "" : ` in ${args.path}`;
  const lines = result.split("\n").filter((line) => /:\d+: /.test(line));
  if (lines.length === 0) return `"${text}" is mentioned nowhere${where}.`;
  const files = new Set(lines.map((line) => line.slice(0, line.search(/:\d+: /))));
  return `"${text}" is on ${plural(lines.length, "line", "lines")} of ${
    plural(files.size, "file", "files")
  }${where}:\n\n${block(result.split("\n"))}`;
}

function matches(result: string, what: string, one: string, many: string): string {
  if (result.startsWith("(no matches")) return `No ${many} ${what}.`;
  const lines = result.split("\n").filter((line) => !line.startsWith("... ("));
  return `${plural(lines.length, one, many)} ${what.replace(/^match/, "matching")}:\n\n${
    block(result.split("\n"))
  }`;
}

function command({ args, result }: Exchange): string {
  const lines = result.split("\n");
  const exit = lines.findIndex((line) => /^exit \d+$/.test(line));
  const code = lines[exit]?.slice(5);
  const output = lines.slice(exit + 1);
  const outcome = code === undefined
    ? ""
    : code === "0"
    ? " ran and ended well (exit 0)"
    : ` ran and failed (exit ${code})`;
  const printed = output.join("\n").trim();
  const silent = printed === "" || printed === "(no output)";
  return `\`${args.command}\`${outcome}${
    silent ? ", without any output." : `:\n\n${block(output)}`
  }`;
}

/** Lines as a code block of limited length. */
function block(lines: string[]): string {
  const shown = lines.slice(0, SHOWN).join("\n");
  const more = lines.length > SHOWN ? `\n… and ${lines.length - SHOWN} more lines` : "";
  // The fence is longer than any in the text itself.
  const longest = Math.max(2, ...(shown.match(/`{3,}/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${shown}${more}\n${fence}`;
}

function plural(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Maximum length of an excerpt, in characters. */
const EXCERPT = 120;

/** Whether the request is for a summary of the conversation, as in compaction, and not of a file. */
export function isDigest(
  text: string,
  messages: readonly RequestMessage[],
  tools: number,
): boolean {
  if (tools > 0) return wantsSummary(text) && COMMAND.test(text);
  const system = messages.find((message) => message.role === "system");
  return wantsSummary(text) || wantsSummary(contentText(system?.content));
}

/** With tools on offer, the request has to start with the word for a summary. */
const COMMAND =
  /^\W*(?:(?:please|now|can you|could you|give me|write|create|make|a|short|brief|the) )*(?:summari[sz]e|summary|condense|compact)\b/i;

function wantsSummary(text: string): boolean {
  const start = text.slice(0, 400);
  return /\b(?:summari[sz]e|summary|condense|compact)\b/i.test(start) &&
    /\b(?:conversation|session|chat|discussion|transcript|history|so far|exchange|turns|messages)\b/i
      .test(start);
}

/** A list of the requests and of the tools that ran. */
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

/** Whether svc asks for the memory of a role, team or job. */
export function isMemory(messages: readonly RequestMessage[]): boolean {
  const system = messages.find((message) => message.role === "system");
  return contentText(system?.content).startsWith("You keep the memory of ");
}

/** The requests of the earlier memory, and those of the log after it. */
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

/** The first lines of a conversation that was sent as one text. */
function transcript(messages: readonly RequestMessage[]): string[] {
  const text = contentText(messages.findLast((message) => message.role === "user")?.content);
  const lines = text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  return lines.slice(0, 10).map(excerpt);
}

function excerpt(text: string): string {
  const line = text.trim().replace(/\s+/g, " ");
  return line.length > EXCERPT ? `${line.slice(0, EXCERPT).toWellFormed()}…` : line;
}

/** Whether svc asks for the one-line insight on a tool result (`tool_analysis`). */
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
