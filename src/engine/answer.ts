import type { ToolArguments, ToolDefinition } from "../plugins/api.ts";
import { errorMessage } from "../platform/error.ts";
import { objections, schemaFault } from "../tools/json_schema.ts";
import type { Check } from "./checks.ts";
import { TurnFailure } from "./events.ts";

/** An answer that must satisfy a JSON Schema: how the model gives it, and how it is checked. */
export interface StructuredAnswer {
  /** Takes the answer, and ends the rounds. */
  tool: ToolDefinition;
  check: Check;
  /** The parameter `response_format` of the next request; undefined: it has none. */
  format?: Record<string, unknown>;
}

/** How often the model may correct its answer. */
const CORRECTIONS = 3;

/**
 * The structured answer of one turn. The model gives it with the tool `answer`, or as a text that is JSON. When its
 * last reply is neither, it is asked for the answer alone, in the backend's own `response_format`: with an earlier
 * request, many backends force the model's first word into the format, and it could call no tool any more. A backend
 * that rejects the parameter gets the request without it.
 *
 * @param alone whether the model has no other tools: the first request has the format then
 * @throws TurnFailure for an invalid schema
 */
export function structuredAnswer(
  schema: Record<string, unknown>,
  alone: boolean,
): StructuredAnswer {
  const fault = schemaFault(schema);
  if (fault !== "") {
    throw new TurnFailure("schema", `The schema of the answer is invalid: ${fault}`);
  }
  const format = { type: "json_schema", json_schema: { name: "answer", schema } };
  let given: { data: unknown } | undefined;
  let rejected = 0;
  let last = "";
  const take = ({ data }: ToolArguments): string => {
    last = faults(data, schema);
    if (last === "") {
      given = { data };
      return "The answer was accepted.";
    }
    // Without "Error:", the call ends the rounds.
    if (++rejected > CORRECTIONS) return `The answer is rejected: ${last}`;
    return `Error: the answer does not satisfy its schema: ${last}`;
  };
  const answer: StructuredAnswer = {
    tool: {
      name: "answer",
      description:
        "Give the final answer of this turn as data, and end the turn. A text is not accepted as the final " +
        "answer: call this once, when everything else is done.",
      permission: "answer",
      read_only: true,
      loop: "stop",
      parameters: {
        type: "object",
        properties: { data: relocated(schema) },
        required: ["data"],
      },
      status: () => "answer",
      handler: take,
    },
    ...alone && { format },
    async *check({ result, agent: { run } }) {
      if (given !== undefined) {
        result.content = JSON.stringify(given.data, null, 2);
        result.data = given.data;
        yield { type: "token", run, content: result.content };
        return "";
      }
      const written = jsonIn(result.content);
      if (rejected <= CORRECTIONS) {
        last = written === undefined ? "it is not JSON" : faults(written.data, schema);
        if (last === "") {
          result.data = written!.data;
          return "";
        }
        rejected++;
      }
      if (rejected > CORRECTIONS) {
        throw new TurnFailure("schema", `The answer does not satisfy its schema: ${last}`);
      }
      answer.format = format;
      const message = `The answer is not accepted yet: ${last}; the model is asked for it again.`;
      yield { type: "notice", run, level: "info", message };
      return `Your answer is not accepted: ${last}. Give the final answer as data that satisfies this JSON Schema, ` +
        `with the tool answer, or as JSON alone:\n\n${JSON.stringify(schema)}`;
    },
  };
  return answer;
}

/** The value of a text that is JSON and satisfies a schema. */
export function dataIn(
  text: string,
  schema: Record<string, unknown>,
): { data: unknown } | undefined {
  const found = jsonIn(text);
  return found !== undefined && faults(found.data, schema) === "" ? found : undefined;
}

/** The value of a text that is JSON, or that ends with a code block of JSON. */
function jsonIn(text: string): { data: unknown } | undefined {
  const [, block] = /```(?:json)?[ \t]*\n([^`]*)\n[ \t]*```\s*$/.exec(text) ?? [];
  for (const each of [text, block]) {
    try {
      if (each !== undefined) return { data: JSON.parse(each) };
    } catch {
      // another text
    }
  }
  return undefined;
}

/** The schema at another place, so that its references to itself stay right. */
function relocated(schema: Record<string, unknown>): Record<string, unknown> {
  const { $schema: _, ...rest } = schema;
  if (rest.$id !== undefined) return rest;
  return JSON.parse(
    JSON.stringify(rest),
    (key, value) =>
      key === "$ref" && typeof value === "string"
        ? value.replace(/^#(?=\/|$)/, "#/properties/data")
        : value,
  );
}

/** Why a value does not satisfy the schema of the answer; empty when it does. */
function faults(data: unknown, schema: Record<string, unknown>): string {
  try {
    return objections(data, schema);
  } catch (error) {
    throw new TurnFailure("schema", errorMessage(error));
  }
}
