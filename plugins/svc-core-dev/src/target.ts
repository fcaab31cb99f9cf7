import { resolve } from "node:path";
import type { ToolContext } from "../../../src/plugins/api.ts";
import { UsageError } from "./usage_error.ts";

/** What a call wants done, of all that there is. */
export interface Target {
  /** As it was said. */
  text: string;
  /** Whether it is, up to a `::`, a file or a folder that is there. */
  kind: "file" | "folder" | "name";
}

/**
 * Looks at what a call names. A place has to lie in the worktree, whatever links lead there; a name is
 * only a name, and neither an option nor an address.
 *
 * @throws UsageError for what is no target; as `paths.resolve` does for a place elsewhere.
 */
export function targetOf(text: string, folder: string, { paths }: ToolContext): Target {
  const path = text.split("::")[0]!;
  // deno-lint-ignore no-control-regex
  const odd = text.trim() === "" || text.startsWith("-") || /[\x00-\x1f\x7f]/.test(text);
  const hidden = /[{}]/.test(path) && path.includes(".."); // for a runner that expands it
  if (odd || hidden || /^[a-z][\w+.-]*:\//i.test(text)) {
    throw new UsageError(`${JSON.stringify(text.slice(0, 80))} is no target`);
  }
  const real = paths.resolve(resolve(folder, path));
  try {
    return { text, kind: Deno.statSync(real).isDirectory ? "folder" : "file" };
  } catch {
    return { text, kind: "name" };
  }
}
