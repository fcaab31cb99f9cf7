import { type OutputUnit, type Schema, Validator } from "@cfworker/json-schema";
import { errorMessage, SvcError, usageError } from "../platform/error.ts";
import { isObject } from "../platform/files.ts";

/** Objections that the model is told at most, and characters of one. */
const MOST = 5;
const LONGEST = 300;
/** Keywords whose errors only repeat those of the schemas within. */
const OUTER = ["properties", "items", "prefixItems", "$ref", "allOf", "if", "false"];

/**
 * Why a value does not satisfy a schema, in one line; empty when it does.
 *
 * @throws SvcError `schema` when the schema cannot be evaluated
 */
export function objections(data: unknown, schema: Record<string, unknown>): string {
  try {
    const { valid, errors } = new Validator(schema as Schema, draftOf(schema), false).validate(
      data,
    );
    if (valid) return "";
    // A property with an error of its own also counts as one that the schema does not declare.
    const own = new Set(errors.map(({ instanceLocation: at, error }) => `${at} ${error}`));
    const repeated = ({ instanceLocation: at, error }: OutputUnit) =>
      /additional properties schema/.test(error) &&
      own.has(`${at} ${error.replace("additional properties schema", "schema")}`);
    const inner = errors.filter((each) => !OUTER.includes(each.keyword) && !repeated(each));
    const shown = (inner.length > 0 ? inner : errors).map(({ instanceLocation, error }) =>
      `${instanceLocation.slice(1) || "the whole"}: ${error}`.replace(/\s+/g, " ").replace(
        /\.$/,
        "",
      )
        .slice(0, LONGEST).toWellFormed()
    );
    const all = [...new Set(shown)];
    const more = all.length > MOST ? `; and ${all.length - MOST} more` : "";
    return all.slice(0, MOST).join("; ") + more;
  } catch (error) {
    throw new SvcError("schema", `The schema cannot be evaluated: ${firstLine(error)}`);
  }
}

/**
 * Rejects an invalid JSON Schema.
 *
 * @throws SvcError `schema` (exit 2)
 */
export function checkSchema(schema: Record<string, unknown>, name = "The schema"): void {
  const fault = schemaFault(schema);
  if (fault === "") return;
  throw usageError("schema", `${name} is not a valid JSON Schema: ${fault}`);
}

type Draft = ConstructorParameters<typeof Validator>[1];

function draftOf({ $schema = "" }: Record<string, unknown>): Draft {
  const [draft] = /draft-0[467]|2019-09/.exec(String($schema)) ?? [];
  if (draft === "draft-04") return "4";
  return draft === "2019-09" ? draft : draft === undefined ? "2020-12" : "7";
}

/** What is wrong with a schema; empty when nothing is. */
export function schemaFault(schema: Record<string, unknown>): string {
  try {
    const fault = faultAt(schema, "#");
    if (fault !== "") return fault;
    const validator = new Validator(schema as Schema, draftOf(schema));
    const { lookup } = validator as unknown as {
      lookup: Record<string, { $ref?: string; __absolute_ref__?: string }>;
    };
    for (const { $ref, __absolute_ref__ = $ref ?? "" } of Object.values(lookup)) {
      if ($ref !== undefined && lookup[__absolute_ref__] === undefined) {
        return `the reference ${JSON.stringify($ref)} leads nowhere`;
      }
    }
    // References that lead in a circle without a step into the data never end.
    for (const sample of [null, {}, [], "", 0]) validator.validate(sample);
    return "";
  } catch (error) {
    return error instanceof RangeError
      ? "it nests too deep, or refers to itself without end"
      : firstLine(error);
  }
}

const TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"];
const isText = (value: unknown) => typeof value === "string";
const isList = (value: unknown, each: (item: unknown) => boolean, least = 0) =>
  Array.isArray(value) && value.length >= least && value.every(each);
const isType = (value: unknown) => TYPES.includes(value as string);

/** Keywords by the kind of their value. */
const KEYWORDS: [kind: string, fits: (value: unknown) => boolean, names: string[]][] = [
  [
    "one of " + TYPES.join(", ") + ", or a list of them",
    (value) => isType(value) || isList(value, isType, 1),
    ["type"],
  ],
  ["a whole number of 0 or more", (value) => Number.isInteger(value) && (value as number) >= 0, [
    ...["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
    ...["minContains", "maxContains"],
  ]],
  ["a number", (value) => typeof value === "number", ["minimum", "maximum"]],
  ["a number above 0", (value) => typeof value === "number" && value > 0, ["multipleOf"]],
  ["a number", (value) => typeof value === "number" || typeof value === "boolean", [
    ...["exclusiveMinimum", "exclusiveMaximum"], // booleans in draft 4
  ]],
  ["true or false", (value) => typeof value === "boolean", ["uniqueItems"]],
  ["a list of names", (value) => isList(value, isText), ["required"]],
  ["a list", Array.isArray, ["enum"]],
  ["a text", isText, ["$ref", "$id", "$schema", "$anchor", "format", "title", "description"]],
  ["a regular expression", isPattern, ["pattern"]],
  ["not used: it is not supported", () => false, ["$dynamicRef", "$recursiveRef"]],
  ["an object of schemas", isObject, [
    ...["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"],
  ]],
  ["a list of schemas", (value) => isList(value, () => true, 1), ["allOf", "anyOf", "oneOf"]],
];
/** Keywords with a schema, and with several. */
const WITHIN = [
  ...["additionalItems", "unevaluatedItems", "items", "contains", "additionalProperties"],
  ...["unevaluatedProperties", "propertyNames", "not", "if", "then", "else"],
];
const LISTS = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
const MAPS = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

function faultAt(schema: unknown, at: string): string {
  if (typeof schema === "boolean") return "";
  if (!isObject(schema)) return `${at} is neither an object nor true or false`;
  const keywords = Object.entries(schema as Record<string, unknown>);
  for (const [keyword, value] of keywords) {
    const wrong = KEYWORDS.find(([, fits, names]) => names.includes(keyword) && !fits(value));
    if (wrong !== undefined) return `${at}/${keyword} must be ${wrong[0]}`;
    if (keyword === "patternProperties") {
      const pattern = Object.keys(value as object).find((each) => !isPattern(each));
      if (pattern !== undefined) return `${at}/${keyword} must have regular expressions as names`;
    }
    const inner: [string, unknown][] = LISTS.includes(keyword) && Array.isArray(value)
      ? value.map((each, index) => [`${index}`, each])
      : MAPS.includes(keyword)
      ? Object.entries(value as object)
      : WITHIN.includes(keyword)
      ? [["", value]]
      : [];
    for (const [name, each] of inner) {
      const fault = faultAt(each, `${at}/${keyword}${name === "" ? "" : `/${name}`}`);
      if (fault !== "") return fault;
    }
  }
  return "";
}

function isPattern(value: unknown): boolean {
  try {
    return typeof value === "string" && RegExp(value, "u") !== undefined;
  } catch {
    return false;
  }
}

function firstLine(error: unknown): string {
  return errorMessage(error).split("\n")[0]!.slice(0, LONGEST);
}
