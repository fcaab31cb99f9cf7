import * as z from "zod/mini";
import { CONFIG_KEYS, settingOf } from "./keys.ts";
import { isObject } from "./key_path.ts";

type Schema = Record<string, unknown>;

/** The JSON Schema of a configuration file, for editors. Flat and nested spellings are both in it. */
export function configJsonSchema(): object {
  const properties: Record<string, Schema> = { $schema: { type: "string" } };
  const patternProperties: Record<string, Schema> = {};
  for (const key of CONFIG_KEYS) {
    const { schema, default: fallback, description } = settingOf(key);
    const { $schema: _, ...type } = z.toJSONSchema(schema) as Schema;
    const whole = { description, default: fallback, ...type };
    properties[key] = whole;
    const [group, name] = key.split(".");
    if (name !== undefined) {
      properties[group!] ??= { type: "object", properties: {}, additionalProperties: false };
      (properties[group!]!.properties as Schema)[name] = whole;
    }
    if (isObject(fallback)) addFlatFields(key, type, properties, patternProperties);
  }
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "svc configuration",
    type: "object",
    properties,
    patternProperties,
    additionalProperties: false,
    // Read by editors that know JSON with comments.
    allowComments: true,
    allowTrailingCommas: true,
  };
}

/** The dotted spellings below an object setting, such as `tool_permission.bash`. */
function addFlatFields(
  prefix: string,
  type: Schema,
  properties: Record<string, Schema>,
  patternProperties: Record<string, Schema>,
): void {
  for (const [name, field] of Object.entries((type.properties ?? {}) as Record<string, Schema>)) {
    properties[`${prefix}.${name}`] = field;
  }
  if (isObject(type.additionalProperties)) {
    patternProperties[`^${prefix}\\.(?!bash_allow$)[^.]+$`] = type.additionalProperties;
  }
}
