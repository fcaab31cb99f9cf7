import { structuredPatch } from "diff";
import { stripControl } from "../../platform/terminal.ts";
import type { ToolArguments } from "../../plugins/api.ts";
import { diffLine } from "./markdown/highlight.ts";
import type { Style } from "./style.ts";
import { fit } from "./width.ts";
import { plural } from "./facts.ts";

/** Lines of a change that are shown without being asked for. */
const MAX_LINES = 12;
/** Milliseconds after which old and new text are shown one after the other. */
const TIMEOUT = 200;

/** What an edit changed, as lines of a diff; empty for calls that say nothing of it. */
export function editPreview(args: ToolArguments, style: Style, columns: number): string[] {
  const lines = changedLines(args);
  const shown = lines.length > MAX_LINES + 1 ? lines.slice(0, MAX_LINES) : lines;
  const rest = lines.length - shown.length;
  return [
    ...shown.map((line) => diffLine(fit(line, columns), style)),
    ...(rest === 0 ? [] : [style.dim(`... ${plural(rest, "more line")}`)]),
  ];
}

function changedLines(args: ToolArguments): string[] {
  const { old, new: text, content } = args;
  if (typeof old === "string" && typeof text === "string") return compare(clean(old), clean(text));
  return typeof content === "string" && content !== "" ? marked(clean(content), "+") : [];
}

function compare(before: string, after: string): string[] {
  const options = { context: 2, timeout: TIMEOUT };
  const patch = structuredPatch("", "", before, after, "", "", options);
  if (patch === undefined) return [...marked(before, "-"), ...marked(after, "+")];
  return patch.hunks.flatMap(({ lines }, at) => [...(at === 0 ? [] : ["⋮"]), ...lines])
    .filter((line) => !line.startsWith("\\"));
}

function marked(text: string, sign: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n").map((line) => sign + line);
}

function clean(text: string): string {
  return stripControl(text).replaceAll("\t", "    ");
}
