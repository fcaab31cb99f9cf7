/**
 * Writes docs/tools.md from the definitions of the tools and `tool_notes.ts`: `deno task tools`.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findingTools } from "../../plugins/svc-core-mcp/src/found_tools.ts";
import { CORE_TOOLS } from "../../src/engine/tools/core.ts";
import type { ToolDefinition } from "../../src/plugins/api.ts";
import { BUNDLED } from "../../src/plugins/bundled.ts";
import { TOOL_NOTES, type ToolNotes } from "./tool_notes.ts";

const DOCUMENT = join(fileURLToPath(new URL("../..", import.meta.url)), "docs/tools.md");

const INTRODUCTION = `# Tools

The tools that svc brings. \`tools.allow\` and \`tools.deny\` choose among them, and \`tool_permission\`
decides by their categories ([security.md](security.md)): \`svc permissions\` shows what holds, and
\`/tool <name> <json>\` runs one in the terminal session. Plugins ([plugins.md](plugins.md)) and MCP
servers ([mcp.md](mcp.md)) add others. A turn whose task has a schema has the tool \`answer\`, too,
which takes the answer.

A result has at most \`tool_max_result_chars\` characters, and no more than fits the model's context; a
longer one keeps its beginning and its end, and names a file with the whole. Paths are relative to the
worktree, or absolute; the policy checks each of them.

This page is generated from the definitions of the tools and from
[tests/support/tool_notes.ts](../tests/support/tool_notes.ts) by \`deno task tools\`.
`;

/** A tool, and what registers it. */
interface Registered {
  tool: Omit<ToolDefinition, "handler">;
  owner: string;
}

/** The document as it has to be. */
export async function toolsDocument(): Promise<string> {
  return render(await registeredTools());
}

/** The document as it is. */
export function writtenToolsDocument(): string {
  return Deno.readTextFileSync(DOCUMENT);
}

/** A sentence for each parameter without a meaning, and for each note that is about nothing. */
export function toolGaps(tools: Registered[], notes = TOOL_NOTES): string[] {
  const known = new Map(tools.map(({ tool }) => [tool.name, tool.parameters.properties]));
  return [
    ...tools.flatMap(({ tool }) =>
      Object.keys(tool.parameters.properties)
        .filter((name) => meaningOf(tool, name, notes[tool.name]) === "")
        .map((name) => `the parameter ${name} of ${tool.name} has no meaning`)
    ),
    ...Object.entries(notes).flatMap(([name, { parameters = {} }]) => {
      const properties = known.get(name);
      if (properties === undefined) return [`there is no tool ${name}`];
      return Object.keys(parameters).filter((each) => !Object.hasOwn(properties, each))
        .map((each) => `${name} has no parameter ${each}`);
    }),
  ];
}

/** All tools of the core and of the bundled plugins, also those that a setting makes available. */
export async function registeredTools(): Promise<Registered[]> {
  const found: Registered[] = CORE_TOOLS.map((tool) => ({ tool, owner: "" }));
  for (const { manifest: { name: owner, provides: { tools = [] } }, load } of BUNDLED) {
    if (tools.length === 0) continue;
    const { register_tools } = await load();
    await register_tools?.({
      register: (tool) => void found.push({ tool, owner }),
      source: (make) => make({} as Parameters<typeof make>[0]),
    });
    if (owner !== "svc-core-mcp") continue;
    found.push(...findingTools(["…"], new Map()).map((tool) => ({ tool, owner })));
  }
  return found;
}

function render(tools: Registered[]): string {
  const rows = tools.map(({ tool, owner }) => [
    `[\`${tool.name}\`](#${tool.name})`,
    `\`${tool.permission}\``,
    tool.short ?? firstSentence(plain(tool.description)),
    owner === "" ? "" : `\`${owner}\``,
  ]);
  return [
    INTRODUCTION,
    table(["tool", "category", "what it does", "plugin"], rows),
    ...tools.map(({ tool }) => section(tool, TOOL_NOTES[tool.name] ?? {})),
  ].join("\n").trimEnd() + "\n";
}

function section(tool: Registered["tool"], about: ToolNotes): string {
  const { name, aliases = [], param_aliases = {}, parameters, needs_setting } = tool;
  const { properties, required = [] } = parameters;
  const rows = Object.entries(properties).map(([parameter, schema]) => [
    `\`${parameter}\`${required.includes(parameter) ? "" : "?"}`,
    typeOf(schema),
    meaningOf(tool, parameter, about),
  ]);
  const other = [
    ...aliases.map((alias) => `\`${alias}\``),
    ...Object.entries(param_aliases).map(([alias, of]) => `\`${alias}\` for \`${of}\``),
  ];
  const notes = [
    ...about.notes ?? [],
    ...other.length > 0 ? [`Other names: ${other.join(", ")}.`] : [],
    ...needs_setting === undefined
      ? []
      : [`Offered where the setting \`${needs_setting}\` has entries.`],
  ];
  return [
    `## ${name}\n`,
    `${plain(tool.description)}\n`,
    table(["parameter", "type", "meaning"], rows),
    ...notes.map((note) => `- ${note}`),
    ...notes.length > 0 ? [""] : [],
  ].join("\n");
}

/** A text of a definition, with what Markdown would take for markup as it is. */
function plain(text: string): string {
  return text.replaceAll(/(?<!`)[*<_]/g, "\\$&");
}

function meaningOf(
  { parameters }: Registered["tool"],
  name: string,
  about: ToolNotes | undefined,
): string {
  const schema = parameters.properties[name] as { description?: string };
  return about?.parameters?.[name] ?? plain(schema.description ?? "");
}

function typeOf(schema: unknown): string {
  const { type = "any", enum: values, items } = schema as {
    type?: string;
    enum?: string[];
    items?: unknown;
  };
  if (values !== undefined) return values.map((value) => `\`${value}\``).join(", ");
  return type === "array" ? `array of ${typeOf(items ?? {})}` : type;
}

function firstSentence(description: string): string {
  return description.split(/(?<=\.)\s/, 1)[0]!;
}

function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line), ""].join("\n");
}

if (import.meta.main) {
  const gaps = toolGaps(await registeredTools());
  if (gaps.length > 0) throw new Error(gaps.join("\n"));
  Deno.writeTextFileSync(DOCUMENT, await toolsDocument());
}
