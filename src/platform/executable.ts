import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Environment } from "./environment.ts";
import { readTextIfExists } from "./files.ts";

/**
 * The command line of this very program, to be followed by its arguments: the executable, also one that was
 * replaced by a newer one meanwhile, or the source under Deno with the same permissions.
 */
export function ownCommand(environment: Environment): string[] {
  if (Deno.build.standalone) return [Deno.execPath()];
  // The archive of compile.sh says where it lies: what it has unpacked may be gone by the time it is used.
  const archive = environment.get("SVC_EXECUTABLE");
  const main = fileURLToPath(Deno.mainModule);
  const flags = readTextIfExists(join(dirname(main), "permissions", "build.flags"));
  if (flags === undefined && archive !== undefined) return [archive];
  return [Deno.execPath(), "run", ...(flags ?? "").trim().split("\n"), main];
}
