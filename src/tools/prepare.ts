import { errorMessage } from "../platform/error.ts";
import { isObject, jsonOr } from "../platform/files.ts";
import { stripControl } from "../platform/terminal.ts";
import type { ToolArguments, ToolDefinition } from "../plugins/api.ts";
import { CONFIG_PARAMETER, type ToolRegistry } from "./registry.ts";

/** A call that can run, or the `Error:` text that answers it. `name` is canonical where known. */
export type Prepared =
  | { ok: true; tool: ToolDefinition; args: ToolArguments }
  | { ok: false; name: string; args: ToolArguments; message: string };

/**
 * Finds the tool of a model's call and cleans its arguments (specification 4.8, 7.3): parameter
 * aliases are mapped, undeclared and null arguments dropped, harmless type mismatches mended. Whatever
 * is left wrong comes back as one sentence the model can act on.
 *
 * @param offered which tools an unknown name is answered with. A known tool that is not offered is
 * prepared all the same: refusing it is the policy's decision, and is recorded there.
 */
export function prepareCall(
  registry: ToolRegistry,
  offered: (tool: ToolDefinition) => boolean,
  call: { name: string; arguments: string },
): Prepared {
  const parsed = parseArguments(call.arguments);
  const given = "value" in parsed ? parsed.value : {};
  const tool = registry.find(call.name);
  if (tool === undefined) {
    const name = stripControl(call.name).slice(0, 128);
    const names = registry.list().filter(offered).map((each) => each.name).join(", ");
    const message = `Error: unknown tool "${name}". Available tools: ${names || "none"}`;
    return { ok: false, name, args: given, message };
  }
  if ("problem" in parsed) return failed(tool, parsed.problem, {});
  const implied = Object.hasOwn(tool.alias_args ?? {}, call.name)
    ? tool.alias_args![call.name]
    : {};
  const { args, problems } = clean(tool, { ...implied, ...given });
  if (problems.length > 0) return failed(tool, problems.join("; "), given);
  const other = tool.redirect?.(args);
  if (other === undefined || registry.find(other.name) === undefined) {
    return { ok: true, tool, args };
  }
  const meant = { name: other.name, arguments: JSON.stringify(other.arguments) };
  return prepareCall(registry, offered, meant);
}

function failed(tool: ToolDefinition, problem: string, args: ToolArguments): Prepared {
  const message = `Error: ${tool.name}: ${problem}. ${usage(tool)}`;
  return { ok: false, name: tool.name, args, message };
}

/** Keywords of a schema that {@linkcode prepareCall} does not read. */
const COMPOSITION = [
  ...["allOf", "anyOf", "oneOf", "not", "if", "$ref", "dependentRequired", "dependentSchemas"],
  ...["minProperties", "propertyNames", "unevaluatedProperties"],
];

/**
 * The same, for schemas that combine others, too: these are evaluated as a whole. The server of an imported tool
 * evaluates its schemas itself, since one of them could block this process.
 */
export async function prepareChecked(
  ...request: Parameters<typeof prepareCall>
): Promise<Prepared> {
  const prepared = prepareCall(...request);
  if (!prepared.ok || prepared.tool.permission === "mcp") return prepared;
  const { tool, args } = prepared;
  if (!COMPOSITION.some((keyword) => keyword in tool.parameters)) return prepared;
  const { objections } = await import("./json_schema.ts");
  const required = tool.parameters.required?.filter((name) => name !== CONFIG_PARAMETER);
  try {
    const problem = objections(args, { ...tool.parameters, ...required && { required } });
    return problem === "" ? prepared : failed(tool, problem, args);
  } catch (error) {
    return failed(tool, errorMessage(error).replace(/\.$/, ""), args);
  }
}

/** Characters of a call's arguments, and how deep they may nest: what logs them goes a call per level. */
const MAX_ARGUMENTS = 4 * 1024 * 1024;
const MAX_DEPTH = 100;

/**
 * The arguments of a call as they can be handed back to a backend: many read those of earlier calls as a
 * JSON object, and reject every further request of a conversation that holds anything else.
 */
export function sendableArguments(text: string): string {
  const parsed = parseArguments(text);
  if ("problem" in parsed) return "{}";
  return text.trimStart().startsWith("{") ? text : JSON.stringify(parsed.value);
}

function parseArguments(text: string): { value: ToolArguments } | { problem: string } {
  if (text.length > MAX_ARGUMENTS) {
    return { problem: `the arguments have more than ${MAX_ARGUMENTS} characters; split the call` };
  }
  if (text.trim() === "") return { value: {} };
  try {
    let value: unknown = JSON.parse(text);
    if (typeof value === "string") value = JSON.parse(value); // some models encode twice
    if (isDeep(value)) return { problem: `the arguments nest more than ${MAX_DEPTH} levels deep` };
    if (isObject(value)) return { value };
    return { problem: `the arguments must be a JSON object, not ${kind(value)}` };
  } catch (error) {
    const complaint = stripControl((error as Error).message).slice(0, 300);
    return { problem: `the arguments are not valid JSON (${complaint})` };
  }
}

function isDeep(value: unknown): boolean {
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return true;
    const inner: unknown[] = [];
    for (const each of level) {
      if (typeof each !== "object" || each === null) continue;
      for (const item of Object.values(each)) inner.push(item);
    }
    level = inner;
  }
  return false;
}

function clean(
  tool: ToolDefinition,
  given: ToolArguments,
): { args: ToolArguments; problems: string[] } {
  const { properties, required = [] } = tool.parameters;
  const others = othersOf(tool);
  const args: ToolArguments = {};
  const problems = new Map<string, string>();
  const dropped: string[] = [];
  for (const [written, value] of Object.entries(given)) {
    const name = canonical(tool, written);
    const schema = Object.hasOwn(properties, name) ? properties[name] : others;
    if (name === CONFIG_PARAMETER || name === "__proto__" || schema === undefined) {
      dropped.push(written);
      continue;
    }
    // The canonical name wins over an alias in the same call.
    if (value === null || (name !== written && isGiven(given, name))) continue;
    const result = coerce(value, schema);
    if ("problem" in result) problems.set(name, result.problem);
    else args[name] = result.value;
  }
  for (const name of required) {
    if (name === CONFIG_PARAMETER || Object.hasOwn(args, name) || problems.has(name)) continue;
    const instead = dropped.length > 0 ? ` (unknown: ${dropped.slice(0, 5).map(quote)})` : "";
    problems.set(name, `is required${instead}`);
  }
  return { args, problems: Array.from(problems, ([name, problem]) => `"${name}" ${problem}`) };
}

/**
 * What arguments without a name in the schema are like: only those that it declares all the same, in so
 * many words, come through. Undefined: it declares none.
 */
function othersOf({ parameters }: ToolDefinition): Record<string, unknown> | undefined {
  // A schema of an MCP server can be any value.
  const { additionalProperties: others, patternProperties: patterns }: Record<string, unknown> = {
    ...parameters,
  };
  if (others === true || (isObject(patterns) && Object.keys(patterns).length > 0)) return {};
  return isObject(others) ? others : undefined;
}

function isGiven(given: ToolArguments, name: string): boolean {
  return Object.hasOwn(given, name) && given[name] !== null;
}

function canonical(tool: ToolDefinition, name: string): string {
  const aliases = tool.param_aliases ?? {};
  return Object.hasOwn(aliases, name) ? aliases[name]! : name;
}

function quote(name: string): string {
  return JSON.stringify(stripControl(name).slice(0, 64));
}

/** `Parameters: path (string, required), limit (integer).` */
function usage(tool: ToolDefinition): string {
  const { properties, required = [] } = tool.parameters;
  const names = Object.keys(properties).filter((name) => name !== CONFIG_PARAMETER);
  const open = othersOf(tool) !== undefined;
  if (names.length === 0) return open ? "Parameters: of any name." : "It takes no parameters.";
  const list = names.map((name) => {
    const type = [properties[name]!.type ?? "any"].flat().join(" or ");
    return `${name} (${type}${required.includes(name) ? ", required" : ""})`;
  });
  return `Parameters: ${list.join(", ")}${open ? ", and others" : ""}.`;
}

function kind(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "an array" : `a ${typeof value}`;
}

/** A value of the type a schema asks for, or what is wrong with it, to follow the parameter's name. */
type Coerced = { value: unknown } | { problem: string };

/**
 * Checks a value against `type`, `enum` and array `items` of a JSON Schema and mends what models
 * commonly get wrong without changing the meaning: `"5"` for a number, `"true"` for a boolean, a
 * number for a string, one string for a list of strings, a list or an object written as JSON text.
 */
function coerce(value: unknown, schema: Record<string, unknown>): Coerced {
  const types = [schema.type ?? []].flat().filter((type) => typeof type === "string");
  const result = types.length === 0 ? { value } : ofAnyType(value, types, schema);
  if ("problem" in result || !Array.isArray(schema.enum)) return result;
  return ofEnum(result.value, schema.enum);
}

function ofAnyType(value: unknown, types: string[], schema: Record<string, unknown>): Coerced {
  // An exact match with any of the types comes before a conversion to the first.
  const exact = types.find((type) => type !== "array" && matches(value, type));
  if (exact !== undefined) return { value };
  let problem = "";
  for (const type of types) {
    const result = type === "array" ? toArray(value, schema) : convert(value, type);
    if ("value" in result) return result;
    problem ||= result.problem;
  }
  return types.length === 1 ? { problem } : { problem: wrong(types.join(" or "), value) };
}

function matches(value: unknown, type: string): boolean {
  switch (type) {
    case "integer":
      return Number.isInteger(value);
    case "number":
      return Number.isFinite(value);
    case "object":
      return isObject(value);
    case "null":
      return value === null;
    case "string":
      return typeof value === "string";
    case "boolean":
      return typeof value === "boolean";
    default:
      return true; // a type this version of JSON Schema does not know constrains nothing
  }
}

function convert(value: unknown, type: string): Coerced {
  const converted = mended(value, type);
  return matches(converted, type) ? { value: converted } : { problem: wrong(type, value) };
}

function mended(value: unknown, type: string): unknown {
  if (type === "string") {
    return typeof value === "number" || typeof value === "boolean" ? String(value) : value;
  }
  if (typeof value !== "string") return value;
  const text = value.trim();
  if (type === "integer" || type === "number") return NUMBER.test(text) ? Number(text) : value;
  if (type === "boolean") return BOOLEANS.get(text.toLowerCase()) ?? value;
  return type === "object" && text.startsWith("{") ? jsonOr(text, text) : value;
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const BOOLEANS = new Map([["true", true], ["false", false]]);

function toArray(value: unknown, schema: Record<string, unknown>): Coerced {
  if (typeof value === "string" && value.trim().startsWith("[")) value = jsonOr(value, value);
  if (typeof value === "object" && !Array.isArray(value)) return { problem: wrong("array", value) };
  const items = schema.items as Record<string, unknown> | undefined;
  const list: unknown[] = [];
  for (const [index, item] of [value].flat().entries()) {
    const result = typeof items === "object" && items !== null
      ? coerce(item, items)
      : { value: item };
    if ("problem" in result) return { problem: `item ${index + 1} ${result.problem}` };
    list.push(result.value);
  }
  return { value: list };
}

function ofEnum(value: unknown, allowed: unknown[]): Coerced {
  if (allowed.includes(value)) return { value };
  const folded = String(value).trim().toLowerCase();
  const near = allowed.filter((each) => String(each).toLowerCase() === folded);
  if (near.length === 1) return { value: near[0] };
  const list = allowed.map((each) => JSON.stringify(each)).join(", ");
  return { problem: `must be one of ${list}, got ${shown(value)}` };
}

function wrong(type: string, value: unknown): string {
  return `must be ${/^[aeio]/.test(type) ? "an" : "a"} ${type}, got ${shown(value)}`;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 60 ? `${text.slice(0, 60).toWellFormed()}...` : text;
}
