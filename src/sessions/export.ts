import { stripControl } from "../platform/terminal.ts";
import type { Part, SessionDocument, Turn } from "./schema.ts";

/**
 * A whole session as Markdown: every turn with its parts, the errors, the permission decisions, and links to
 * the exports of its parent and sub-sessions (specification 4.4). Text of a part cannot end its Markdown
 * block, and terminal control characters are removed.
 */
export function exportMarkdown(document: SessionDocument): string {
  const blocks = [
    `# Session ${code(document.session_name)}`,
    facts(document),
    ...document.turns.flatMap(turnBlocks),
    ...section(
      "Errors",
      document.errors,
      ({ code: status, message, timestamp }) => `- ${timestamp}, code ${status}: ${code(message)}`,
    ),
    ...section("Permissions", document.permissions, (entry) => {
      const path = !entry.path ? "" : ` on ${code(entry.path)}`;
      const grant = [
        entry.scope,
        entry.covers && code(entry.covers),
        entry.granted_by && `by ${code(entry.granted_by)}`,
        entry.origin && `written as ${entry.origin}`,
      ].filter(Boolean).join(", ");
      return `- ${entry.timestamp}: ${code(entry.tool)}${path}: ${entry.action}, ` +
        `${entry.decision}${grant === "" ? "" : ` (${grant})`}`;
    }),
  ];
  return stripControl(`${blocks.join("\n\n")}\n`);
}

function facts(document: SessionDocument): string {
  const { session_id, role, created_at, updated_at, version, parent_id, sub_sessions } = document;
  return [
    session_id && `- id: ${code(`#${session_id}`)}`,
    role && `- role: ${code(role)}`,
    `- created: ${created_at}`,
    `- updated: ${updated_at}`,
    version && `- version: ${version}`,
    parent_id && `- parent: ${link(parent_id)}`,
    sub_sessions.length > 0 && `- sub-sessions: ${sub_sessions.map(link).join(", ")}`,
  ].filter(Boolean).join("\n");
}

function turnBlocks(turn: Turn): string[] {
  const { index, status, started_at, ended_at, model, provider, mode, reasoning } = turn;
  const about = [
    ended_at === "" ? `since ${started_at}` : `${started_at} to ${ended_at}`,
    model && `model ${code(model)}`,
    provider && `provider ${code(provider)}`,
    mode && `mode ${code(mode)}`,
    reasoning !== false && reasoning !== "" && `reasoning ${code(String(reasoning))}`,
  ].filter(Boolean).join(", ");
  return [`## Turn ${index}: ${status}`, about, ...turn.parts.map(partBlocks).flat()];
}

function partBlocks(part: Part): string[] {
  switch (part.type) {
    case "user":
      return [
        heading("User", part),
        quote(part.text),
        ...attached(part),
      ];
    case "text":
      return [heading("Assistant", part), quote(part.text)];
    case "thinking":
      return [heading("Thinking", part), quote(part.text)];
    case "system":
      return [heading("System note", part), quote(part.text)];
    case "command":
      return [
        heading("Command", part),
        fence(part.text),
        ...(part.compact_from === undefined ? [] : [
          `The context from here on starts at turn ${part.compact_from}${
            part.compact_part === undefined ? "" : `, part ${part.compact_part + 1}`
          }.`,
        ]),
        ...(part.results_max === undefined ? [] : [
          `Results of tool calls up to part ${part.results_part} of turn ${part.results_from} are sent with at ` +
          `most ${part.results_max} characters.`,
        ]),
        ...(part.summary === undefined ? [] : ["Summary:", quote(part.summary)]),
      ];
    case "tool":
      return [
        heading(`Tool ${code(part.name)}${part.is_error ? ", failed" : ""}`, part),
        fence(JSON.stringify(part.input, null, 2), "json"),
        ...(part.analysis === undefined ? [] : [quote(part.analysis)]),
        fence(part.output),
        ...attached(part),
      ];
  }
}

function attached({ attachments = [] }: Part & { type: "user" | "tool" }): string[] {
  return attachments.map(({ name, bytes }) => `Attached: ${code(name)}, ${bytes} bytes`);
}

function section<T>(title: string, entries: T[], line: (entry: T) => string): string[] {
  return entries.length === 0 ? [] : [`## ${title}`, entries.map(line).join("\n")];
}

function heading(title: string, { timestamp }: Part): string {
  return `### ${title}\n\n${timestamp}`;
}

/** A quotation of Markdown text. Its end closes all blocks that are open in it. */
export function quote(text: string): string {
  return text.split(/\r\n|\r|\n/).map((line) => `> ${line}`.trimEnd()).join("\n");
}

/** A code block whose fence is longer than any run of backticks inside. */
export function fence(text: string, language = ""): string {
  const ticks = "`".repeat(Math.max(3, longestRun(text) + 1));
  return `${ticks}${language}\n${text}${text.endsWith("\n") ? "" : "\n"}${ticks}`;
}

/** Inline code, on one line. */
export function code(text: string): string {
  const line = text.replace(/\s*[\r\n]+\s*/g, " ");
  const ticks = "`".repeat(longestRun(line) + 1);
  // Markdown removes one space on each side; it separates the fence from backticks of the text.
  const space = /^[` ]|[` ]$/.test(line) || line === "" ? " " : "";
  return `${ticks}${space}${line}${space}${ticks}`;
}

function longestRun(text: string): number {
  return (text.match(/`+/g) ?? []).reduce((most, { length }) => Math.max(most, length), 0);
}

function link(name: string): string {
  return `[${name.replace(/[\\[\]`<>*_!]/g, "\\$&")}](${
    encodeURIComponent(name).replace(/[()']/g, (c) => `%${c.charCodeAt(0).toString(16)}`)
  }.md)`;
}
