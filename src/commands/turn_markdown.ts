import type { TurnEvent, TurnResult } from "../engine/events.ts";
import { stripControl } from "../platform/terminal.ts";
import { code, fence, quote } from "../sessions/export.ts";
import { amount } from "../usage/ledger.ts";

/** Collects the files that calls of the category `edit` change, by the arguments that name them. */
export function changedFiles(): { see(event: TurnEvent): void; files: Set<string> } {
  const calls = new Map<string, string>();
  const files = new Set<string>();
  return {
    files,
    see(event) {
      if (event.type === "tool_call" && event.category === "edit") {
        const { path } = event.arguments;
        if (typeof path === "string") calls.set(`${event.run} ${event.id}`, path);
      } else if (event.type === "tool_result" && !event.is_error) {
        const path = calls.get(`${event.run} ${event.id}`);
        if (path !== undefined) files.add(path);
      }
    },
  };
}

/** The result of a turn as Markdown, for the summary of a CI job. */
export function resultMarkdown(result: TurnResult, files: Iterable<string>): string {
  const { content, status, reason, errors, denied, data } = result;
  const rows = facts(result).map(([name, value]) => `| ${name} | ${value} |`);
  return [
    `## svc: ${status}${reason === "" ? "" : `, ${reason}`}`,
    ...content.trim() === "" ? [] : [answer(stripControl(content))],
    ["| | |", "| --- | --- |", ...rows].join("\n"),
    ...list("Errors", errors, ({ message }) => word(message)),
    ...list("Refused calls", denied, ({ tool, reason }) => `${word(tool)}: ${word(reason)}`),
    ...list("Changed files", [...files].sort(), word),
    ...data === undefined
      ? []
      : ["### Data", fence(stripControl(JSON.stringify(data, null, 2)), "json")],
  ].join("\n\n") + "\n";
}

/**
 * What the model wrote. In a quotation nothing of it can stay open. With HTML or an image, which is loaded from
 * where the model says when a reader looks at it, it is shown as it is written.
 */
function answer(text: string): string {
  return /!\[|<[a-z/!?]/i.test(text) ? fence(text) : quote(text);
}

function facts(result: TurnResult): [name: string, value: string][] {
  const { total_usage: usage, cost, tool_calls: calls, verified, verdict } = result;
  const { prompt_tokens: read, cached_tokens: cached, completion_tokens: written } = usage;
  const failed = calls.filter((call) => call.is_error).length;
  const rows: [string, string | undefined][] = [
    ["verified", verified === undefined ? undefined : verified ? "yes" : "no"],
    [
      "review",
      verdict && `${verdict.passed ? "passed" : "failed"} after ${verdict.rounds} rounds`,
    ],
    ["cost", cost === null ? undefined : amount(cost)],
    [
      "tokens",
      read === undefined && written === undefined
        ? undefined
        : `${read ?? 0} read${cached ? ` (${cached} cached)` : ""}, ${written ?? 0} written`,
    ],
    ["tool calls", `${calls.length}${failed === 0 ? "" : ` (${failed} failed)`}`],
    ["time", `${result.duration.toFixed(1)} s`],
    ["model", word(`${result.provider}/${result.model}`)],
    ["session", word(result.session)],
  ];
  return rows.flatMap(([name, value]) => value === undefined ? [] : [[name, value]]);
}

function list<T>(title: string, entries: T[], line: (entry: T) => string): string[] {
  if (entries.length === 0) return [];
  return [`### ${title}`, entries.map((entry) => `- ${line(entry)}`).join("\n")];
}

/** A text as inline code, also in a cell of a table. */
function word(text: string): string {
  return code(stripControl(text)).replaceAll("|", "\\|");
}
