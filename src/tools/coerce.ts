/** A value of the type a schema asks for, or what is wrong with it, to follow the parameter's name. */
export type Coerced = { value: unknown } | { problem: string };

/**
 * Checks a value against `type`, `enum` and array `items` of a JSON Schema and mends what models
 * commonly get wrong without changing the meaning: `"5"` for a number, `"true"` for a boolean, a
 * number for a string, one string for a list of strings, a list or an object written as JSON text.
 */
export function coerce(value: unknown, schema: Record<string, unknown>): Coerced {
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
      return typeof value === "object" && value !== null && !Array.isArray(value);
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
  return type === "object" && text.startsWith("{") ? parsed(text) : value;
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const BOOLEANS = new Map([["true", true], ["false", false]]);

function toArray(value: unknown, schema: Record<string, unknown>): Coerced {
  if (typeof value === "string" && value.trim().startsWith("[")) value = parsed(value);
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

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function wrong(type: string, value: unknown): string {
  return `must be ${/^[aeio]/.test(type) ? "an" : "a"} ${type}, got ${shown(value)}`;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 60 ? `${text.slice(0, 60).toWellFormed()}...` : text;
}
