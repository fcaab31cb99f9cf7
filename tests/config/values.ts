import fc from "fast-check";
import type { ConfigKey } from "../../src/config/keys.ts";
import { configJsonSchema } from "../../src/config/json_schema.ts";

/** Arbitrary valid values of a setting, from its JSON Schema. */
export function settingValue(key: ConfigKey): fc.Arbitrary<unknown> {
  if (key === "store") return fc.constantFrom("", "postgres://svc@db/svc", "postgresql://db:1/a");
  return key === "mcp.servers" ? servers() : value(PROPERTIES[key]!);
}

const PROPERTIES = (configJsonSchema() as { properties: Record<string, Schema> }).properties;

interface Schema {
  type?: string;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  items?: Schema;
  minLength?: number;
  minimum?: number;
  exclusiveMinimum?: number;
  minItems?: number;
  required?: string[];
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  propertyNames?: { enum?: string[] };
}

function value(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map((one) => value(one)));
  switch (schema.type) {
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "string":
      return fc.string({ minLength: schema.minLength ?? 0, unit: "binary" });
    case "integer":
      return fc.integer({
        min: schema.exclusiveMinimum === undefined ? Math.max(0, schema.minimum ?? 0) : 1,
        max: 2 ** 31 - 1,
      });
    case "number":
      return fc.double({ min: schema.minimum ?? 0.001, max: 1e9, noNaN: true })
        .map((number) => number === 0 ? 0 : number);
    case "array":
      return fc.array(value(schema.items!), { minLength: schema.minItems ?? 0, maxLength: 5 });
    case "object":
      return object(schema);
  }
  throw new Error(`no values for ${JSON.stringify(schema)}`);
}

function object(schema: Schema): fc.Arbitrary<unknown> {
  const known = Object.entries(schema.properties ?? {})
    .filter(([name]) => !name.includes("."))
    .map(([name, one]) => [name, value(one)] as const);
  const fields = fc.record(Object.fromEntries(known), {
    requiredKeys: schema.required ?? [],
    noNullPrototype: true,
  });
  const any = Object.entries(schema.patternProperties ?? {})
    .find(([pattern]) =>
      pattern === "^[^.]+$" || pattern.endsWith("$))[^.]+$") && pattern.startsWith("^(?!")
    );
  if (any === undefined) return fields;
  // Names are not empty and have no dot, which would separate names.
  const name = schema.propertyNames?.enum
    ? fc.constantFrom(...schema.propertyNames.enum)
    : fc.stringMatching(/^[a-z][a-z0-9_-]{0,8}$/).filter((name) =>
      !["constructor", "prototype", "bash_allow"].includes(name)
    );
  const free = fc.dictionary(name, value(any[1]), { maxKeys: 4, noNullPrototype: true });
  return fc.tuple(fields, free).map(([a, b]) => ({ ...a, ...b }));
}

function servers(): fc.Arbitrary<unknown> {
  const text = fc.string({ minLength: 1 });
  return fc.array(
    fc.oneof(
      fc.record({ name: text, command: text, args: fc.array(text), cwd: fc.constant(null) }),
      fc.record({ name: text, transport: fc.constant("http"), url: fc.webUrl() }),
    ),
    { maxLength: 3 },
  ).map((list) => JSON.parse(JSON.stringify(list)));
}
