import * as z from "zod/mini";
import { isObject } from "../platform/files.ts";
import { CONFIG_KEYS, settingOf } from "./keys.ts";

/** As much of JSON Schema as the settings use. */
interface Schema extends Record<string, unknown> {
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
}

/** The JSON Schema of a configuration file, for editors, with flat and nested spellings. */
export function configJsonSchema(): object {
  const properties: Record<string, Schema> = {};
  for (const key of CONFIG_KEYS) {
    const { schema, default: fallback, description } = settingOf(key);
    const { $schema: _, ...type } = z.toJSONSchema(schema());
    const setting = { description, default: fallback, ...type } as Schema;
    const [group, name] = key.split(".") as [string, string?];
    if (name === undefined) properties[key] = setting;
    else {
      properties[group] ??= { type: "object", properties: {}, additionalProperties: false };
      properties[group].properties![name] = setting;
    }
  }
  const root = allSpellings({ type: "object", properties, additionalProperties: false });
  return {
    ...root,
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "svc configuration",
    properties: { $schema: { type: "string" }, ...root.properties },
    // For editors that support JSON with comments.
    allowComments: true,
    allowTrailingCommas: true,
  };
}

/** An object schema with dotted names added for the fields of its inner objects. */
function allSpellings(schema: Schema): Schema {
  const properties: Record<string, Schema> = {};
  const patternProperties: Record<string, Schema> = {};
  for (const { name, pattern, schema: inner } of namesOf(schema)) {
    if (name !== undefined) properties[name] = inner;
    else patternProperties[`^${pattern}$`] = inner;
  }
  const result: Schema = { ...schema, properties, additionalProperties: false };
  return Object.keys(patternProperties).length > 0 ? { ...result, patternProperties } : result;
}

interface Name {
  /** Undefined when any name is allowed. */
  name?: string;
  pattern: string;
  schema: Schema;
}

function namesOf(object: Schema): Name[] {
  const known = Object.keys(object.properties ?? {});
  const own: Name[] = known.map((name) => ({
    name,
    pattern: name,
    schema: object.properties![name]!,
  }));
  if (isObject(object.additionalProperties)) {
    const other = known.length > 0 ? `(?!(?:${known.join("|")})(?:\\.|$))` : "";
    own.push({ pattern: `${other}[^.]+`, schema: object.additionalProperties as Schema });
  }
  return own.flatMap(({ name, pattern, schema }) => {
    if (schema.type !== "object") return [{ name, pattern, schema }];
    const inner = namesOf(schema).map((field) => ({
      name: name === undefined || field.name === undefined ? undefined : `${name}.${field.name}`,
      pattern: `${pattern}\\.${field.pattern}`,
      schema: field.schema,
    }));
    return [{ name, pattern, schema: allSpellings(schema) }, ...inner];
  });
}
