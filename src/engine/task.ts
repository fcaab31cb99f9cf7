import type { NewAttachment } from "../sessions/attachments.ts";
import * as z from "zod/mini";

/** Seconds of the longest wait and timeout: a hundred years. */
export const LONGEST_WAIT = 100 * 365 * 86_400;

const count = () => z.optional(z.int().check(z.gte(1)));
const seconds = () => z.optional(z.number().check(z.gte(0), z.lte(LONGEST_WAIT)));

/**
 * What a turn must keep to, and how its result is checked. The same fields are options of `run`, `teams run` and
 * `jobs add`, the body of `POST /chat`, and a job's definition.
 */
// deno-lint-ignore explicit-module-boundary-types -- TurnTask is inferred from it
export const taskFields = () => ({
  /** Most that the turn may cost with all agents that it starts, in the unit of the setting `prices`. */
  max_cost: z.optional(z.number().check(z.positive())),
  /** Most tokens, read and written, of all agents together. */
  max_total_tokens: count(),
  /** Most tool calls of all agents together. */
  max_tool_calls: count(),
  /** Most replies with tool calls of one agent. */
  max_rounds: count(),
  /** Seconds that the turn may take; 0: no cap. */
  timeout: seconds(),
  /** Seconds to wait at most, in all, for a quota that a backend announces to open again. */
  quota_wait: seconds(),
  /** A command that svc runs when the model says that it is done; it must exit with 0. */
  verify: z.optional(z.string().check(z.minLength(1))),
  /** How often the model may correct its work after a verification that failed. */
  verify_rounds: z.optional(z.int().check(z.gte(0))),
  /** A JSON Schema that the answer must satisfy. */
  schema: z.optional(z.record(z.string(), z.unknown())),
});

/** The values of {@linkcode taskFields}. */
export type TurnTask = {
  [K in keyof ReturnType<typeof taskFields>]?: z.infer<ReturnType<typeof taskFields>[K]>;
};

// Schemas are created when a value is checked; a run from the command line checks none.
const NAMES: Record<keyof TurnTask, true> = {
  max_cost: true,
  max_total_tokens: true,
  max_tool_calls: true,
  max_rounds: true,
  timeout: true,
  quota_wait: true,
  verify: true,
  verify_rounds: true,
  schema: true,
};

/** The fields of a task among others, without the missing ones. */
export function taskOf(given: TurnTask): TurnTask {
  const names = Object.keys(NAMES) as (keyof TurnTask)[];
  return Object.fromEntries(
    names.flatMap((name) => given[name] === undefined ? [] : [[name, given[name]]]),
  );
}

/** A message of a person into a running turn. */
export interface TurnMessage {
  text: string;
  /** Files for the model. Default: none */
  attachments?: NewAttachment[];
}
