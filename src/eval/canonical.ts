import { relative, resolve } from "node:path";
import type { ToolArguments } from "../plugins/api.ts";
import type { ToolRegistry } from "../tools/registry.ts";
import type { Fixture } from "./fixture.ts";
import type { TraceCall } from "./judge.ts";

/**
 * A fixture and a run's calls in the same words: old names of tools and parameters are the canonical ones
 * (specification 9.7), and `./notes.txt` or its absolute path is `notes.txt`.
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
