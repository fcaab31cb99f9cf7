import type { ToolDefinition } from "../../../src/plugins/api.ts";

/** Tools of one result with their schemas. */
const MOST = 8;
/** Characters of a result where the context sets no limit. */
const MAX_RESULT = 20_000;

/**
 * `mcp_find` and `mcp_call`, by which a model reaches tools whose schemas are not sent with each request (setting
 * `mcp.defer`). What is found is in a result, so the tools of the requests stay the same, and with them the part of a
 * request that backends cache. A backend may refuse calls of tools that it was not told of, so `mcp_call` makes them.
 *
 * @param servers names of the servers whose tools are found
 * @param tools the imported tools by name
 */
export function findingTools(
  servers: string[],
  tools: ReadonlyMap<string, ToolDefinition>,
): ToolDefinition[] {
  return [
    {
      name: "mcp_find",
      description:
        `Find tools of the MCP servers ${servers.join(", ")} by words that their names ` +
        "and descriptions may have. The result has their parameters; call them with mcp_call.",
      permission: "mcp",
      read_only: true,
      confirm: false,
      parameters: {
        type: "object",
        properties: { query: { type: "string" } },
        required: ["query"],
      },
      handler: ({ query }, { max_result = MAX_RESULT }) =>
        listing(found(query, [...tools.values()]), max_result),
    },
    {
      name: "mcp_call",
      description: "Call a tool that mcp_find has found.",
      permission: "mcp",
      read_only: true,
      confirm: false,
      parameters: {
        type: "object",
        properties: {
          name: { type: "string" },
          arguments: { type: "object", description: "As its parameters say." },
        },
        required: ["name"],
      },
      redirect: ({ name, arguments: args = {} }) =>
        tools.has(name) ? { name, arguments: args } : undefined,
      handler: ({ name }) =>
        `Error: there is no tool ${JSON.stringify(name.slice(0, 128))} of an MCP server; ` +
        "find its name with mcp_find",
    },
  ];
}

/** The tools that have words of a query in their names or descriptions, the best first. */
export function found(query: string, tools: ToolDefinition[]): ToolDefinition[] {
  const wanted = [...new Set(wordsOf(query))];
  const points = tools.map((tool) => {
    const name = wordsOf(tool.name);
    const about = new Set(wordsOf(tool.description));
    const each = wanted.map((word) =>
      name.includes(word)
        ? 4
        : name.some((part) => part.startsWith(word))
        ? 3
        : about.has(word)
        ? 2
        : tool.description.toLowerCase().includes(word)
        ? 1
        : 0
    );
    const sum = each.reduce<number>((all, some) => all + some, 0);
    return { tool, points: tool.name === query.trim() ? Infinity : sum };
  });
  return points.filter(({ points }) => points > 0 || wanted.length === 0)
    .sort((a, b) => b.points - a.points).map(({ tool }) => tool);
}

/** The words of a text in lower case, also those of `camelCase`, without the `s` of a plural. */
function wordsOf(text: string): string[] {
  const words = text.replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2").toLowerCase().match(/[\p{L}\p{N}]+/gu);
  return (words ?? []).map((word) => word.length > 3 ? word.replace(/s$/, "") : word);
}

function listing(tools: ToolDefinition[], max_result: number): string {
  if (tools.length === 0) {
    return "No tool has these words. Try others, or an empty query for all names.";
  }
  const lines: string[] = [];
  let left = Math.min(max_result, MAX_RESULT);
  for (const [index, { name, description, short = "", parameters }] of tools.entries()) {
    const whole = `${name}: ${description}\n  parameters: ${JSON.stringify(parameters)}`;
    const line = index < MOST && whole.length < left - 1000 ? whole : `${name}: ${short}`;
    if (line.length + 100 > left) {
      lines.push(`and ${tools.length - index} more; use other words`);
      break;
    }
    left -= line.length + 1;
    lines.push(line);
  }
  return lines.join("\n");
}
