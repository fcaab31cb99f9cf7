import { relative, resolve } from "node:path";
import type { ToolArguments } from "../plugins/api.ts";
import type { ToolRegistry } from "../tools/registry.ts";
import type { Fixture } from "./fixture.ts";

/** One tool call of a run. */
export interface TraceCall {
  name: string;
  arguments: Record<string, unknown>;
  is_error: boolean;
}

/** The verdict on the calls of a run. */
export interface Verdict {
  /** Share of `expected` that was called in that order, 0 to 1. */
  accuracy: number;
  pass: boolean;
  /** Calls that repeat an earlier one with the same arguments. */
  redundant: number;
  /** Failed calls. */
  errors: number;
  /** Why it did not pass, one phrase each. */
  reasons: string[];
}

/** Judges the tool calls of a run by the fixture. */
export function judge({ expected, verifier }: Fixture, calls: TraceCall[]): Verdict {
  const names = calls.map(({ name }) => name);
  const accuracy = expected.length === 0 ? 1 : inOrder(expected, names) / expected.length;
  const { exact, must_include, avoid, min_calls = 0, max_calls = Infinity, args } = verifier;
  const reasons = [
    ...accuracy < 1 ? [`expected ${expected.join(", ")}`] : [],
    ...exact && names.join() !== expected.join() ? ["made other calls than the expected ones"] : [],
    ...must_include.filter((name) => !names.includes(name)).map((name) => `did not call ${name}`),
    ...avoid.filter((name) => names.includes(name)).map((name) => `called ${name}`),
    ...calls.length < min_calls ? [`made ${calls.length} calls, at least ${min_calls} wanted`] : [],
    ...calls.length > max_calls ? [`made ${calls.length} calls, at most ${max_calls} wanted`] : [],
    ...Object.entries(args)
      .filter(([name, wanted]) => !calls.some((call) => call.name === name && has(call, wanted)))
      .map(([name]) => `never called ${name} with the wanted arguments`),
  ];
  const seen = calls.map(({ name, arguments: given }) => JSON.stringify([name, sorted(given)]));
  return {
    accuracy,
    pass: reasons.length === 0,
    redundant: seen.length - new Set(seen).size,
    errors: calls.filter(({ is_error }) => is_error).length,
    reasons,
  };
}

/** Length of the longest common subsequence. */
function inOrder(expected: string[], names: string[]): number {
  let row = new Array<number>(names.length + 1).fill(0);
  for (const wanted of expected) {
    const next = [0];
    for (const [at, name] of names.entries()) {
      next.push(wanted === name ? row[at]! + 1 : Math.max(row[at + 1]!, next[at]!));
    }
    row = next;
  }
  return row.at(-1)!;
}

function has({ arguments: given }: TraceCall, wanted: Record<string, unknown>): boolean {
  return Object.entries(wanted).every(([name, value]) =>
    JSON.stringify(sorted(given[name])) === JSON.stringify(sorted(value))
  );
}

/** The same value with the keys of objects in one order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1).map(([k, v]) => [k, sorted(v)]),
  );
}

/**
 * Normalises a fixture and a run's calls: old names of tools and parameters become the canonical ones
 * (specification 9.7), and paths become relative to the worktree.
 */
export function canonical(
  fixture: Fixture,
  calls: TraceCall[],
  tools: ToolRegistry,
  worktree: string,
): { fixture: Fixture; calls: TraceCall[] } {
  const nameOf = (name: string) => tools.find(name)?.name ?? name;
  const argumentsOf = (name: string, args: ToolArguments) => {
    const { param_aliases: aliases = {}, path_arg } = tools.find(name) ?? {};
    const paths = [path_arg ?? []].flat();
    return Object.fromEntries(
      Object.entries(args).map(([written, value]) => {
        const key = Object.hasOwn(aliases, written) ? aliases[written]! : written;
        const isPath = paths.includes(key) && typeof value === "string";
        return [key, isPath ? relative(worktree, resolve(worktree, value)) || "." : value];
      }),
    );
  };
  const { expected, verifier } = fixture;
  const { must_include, avoid, args } = verifier;
  return {
    fixture: {
      ...fixture,
      expected: expected.map(nameOf),
      verifier: {
        ...verifier,
        must_include: must_include.map(nameOf),
        avoid: avoid.map(nameOf),
        args: Object.fromEntries(
          Object.entries(args).map(([name, wanted]) => [nameOf(name), argumentsOf(name, wanted)]),
        ),
      },
    },
    calls: calls.map((call) => ({ ...call, arguments: argumentsOf(call.name, call.arguments) })),
  };
}
