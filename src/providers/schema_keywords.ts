import type { WireTool } from "../plugins/api.ts";

type Schema = Record<string, unknown>;

/**
 * The JSON Schema keywords that one backend turns down in the parameters of tools. Those of MCP servers may
 * hold any, and one of them makes such a backend reject every request. Without it a schema only says less:
 * the tool still checks what it is given.
 */
export class SchemaKeywords {
  readonly #refused = new Set<string>();

  /** Whether a rejected request was rejected for keywords that its tools can do without. */
  learn(message: string, tools: unknown): boolean {
    if (!Array.isArray(tools) || !COMPLAINT.test(message)) return false;
    const before = this.#refused.size;
    const schemas = JSON.stringify(tools);
    for (const keyword of KEYWORDS) {
      if (named(keyword, message) && schemas.includes(`"${keyword}":`)) this.#refused.add(keyword);
    }
    return this.#refused.size > before;
  }

  /** The tools as this backend takes them. */
  adapt(tools: WireTool[]): WireTool[] {
    if (this.#refused.size === 0) return tools;
    return tools.map((tool) => {
      const parameters = this.#without(
        tool.function.parameters,
      ) as WireTool["function"]["parameters"];
      return { ...tool, function: { ...tool.function, parameters } };
    });
  }

  #without(schema: unknown): unknown {
    if (Array.isArray(schema)) return schema.map((each) => this.#without(each));
    if (!isSchema(schema)) return schema;
    const kept = Object.entries(schema).filter(([key]) => !this.#refused.has(key));
    return Object.fromEntries(kept.map(([key, value]) => {
      if (DATA.has(key)) return [key, value];
      if (!BY_NAME.has(key) || !isSchema(value)) return [key, this.#without(value)];
      const named = Object.entries(value).map(([name, each]) => [name, this.#without(each)]);
      return [key, Object.fromEntries(named)];
    }));
  }
}

const COMPLAINT = /(tool|function|schema|parameters)/i;

/** Keywords that narrow or annotate; the others carry a schema. */
const KEYWORDS = [
  ...["$schema", "$id", "$comment", "title", "default", "examples", "format", "pattern", "const"],
  ...["additionalProperties", "patternProperties", "propertyNames", "unevaluatedProperties"],
  ...["anyOf", "oneOf", "allOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
  ...["multipleOf", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems"],
  ...["minProperties", "maxProperties", "readOnly", "writeOnly", "deprecated", "contentEncoding"],
];

/** Keywords whose keys are names, and those whose values are data. */
const BY_NAME = new Set(["properties", "patternProperties", "$defs", "definitions"]);
const DATA = new Set(["default", "examples", "enum", "const"]);

/** Whether a message speaks of a keyword. A common word has to stand in quotation marks. */
function named(keyword: string, message: string): boolean {
  const word = keyword.replace("$", "\\$");
  const common = /^[a-z]+$/.test(keyword);
  return RegExp(common ? `["'\`]${word}\\\\?["'\`]` : `(?<![\\w$])${word}(?!\\w)`).test(message);
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
