import type { CallToolResult } from "@modelcontextprotocol/client";
import type {
  ParameterSchema,
  ToolArguments,
  ToolContext,
  ToolDefinition,
} from "../../../src/plugins/api.ts";

/** A tool as a server lists it, untrusted. */
interface ListedTool {
  name: string;
  description?: string;
  inputSchema?: unknown;
  annotations?: { readOnlyHint?: unknown };
}

/** Characters of a description, and of a schema's JSON. */
const MAX_DESCRIPTION = 2000;
const MAX_SCHEMA = 32_768;
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;

/**
 * Imports a tool of an MCP server as `<prefix>.<tool>` in the category `mcp` (specification 4.3), or says
 * why it cannot be imported.
 *
 * @param headers whether its arguments are sent in the headers that its schema names
 */
export function importTool(
  prefix: string,
  listed: ListedTool,
  call: ToolDefinition["handler"],
  headers = false,
): { tool: ToolDefinition } | { problem: string } {
  const name = `${prefix}.${listed.name}`;
  const shown = cleanLine(listed.name, 80);
  if (!NAME.test(name)) return { problem: `"${shown}" has a name that no tool can have` };
  const parameters = parametersOf(listed.inputSchema);
  if (typeof parameters === "string") return { problem: `"${shown}" has ${parameters}` };
  if (headers && !hasValidHeaders(parameters)) {
    return { problem: `"${shown}" has an invalid header` };
  }
  const described = clean(listed.description, MAX_DESCRIPTION);
  const description = described || `The tool ${shown} of the MCP server.`;
  return {
    tool: {
      name,
      description,
      short: cleanLine(described, 100) || shown,
      permission: "mcp",
      // A server's word counts, since the operator chose the server; see `read_only` of the plugin API.
      read_only: listed.annotations?.readOnlyHint === true,
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

/** Keywords whose values are data. */
const DATA = new Set(["const", "default", "enum", "examples"]);

/**
 * Whether the headers that a schema names (`x-mcp-header`) can be sent: a token that is there once, of a string, an
 * integer or a boolean that is reached by names of properties alone. The protocol rejects a tool with any other.
 */
function hasValidHeaders(schema: unknown): boolean {
  const names = new Set<string>();
  const nodes: { node: unknown; at: "root" | "property" | "elsewhere" }[] = [
    { node: schema, at: "root" },
  ];
  for (let next; (next = nodes.pop()) !== undefined;) {
    const { node, at } = next;
    if (Array.isArray(node)) {
      nodes.push(...node.map((each) => ({ node: each, at: "elsewhere" as const })));
    }
    if (!isObject(node)) continue;
    const { "x-mcp-header": header, type, properties, ...others } = node;
    if (header !== undefined) {
      const name = String(header).toLowerCase();
      const valid = at === "property" && typeof header === "string" &&
        /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(header) &&
        ["string", "integer", "boolean"].includes(String(type)) && !names.has(name);
      if (!valid) return false;
      names.add(name);
    }
    const inner = at === "elsewhere" ? "elsewhere" : "property";
    for (const each of Object.values(isObject(properties) ? properties : {})) {
      nodes.push({ node: each, at: inner });
    }
    for (const [keyword, each] of Object.entries(others)) {
      if (!DATA.has(keyword)) nodes.push({ node: each, at: "elsewhere" });
    }
  }
  return true;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The text of a call's result; other content is represented by its type and size. */
export function resultText(result: CallToolResult): string {
  const blocks = result.content.map(blockText).filter((text) => text !== "");
  const data = result.structuredContent;
  if (blocks.length === 0 && data !== undefined) blocks.push(JSON.stringify(data, null, 2));
  const text = blocks.join("\n") || "(no content)";
  return result.isError && !text.startsWith("Error:") ? `Error: ${text}` : text;
}

/** Images of one result that are shown. */
const MAX_IMAGES = 10;

/** Gives the model the images of a result. One that it cannot be given is in the text by its type and size. */
export async function attachImages(
  { content }: CallToolResult,
  name: string,
  attach: NonNullable<ToolContext["attach"]>,
): Promise<void> {
  const images = content.filter((block) => block.type === "image");
  for (const { data, mimeType } of images.slice(0, MAX_IMAGES)) {
    try {
      await attach(`${name} (${mimeType})`, Uint8Array.fromBase64(data));
    } catch {
      // no base64, too large, or a type that no model takes
    }
  }
}

function blockText(block: CallToolResult["content"][number]): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
    case "audio":
      return `[${block.type} ${block.mimeType}, ${size(block.data)}]`;
    case "resource_link":
      return `[resource ${block.uri}]`;
    case "resource":
      return "text" in block.resource
        ? `[resource ${block.resource.uri}]\n${block.resource.text}`
        : `[resource ${block.resource.uri}, ${size(block.resource.blob)}]`;
    default:
      return `[${(block as { type: string }).type}]`;
  }
}

/** The size of base64 data. */
function size(data: string): string {
  return `${Math.floor((data.length * 3) / 4)} bytes`;
}

/**
 * Removes control characters, escape sequences and bidirectional marks from a text of a server, and cuts it
 * at a number of characters.
 */
function clean(text: unknown, most: number): string {
  if (typeof text !== "string") return "";
  const cut = text.length > most;
  const plain = text.slice(0, most).toWellFormed()
    // deno-lint-ignore no-control-regex
    .replace(/\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]/g, "")
    // deno-lint-ignore no-control-regex
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "")
    .replace(/[\u{e0000}-\u{e007f}]/gu, ""); // tag characters, which only a model sees
  return cut ? `${plain}...` : plain;
}

/** The same, on one line. */
export function cleanLine(text: unknown, most: number): string {
  return clean(text, most).replace(/\s+/g, " ").trim();
}
