import type { Run, RunRegistry } from "./runs.ts";

/**
 * The run that a target means, seen from a run (specification 3.6): `root`, `#<run>`, `#<id>`,
 * `session:<name>` or a name as {@linkcode RunRegistry.resolve} knows them, or a step through the tree.
 * `child` is the newest one; `sibling` the next of the same parent, after the last the first; `next` and
 * `prev` go through all runs in the order of their creation.
 */
export function targetRun(runs: RunRegistry, from: number, target: string): Run | undefined {
  const at = (id: number | undefined) => id === undefined ? undefined : runs.resolve(`#${id}`);
  const here = at(from);
  switch (target) {
    case "parent":
      return at(here?.parent || undefined);
    case "child":
      return at(here?.children.at(-1));
    case "sibling": {
      const siblings = at(here?.parent || undefined)?.children ?? [];
      const next = siblings[(siblings.indexOf(from) + 1) % siblings.length];
      return next === from ? undefined : at(next);
    }
    case "next":
      return at(from + 1);
    case "prev":
      return from > 1 ? at(from - 1) : undefined;
    default:
      return runs.resolve(target);
  }
}
