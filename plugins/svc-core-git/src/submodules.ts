import { join } from "node:path";
import type { ToolContext } from "../../../src/plugins/api.ts";
import { complaint, runGit } from "./run.ts";
import { UsageError } from "./usage_error.ts";

/** The folders of submodules that are there, among `places` or anywhere in a repository. */
export async function submodules(
  top: string,
  places: string[],
  context: ToolContext,
): Promise<string[]> {
  const asked = ["ls-files", "--stage", "-z", ...places.length > 0 ? ["--", ...places] : []];
  const limits = { max_output: 2 * MAX_INDEX, errors: false } as const;
  const { code, output } = await runGit(asked, [], top, context, limits);
  if (code !== 0) {
    const why = complaint(await runGit(asked, [], top, context));
    throw new UsageError(why || "the list of the repository's files cannot be read");
  }
  if (output.length > MAX_INDEX) throw new UsageError("these are too many files; name fewer");
  return output.split("\0")
    .filter((entry) => entry.startsWith(SUBMODULE))
    .map((entry) => join(top, entry.slice(entry.indexOf("\t") + 1)))
    .filter(isThere);
}

/** The mode of its entry. */
const SUBMODULE = "160000 ";
/** Characters of a list of files: some 300,000 of them. */
const MAX_INDEX = 32_000_000;

function isThere(folder: string): boolean {
  try {
    return Deno.statSync(folder).isDirectory;
  } catch {
    return false;
  }
}
