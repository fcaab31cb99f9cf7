import { COMMANDS } from "./commands/table.ts";

/** `svc asks` as it is called here: `/asks`. */
export function asSlash(text: string): string {
  return text.replace(
    /\bsvc ([a-z]+)\b/g,
    (all, name) => Object.hasOwn(COMMANDS, name) ? `/${name}` : all,
  );
}
