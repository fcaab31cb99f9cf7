import type { ParameterSchema, ToolArguments, ToolDefinition } from "../../../src/plugins/api.ts";
import { clean, cleanLine } from "./clean.ts";

/** What a server's listing says of a tool; none of it is trusted. */
export interface ListedTool {
  name: string;
  description?: string;
  inputSchema?: unknown;
}

/** Characters of a description, and of a schema's JSON. */
const MAX_DESCRIPTION = 2000;
const MAX_SCHEMA = 32_768;
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;

/**
 * A server's tool as one of ours, `<prefix>.<tool>` in the category `mcp` (specification 4.3), or why it
 * cannot be one.
 */
export function importTool(
  prefix: string,
  listed: ListedTool,
  call: ToolDefinition["handler"],
): { tool: ToolDefinition } | { problem: string } {
  const name = `${prefix}.${listed.name}`;
  const shown = cleanLine(listed.name, 80);
  if (!NAME.test(name)) return { problem: `"${shown}" has a name that no tool can have` };
  const parameters = parametersOf(listed.inputSchema);
  if (typeof parameters === "string") return { problem: `"${shown}" has ${parameters}` };
  const described = clean(listed.description, MAX_DESCRIPTION);
  const description = described || `The tool ${shown} of the MCP server.`;
  return {
    tool: {
      name,
      description,
      short: cleanLine(described, 100) || shown,
      permission: "mcp",
      parameters,
      status: (args) => `${name} ${JSON.stringify(args)}`,
      confirm: (args: ToolArguments) => `${name} ${JSON.stringify(args, null, 2)}`,
      handler: call,
    },
  };
}

function parametersOf(schema: unknown): ParameterSchema | string {
  if (!isObject(schema) || schema.type !== "object") return "no schema of an object";
  if (JSON.stringify(schema).length > MAX_SCHEMA) return "a schema that is too large";
  const given = isObject(schema.properties) ? schema.properties : {};
  const properties = Object.fromEntries(
    Object.entries(given)
      .filter(([name]) => name !== "__proto__")
      .map(([name, value]) => [name, isObject(value) ? value : {}]),
  );
  const required = Array.isArray(schema.required)
    ? schema.required.filter((each) => typeof each === "string" && Object.hasOwn(properties, each))
    : [];
  return { ...schema, type: "object", properties, required } as ParameterSchema;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
