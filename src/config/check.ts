import type * as z from "zod/mini";
import { type SvcError, usageError } from "../platform/error.ts";
import { isObject } from "../platform/files.ts";
import { type KeyPath, nest, unknownKey, within } from "./key_path.ts";
import { type ConfigKey, settingOf } from "./keys.ts";

/** A wrong value. */
export interface Problem {
  /** The path of the value, such as `mcp.servers[0].args`. */
  readonly path: string;
  /** The rest of the sentence: the expected and the actual value. */
  readonly fault: string;
}

/** The result of checking a value. */
export interface Verdict {
  readonly problem?: Problem;
  /** Paths of unknown fields. */
  readonly unknown: string[];
}

type Issue = {
  code?: string;
  path: PropertyKey[];
  message: string;
  expected?: string;
  values?: unknown[];
  origin?: string;
  minimum?: unknown;
  inclusive?: boolean;
  keys?: string[];
};

/** Checks a value, or the part of it in one layer, against the schema of its setting. */
export function checkValue(key: ConfigKey, value: unknown): Verdict {
  return checkAgainst(settingOf(key).schema(), key, value);
}

/** Checks a value against a schema; `name` is the first part of the reported paths. */
export function checkAgainst(schema: z.ZodMiniType, name: string, value: unknown): Verdict {
  const result = schema.safeParse(value);
  const unknown: string[] = [];
  if (result.success) return { unknown };
  let problem: Problem | undefined;
  for (const issue of result.error.issues as Issue[]) {
    if (issue.code === "unrecognized_keys") {
      for (const field of issue.keys!) unknown.push(pathOf(name, [...issue.path, field]));
    } else {
      problem ??= {
        path: pathOf(name, issue.path),
        fault: faultOf(name, issue, valueAt(value, issue.path)),
      };
    }
  }
  return { problem, unknown };
}

/**
 * A new value in the form in which it is read back; the path may be inside an object setting.
 *
 * @throws SvcError (exit 2) for a wrong value, or an unknown field.
 */
export function acceptNew({ key, rest }: KeyPath, value: unknown): unknown {
  const nested = !isObject(value) ? value : nest(value, (name) => {
    throw unknownKey(name);
  }, `${[key, ...rest].join(".")}.`);
  const { problem, unknown } = checkValue(key, within(rest, nested));
  if (problem !== undefined) throw wrongValue(problem);
  if (unknown[0] !== undefined) throw unknownKey(unknown[0]);
  return JSON.parse(JSON.stringify(nested));
}

/** The error for a wrong value. `file` is empty for a value that is not from a file. */
export function wrongValue({ path, fault }: Problem, file = "", hint?: string): SvcError {
  if (file === "") return usageError("config_value", `"${path}" ${fault}.`);
  return usageError(
    "config_value",
    `${file}: "${path}" ${fault}.`,
    hint ?? "Correct the file, or use svc config set or svc config unset.",
  );
}

function pathOf(key: string, path: PropertyKey[]): string {
  return path.reduce<string>(
    (path, part) => path + (typeof part === "number" ? `[${part}]` : `.${String(part)}`),
    key,
  );
}

function valueAt(value: unknown, path: PropertyKey[]): unknown {
  for (const part of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) {
      return undefined;
    }
    value = (value as Record<PropertyKey, unknown>)[part];
  }
  return value;
}

function faultOf(key: string, issue: Issue, value: unknown): string {
  if (issue.code === "custom") return issue.message;
  return mustBe(expectation(issue), finding(key, issue, value));
}

/** The text for a value of the wrong kind. */
export function mustBe(expected: string, found: string): string {
  return `must be ${expected}, not ${found}`;
}

function expectation(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      return KINDS[issue.expected!] ?? issue.expected!;
    case "invalid_value": {
      const values = issue.values!.map((value) => JSON.stringify(value));
      return values.join(", ").replace(/, ([^,]*)$/, " or $1");
    }
    case "too_small":
      if (issue.origin === "string") return "a text that is not empty";
      return issue.inclusive ? `${issue.minimum} or more` : `more than ${issue.minimum}`;
    case "too_big":
      return "a smaller number";
    case "invalid_key":
      return "an object without empty names";
    default:
      return issue.message;
  }
}

const KINDS: Record<string, string> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
};

/** Describes a value without showing possible secrets: headers and the environment of servers. */
function finding(key: string, issue: Issue, value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  if (typeof value === "string" && (key === "mcp.servers" || value.length > 40)) return "a text";
  return issue.code === "too_small" && value === "" ? "an empty text" : JSON.stringify(value);
}
