import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { type Environment, VERSION } from "../platform/environment.ts";
import { outputOf } from "../platform/process.ts";

/** What `svc --version --verbose` prints: version, build, commit, Deno and platform, a line each. */
export async function versionReport(environment: Environment): Promise<string> {
  // compile.sh sets it: the form of the executable, its profile, and the commit.
  const [form, profile, commit] = environment.get("SVC_BUILD")?.split(" ") ?? [];
  const { os, arch } = Deno.build;
  return [
    `svc ${VERSION}`,
    `build: ${form === undefined ? "source" : `${form}, profile ${profile}`}`,
    `commit: ${commit ?? await sourceCommit()}`,
    `Deno: ${Deno.version.deno}, V8 ${Deno.version.v8}`,
    `platform: ${os} ${arch}`,
  ].join("\n") + "\n";
}

async function sourceCommit(): Promise<string> {
  const folder = dirname(fileURLToPath(Deno.mainModule));
  const commit = await outputOf(["git", "-C", folder, "rev-parse", "--short=12", "HEAD"]);
  return commit?.trim() ?? "unknown";
}
