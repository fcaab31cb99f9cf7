import { join } from "node:path";
import { SvcError } from "../platform/error.ts";
import { runProcess } from "../platform/process.ts";
import type { PluginSource } from "./source.ts";

/** Seconds. */
const LIMIT = 600;

/**
 * What holds over any configuration: no hooks, no credential helper, no program beside ssh and Git's own. The
 * user's settings for the network (proxies, certificates) stay.
 */
const SETTINGS = {
  "core.hooksPath": "/dev/null",
  "core.fsmonitor": "false",
  "core.askPass": "",
  "core.autocrlf": "false",
  "core.sshCommand": "ssh -o BatchMode=yes",
  "credential.helper": "",
  "credential.interactive": "false",
  "filter.lfs.process": "",
  "filter.lfs.smudge": "",
  "filter.lfs.required": "false",
  "init.templateDir": "",
  "submodule.recurse": "false",
  "fetch.recurseSubmodules": "false",
  "gc.auto": "0",
  "maintenance.auto": "false",
  "advice.detachedHead": "false",
};

/**
 * Clones the newest state of a repository into `folder`, which must not exist, without its history.
 *
 * @throws SvcError `plugin_clone` with what Git said.
 */
export async function clone(
  source: Extract<PluginSource, { kind: "git" }>,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const { code, output, cancelled, timed_out } = await runProcess({
    command: cloneCommand(source, folder),
    cwd: "/",
    timeout: LIMIT,
    env: {
      GIT_ALLOW_PROTOCOL: source.protocol,
      GIT_ASKPASS: "",
      SSH_ASKPASS: "",
      GIT_TERMINAL_PROMPT: "0",
      GIT_SSH_COMMAND: "ssh -o BatchMode=yes",
      GIT_TEMPLATE_DIR: "",
      LC_ALL: "C.UTF-8",
    },
    max_output: 20_000,
  }, signal);
  if (cancelled) throw new SvcError("cancelled", "Cancelled.", { exit: 130 });
  if (code !== 0) {
    const said = timed_out ? `it took longer than ${LIMIT / 60} minutes` : complaint(output);
    throw new SvcError("plugin_clone", `${source.text} could not be cloned: ${said}.`);
  }
  Deno.removeSync(join(folder, ".git"), { recursive: true });
}

/** The command line of a clone: whatever the source is called stands behind `--`. */
export function cloneCommand(
  { url, ref }: Extract<PluginSource, { kind: "git" }>,
  folder: string,
): string[] {
  return [
    "git",
    ...Object.entries(SETTINGS).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    "clone",
    ...["--quiet", "--depth=1", "--single-branch", "--no-tags", "--no-recurse-submodules"],
    ...(ref === "" ? [] : [`--branch=${ref}`]),
    "--",
    url,
    folder,
  ];
}

function complaint(output: string): string {
  const lines = output.split("\n").map((line) => line.trim()).filter(Boolean);
  const line = lines.find((line) => /^(fatal|error):/.test(line)) ?? lines.at(-1) ??
    "no reason given";
  return line.replace(/^(fatal|error): /, "").replace(/\.$/, "");
}
