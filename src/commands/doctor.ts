import { dirname } from "node:path";
import { configFile } from "../config/config.ts";
import type { Workspace } from "../engine/workspace.ts";
import { errorMessage, nearest, SvcError, thisProcess } from "../platform/error.ts";
import { exists } from "../platform/files.ts";
import { outputOf } from "../platform/process.ts";
import { oneLine } from "../platform/terminal.ts";
import { report } from "../policy/deno_permissions.ts";
import { Policy } from "../policy/policy.ts";
import { policySettings } from "../policy/settings.ts";
import { type Backend, displayAddress } from "../providers/resolve.ts";
import { defineCommand, outputOption, pathOption } from "./command.ts";
import { listText, printLists } from "./format.ts";
import { type Io, toJson } from "./io.ts";
import { openWorkspace } from "./workspace.ts";
import { command } from "./options.ts";

/** A line of `svc doctor`. */
interface Finding {
  /** What was examined: `configuration`, `backend`, `sandbox`, ... */
  check: string;
  /** `failed`: a run in this worktree fails, or is refused what the settings require. */
  state: "ok" | "warning" | "failed";
  text: string;
  /** What to do about it. */
  hint?: string;
}

/** Milliseconds that the backend has for its answer. */
const PATIENCE = 15_000;

/** Free bytes below which a disk is warned of, and below which a log may not be written to its end. */
const LITTLE_SPACE = 500_000_000;
const NO_SPACE = 20_000_000;

/** Milliseconds by which this machine's clock may differ from the backend's. */
const CLOCK_DIFFERENCE = 60_000;

/** `svc doctor`: examines what a run in this worktree needs. */
export const doctor = defineCommand({
  parser: command(
    "doctor",
    { output: outputOption, path: pathOption },
    "Examine what a run here needs: configuration, files, backend, model, key, clock, trust, " +
      "sandbox, Git and policy. The exit code is 1 when something failed.",
  ),
  examples: ["svc doctor", "svc doctor --output json"],
  async run({ output, path }, io) {
    const interrupt = io.onInterrupt();
    const findings: Finding[] = [];
    try {
      for await (const finding of examine(path, io, interrupt.signal)) findings.push(finding);
    } finally {
      interrupt.release();
    }
    if (output === "json") io.out(toJson(findings, 2) + "\n");
    else {
      const rows = findings.map(({ check, state, text }) => [check, state, oneLine(text)]);
      printLists(io, listText(io, ["CHECK", "STATE", "FOUND"], rows));
      for (const { check, hint } of findings) {
        if (hint !== undefined) io.note(`${check}: ${oneLine(hint)}`);
      }
    }
    if (interrupt.signal.aborted) return 130;
    return findings.some(({ state }) => state === "failed") ? 1 : 0;
  },
});

async function* examine(path: string, io: Io, signal: AbortSignal): AsyncGenerator<Finding> {
  const warnings: string[] = [];
  let workspace: Workspace;
  try {
    workspace = openWorkspace(path, { ...io, note: (line) => warnings.push(line) });
  } catch (error) {
    yield failed("configuration", error);
    return;
  }
  try {
    yield* examineWorkspace(workspace, warnings, signal);
  } finally {
    if (workspace !== io.live) await workspace.close();
  }
}

async function* examineWorkspace(
  workspace: Workspace,
  warnings: string[],
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  try {
    await workspace.load({ tools: "all", providers: "all" });
  } catch (error) {
    yield failed("configuration", error);
    return;
  }
  yield* configuration(workspace, warnings);
  yield* files(workspace);
  yield* await backend(workspace, signal);
  const { openingsOf } = await import("./trust.ts");
  const left = (await openingsOf(workspace)).filter(({ state }) => state !== "accepted");
  yield left.length === 0 ? ok("trust", "nothing of this worktree waits to be trusted") : {
    check: "trust",
    state: "warning",
    text: `left out until it is trusted: ${left.map(({ id }) => id).join(", ")}`,
    hint: "See and accept it with: svc trust",
  };
  yield await sandbox(workspace);
  yield await git(workspace);
  yield* policy(workspace);
}

function* configuration({ paths, config }: Workspace, warnings: string[]): Generator<Finding> {
  const read = (["global", "local"] as const).map((scope) => configFile(paths, scope))
    .filter(exists);
  yield ok("configuration", read.length === 0 ? "no file; all defaults" : read.join(", "));
  for (const warning of warnings) {
    yield { check: "configuration", state: "warning", text: warning.replace(/^warning: /, "") };
  }
  const tokens = config.get("serve.token_file");
  if (tokens !== "" && !exists(tokens)) {
    yield {
      check: "configuration",
      state: "warning",
      text: `serve.token_file ${tokens} does not exist`,
      hint: "Make it with: svc serve token",
    };
  }
}

/** Whether the folders of state can be written, and the space of their disks. */
async function* files({ paths }: Workspace): AsyncGenerator<Finding> {
  const folders = [
    { check: "state", folder: paths.state, worst: "failed", kept: "sessions, jobs and asks" },
    { check: "settings", folder: paths.user, worst: "warning", kept: "keys, approvals and trust" },
  ] as const;
  for (const { check, folder, worst, kept } of folders) {
    const fault = writeFault(folder);
    if (fault !== undefined) {
      yield {
        check,
        state: worst,
        text: `${folder} cannot be written (${fault}): no ${kept} are kept`,
      };
      continue;
    }
    const free = await freeSpace(folder);
    yield {
      check,
      state: free < NO_SPACE ? worst : free < LITTLE_SPACE ? "warning" : "ok",
      text: `${folder} can be written` +
        (free === Infinity ? "" : `, ${Math.round(free / 1e6)} MB are free`),
      ...free < LITTLE_SPACE && { hint: "Make space; old sessions go with: svc sessions prune" },
    };
  }
}

/** The free bytes of a folder's disk; infinite when this system does not tell. */
async function freeSpace(folder: string): Promise<number> {
  const output = await outputOf(["df", "-Pk", existing(folder)]) ?? "";
  const [, , , kilobytes = ""] = output.trimEnd().split("\n").at(-1)!.split(/\s+/);
  return /^\d+$/.test(kilobytes) ? Number(kilobytes) * 1024 : Infinity;
}

/** Why nothing can be written in a folder, which is not made for it; undefined: it can. */
function writeFault(folder: string): string | undefined {
  try {
    Deno.removeSync(Deno.makeTempFileSync({ dir: existing(folder), prefix: ".svc-doctor-" }));
    return undefined;
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : errorMessage(error);
  }
}

/** The folder, or the nearest above it that exists. */
function existing(folder: string): string {
  return exists(folder) || dirname(folder) === folder ? folder : existing(dirname(folder));
}

/** The backend that a run would use, its key and model, and whether it answers. */
async function backend(workspace: Workspace, signal: AbortSignal): Promise<Finding[]> {
  let backend: Backend;
  try {
    backend = workspace.backend();
  } catch (error) {
    return [failed("backend", error)];
  }
  const { provider, base_url, api_key, model, cls, ref } = backend;
  const findings: Finding[] = [];
  if (!cls.BUILT_IN && api_key === "") {
    const remote = base_url.startsWith("https:");
    findings.push({
      check: "key",
      state: remote ? "warning" : "ok",
      text: `none is stored for ${provider} at ${base_url}`,
      ...remote && { hint: `Store it with: svc connect ${provider}` },
    });
  } else if (!cls.BUILT_IN) findings.push(ok("key", `one is stored for ${provider}`));
  if (ref !== undefined && !workspace.models.isApproved(ref.provider, ref.model)) {
    findings.push({
      check: "approval",
      state: "failed",
      text: `${ref.provider}/${ref.model} is not approved`,
      hint: `Approve it with: svc model ${ref.provider}/${ref.model}`,
    });
  }
  const address = displayAddress(cls, base_url);
  const client = workspace.connect(backend, "");
  const late = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]);
  try {
    const offered = await client.list_models(late);
    findings.push(ok("backend", `${provider} (${address}) answers`), known(model, offered));
  } catch (error) {
    const why = late.aborted ? `no answer within ${PATIENCE / 1000} s` : errorMessage(error);
    findings.push({
      check: "backend",
      state: "failed",
      text: `${provider} (${address}): ${why}`,
      hint: error instanceof SvcError && error.hint !== ""
        ? error.hint
        : "Check the address, the key and the network.",
    });
  } finally {
    await client.close?.();
  }
  if (!cls.BUILT_IN) findings.push(...await clock(base_url, workspace.clock.now(), late));
  return findings;
}

function known(model: string, offered: string[]): Finding {
  if (
    offered.length === 0 || offered.some((each) => each === model || each === `${model}:latest`)
  ) {
    return ok("model", model);
  }
  const guess = nearest(model, offered);
  return {
    check: "model",
    state: "warning",
    text: `the backend does not list ${model}`,
    hint: guess === undefined ? "See: svc models list" : `Did you mean ${guess}?`,
  };
}

/** This machine's clock next to that of the backend; nothing when its answer has no date. */
async function clock(base_url: string, now: number, signal: AbortSignal): Promise<Finding[]> {
  try {
    const answer = await fetch(base_url, { method: "HEAD", redirect: "manual", signal });
    await answer.body?.cancel();
    const difference = now - Date.parse(answer.headers.get("date") ?? "");
    if (Number.isNaN(difference)) return [];
    const seconds = Math.round(Math.abs(difference) / 1000);
    return [
      Math.abs(difference) < CLOCK_DIFFERENCE ? ok("clock", "agrees with the backend's") : {
        check: "clock",
        state: "warning",
        text: `${seconds} s ${difference > 0 ? "ahead of" : "behind"} the backend's`,
        hint: "Jobs start by this clock; let the system synchronise it.",
      },
    ];
  } catch {
    return []; // said of the backend
  }
}

/** Where Deno's permissions let svc start no such program, installing it helps nothing. */
function closed(check: string, command: string): Finding | undefined {
  if (Deno.permissions.querySync({ name: "run", command }).state === "granted") return undefined;
  return {
    check,
    state: "warning",
    text: `${thisProcess()} has no permission to run ${command}`,
  };
}

async function sandbox({ sandbox, config }: Workspace): Promise<Finding> {
  const kind = await sandbox.kind();
  const mode = config.get("sandbox.mode");
  if (kind !== undefined && kind !== "landlock") return ok("sandbox", kind);
  const none = mode === "require" || kind !== undefined ? undefined : closed("sandbox", "bwrap");
  if (none !== undefined) return none;
  return {
    check: "sandbox",
    state: mode === "require" && kind === undefined ? "failed" : "warning",
    text: kind === undefined
      ? mode === "off" ? "off by sandbox.mode: commands run with all of your rights" : "none found"
      : "landlock, which does not hide folders or close the network",
    ...mode !== "off" && { hint: "Install bubblewrap (package bubblewrap) where programs run." },
  };
}

async function git({ paths }: Workspace): Promise<Finding> {
  const inside = await outputOf(["git", "-C", paths.worktree, "rev-parse", "--git-dir"]);
  if (inside !== undefined) return ok("git", "the worktree is in a repository");
  const none = closed("git", "git");
  if (none !== undefined) return none;
  const missing = await outputOf(["git", "--version"]) === undefined;
  return {
    check: "git",
    state: "warning",
    text: missing
      ? "the program git cannot be started: the Git tools fail"
      : "the worktree is not in a repository: the Git tools have nothing to work on",
    hint: missing ? "Install git." : "Make it one with: git init",
  };
}

/** What a headless run refuses, and entries of the policy that do nothing or more than they name. */
function* policy({ config, tools, guard }: Workspace): Generator<Finding> {
  const settings = policySettings(config, config.get("mode"));
  const policy = new Policy(settings, guard, config);
  const refused = policy.refusedWithoutApproval(tools.list().filter((tool) => policy.offers(tool)));
  yield ok(
    "policy",
    `mode ${settings.mode}; ` +
      (refused.length === 0
        ? "nothing needs an approval"
        : `without --yes, a headless run refuses ${refused.join(", ")}`),
  );
  for (const { entry = "", opens = "" } of report(settings, tools.list())) {
    if (opens === "") continue;
    yield {
      check: "policy",
      state: "warning",
      text: `bash_allow ${JSON.stringify(entry)}: ${opens}`,
    };
  }
}

function ok(check: string, text: string): Finding {
  return { check, state: "ok", text };
}

function failed(check: string, error: unknown): Finding {
  const hint = error instanceof SvcError && error.hint !== "" ? error.hint : undefined;
  return { check, state: "failed", text: errorMessage(error), ...hint && { hint } };
}
