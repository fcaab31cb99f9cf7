import { nearest, type SvcError, usageError } from "../platform/error.ts";
import type { Entry } from "./merge.ts";
import type { Scope } from "./place.ts";
import type { Kind } from "./schema.ts";

export function existing(kind: Kind, scope: Scope, name: string): SvcError {
  return usageError(
    "catalog_exists",
    `There is a ${scope} ${kind} ${name} already.`,
    "Pass --force to replace it.",
  );
}

export function notInLayer(kind: Kind, scope: Scope, { name, layers }: Entry<unknown>): SvcError {
  const other = layers.findLast((layer) => layer === "global" || layer === "local");
  return usageError(
    "not_in_layer",
    `There is no ${scope} ${kind} ${name}; this one is ${layers.join(" and ")}.`,
    other === undefined
      ? "What is bundled or a plugin's cannot be removed, only overridden."
      : `Remove it from the ${other} ${kind}s.`,
  );
}

export function unknownEntry(kind: Kind, name: string, known: string[]): SvcError {
  const guess = nearest(name, known);
  return usageError(
    `unknown_${kind}`,
    `There is no ${kind} ${JSON.stringify(name.slice(0, 80))}.`,
    guess === undefined ? `\`svc ${kind}s list\` shows those there are.` : `Did you mean ${guess}?`,
  );
}

export function brokenEntry(kind: Kind, name: string, reason: string): SvcError {
  return usageError(
    `broken_${kind}`,
    `The ${kind} ${name} cannot be used: ${reason}`,
    "What is left of it might lack what that part was to deny. Correct the file.",
  );
}
