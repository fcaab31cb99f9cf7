import { contentText, type RequestMessage } from "./completion.ts";
import { type Intent, parseRequest } from "./intents.ts";
import { IT } from "./operands.ts";
import {
  analysis,
  digest,
  type Exchange,
  isAnalysis,
  isDigest,
  isMemory,
  memory,
  report,
} from "./answers.ts";

/** The next message of the assistant: calls, or a text. */
export interface Answer {
  text: string;
  calls: Call[];
}

export interface Call {
  name: string;
  arguments: Record<string, unknown>;
}

/** The last line of every answer. */
export const FOOTER = "— demo model (rule-based stand-in, no language model)";

/** Begins what was piped in with a prompt; the rules look at the request alone. */
const PIPED = "\n\nThis was piped in with the prompt:\n";

/**
 * The next message of the demo model. It keeps no state: the last user message holds the request, and the
 * tool results after it show which steps are done.
 *
 * @param tools the request's `tools`, not validated.
 */
export function respond(messages: readonly RequestMessage[], tools: unknown): Answer {
  const last = messages.findLastIndex((message) => message.role === "user");
  const [text = ""] = contentText(messages[last]?.content).split(PIPED);
  const offered = toolNames(tools);
  if (isAnalysis(text)) return say(analysis(text));
  if (isMemory(messages)) return say(memory(text));
  if (isDigest(text, messages, offered.size)) return say(digest(messages));

  const intents = parseRequest(text);
  const rounds = progress(messages.slice(last + 1));
  const failed = rounds.at(-1)?.some((exchange) => exchange.failed) ?? false;
  const next = failed ? undefined : intents[rounds.length];
  const calls = next === undefined ? [] : toolCalls(next, messages);
  const missing = calls.find((call) => !offered.has(call.name));
  if (calls.length > 0 && missing === undefined) return { text: "", calls };

  const paragraphs = rounds.flatMap((exchanges, i) =>
    exchanges.map((exchange) => report(exchange, intents[i]))
  );
  if (missing !== undefined) {
    paragraphs.push(
      `For this I would need the tool ${missing.name}, and it is not offered to me here.`,
    );
  } else if (next !== undefined) {
    paragraphs.push(remark(next));
  }
  return say(paragraphs.join("\n\n"));
}

function say(text: string): Answer {
  return { text: `${text}\n\n${FOOTER}`, calls: [] };
}

function toolNames(tools: unknown): Set<unknown> {
  return new Set(Array.isArray(tools) ? tools.map((tool) => tool?.function?.name) : []);
}

/** The tool calls for an intent; none when the answer is only text. */
function toolCalls(intent: Intent, messages: readonly RequestMessage[]): Call[] {
  const named = (path: string) => path === IT ? spokenOf(messages) : path;
  const some = (key: string, path: string) =>
    path === "." || path === "" ? {} : { [key]: named(path) };
  switch (intent.kind) {
    case "list":
      return [{
        name: "list_dir",
        arguments: { path: named(intent.path), ...(intent.deep && { depth: 4 }) },
      }];
    case "read": {
      const { offset, limit } = intent;
      return intent.paths.map((path) => ({
        name: "file_read",
        arguments: { path: named(path), ...(offset && { offset, limit }) },
      }));
    }
    case "count":
      return intent.paths.map((path) => ({
        name: "file_read",
        arguments: { path: named(path), limit: 0 },
      }));
    case "find":
      return [{
        name: "grep",
        arguments: {
          pattern: intent.regex ? intent.text : escaped(intent.text),
          ...some("path", intent.path),
        },
      }];
    case "glob":
      return [{
        name: "glob",
        arguments: { pattern: intent.pattern, ...some("path", intent.path) },
      }];
    case "write":
      return [{
        name: "file_write",
        arguments: {
          path: named(intent.path),
          content: intent.content,
          ...(intent.append && { mode: "a" }),
        },
      }];
    case "edit":
      return [{
        name: "file_edit",
        arguments: {
          path: named(intent.path),
          old: intent.old,
          new: intent.new,
          ...(intent.all && { count: 0 }),
        },
      }];
    case "run":
      return [{
        name: "run_command",
        arguments: { command: intent.command, ...some("cwd", intent.cwd) },
      }];
    default:
      return [];
  }
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

/** The file that a search found last, or that a call named last. */
function spokenOf(messages: readonly RequestMessage[]): string {
  for (const { tool_calls, role, content } of messages.toReversed()) {
    const found = role === "tool" &&
      /^([^\s:][^:\n]*?)(?::\d+: |\n|$)/.exec(contentText(content))?.[1];
    if (found && /^[^#$.(].*\.\w+$/.test(found)) return found;
    for (const call of Array.isArray(tool_calls) ? tool_calls : []) {
      const { path } = callArguments(call);
      if (typeof path === "string" && path !== ".") return path;
    }
  }
  return "it";
}

/** The calls after the last user message with their results, round by round. */
function progress(messages: readonly RequestMessage[]): Exchange[][] {
  const rounds: Exchange[][] = [];
  for (const { role, tool_calls, tool_call_id, content } of messages) {
    if (Array.isArray(tool_calls) && tool_calls.length > 0) {
      rounds.push(tool_calls.map((call) => ({
        id: call?.id,
        tool: String(call?.function?.name),
        args: callArguments(call),
        result: "Error: there is no result",
        failed: true,
      })));
    } else if (role === "tool") {
      const exchange = rounds.at(-1)?.find(({ id }) => id === tool_call_id);
      if (exchange === undefined) continue;
      exchange.result = contentText(content);
      exchange.failed = FAILED.test(exchange.result);
    }
  }
  return rounds;
}

const FAILED = /^(?:Error:|permission denied|\[cancelled\])/i;

function callArguments(call: { function?: { arguments?: unknown } }): Record<string, unknown> {
  try {
    const args = JSON.parse(String(call?.function?.arguments));
    return typeof args === "object" && args !== null ? args : {};
  } catch {
    return {};
  }
}

const ABILITIES = `I follow a handful of rules, and these requests I understand:

- list the files in src
- read README.md, or: show lines 10 to 20 of main.ts
- how many lines does README.md have?
- where is TODO mentioned in src?
- find files named *.ts
- write "hello" to notes.txt
- replace "hello" with "goodbye" in notes.txt
- run \`ls -la\``;

function remark(intent: Intent): string {
  switch (intent.kind) {
    case "hello":
      return "Hello! I am the demo model: I answer through real tools, but I only know a few " +
        'rules. Try "list the files", or ask what I can do.';
    case "thanks":
      return "You are welcome!";
    case "help":
      return ABILITIES;
    case "unclear":
      return intent.question;
    default:
      return `That is beyond my rules, sorry. ${ABILITIES}`;
  }
}
