import { fileURLToPath } from "node:url";
import { grep } from "../plugins/svc-core-fs/src/grep_tool.ts";
import { runProcess } from "../src/platform/process.ts";
import type { ToolContext } from "../src/plugins/api.ts";
import { WorktreeGuard } from "../src/policy/paths.ts";
import { FILES, makeTree, MATCHES, NEEDLE } from "./search_tree.ts";
import { buildFlags } from "../tests/support/flags.ts";
import versions from "./peers.json" with { type: "json" };

/** Median times of a search through 20,000 files, in ms, and the median ratio of the pairs. */
export interface FileSearchFigures {
  files: number;
  runs: number;
  svc_ms: number;
  ripgrep_ms: number;
  ratio: number;
  ripgrep: string;
}

const PACKAGE = "@vscode/ripgrep-linux-x64";
const RIPGREP = fileURLToPath(new URL(`peers/node_modules/${PACKAGE}/bin/rg`, import.meta.url));
const RUNS = 15;
const GREP = grep();

/**
 * Searches one tree alternately with the tool `grep` and with ripgrep, from the start of its process to its end. The
 * first pair is not counted. Undefined when ripgrep is not installed. The tool is called in a process of its own, since
 * what the harness has in memory would slow it down.
 *
 * @throws Error when a search does not find all matches.
 */
export async function fileSearch(root: string): Promise<FileSearchFigures | undefined> {
  if (!await Deno.stat(RIPGREP).then(() => true, () => false)) return undefined;
  await Deno.chmod(RIPGREP, 0o755);
  makeTree(root);
  const { success, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", ...buildFlags(), fileURLToPath(import.meta.url), root],
    stderr: "inherit",
  }).output();
  if (!success) throw new Error("the search failed");
  return JSON.parse(new TextDecoder().decode(stdout));
}

if (import.meta.main) {
  // deno-lint-ignore no-console
  console.log(JSON.stringify(await measure(Deno.args[0]!)));
}

async function measure(root: string): Promise<FileSearchFigures> {
  const worktree = await Deno.realPath(root);
  const pairs: [number, number][] = [];
  for (let i = 0; i <= RUNS; i++) {
    const pair: [number, number] = [
      await timed(() => ownSearch(worktree)),
      await timed(() => ripgrep(worktree)),
    ];
    if (i > 0) pairs.push(pair);
  }
  return {
    files: FILES,
    runs: RUNS,
    svc_ms: median(pairs.map(([own]) => own)),
    ripgrep_ms: median(pairs.map(([, theirs]) => theirs)),
    ratio: median(pairs.map(([own, theirs]) => own / theirs)),
    ripgrep: versions[PACKAGE],
  };
}

async function ownSearch(worktree: string): Promise<string> {
  const { signal } = new AbortController();
  const [state, user] = [`${worktree}/.svc`, `${worktree}/.config/svc`];
  const context: ToolContext = {
    config: { get: () => undefined },
    paths: new WorktreeGuard({ worktree, state, user }).callPaths([]),
    signal,
    session: "bench",
    key: () => "",
    run: (request) => runProcess(request, signal),
  };
  return await GREP.handler({ pattern: NEEDLE }, context);
}

async function ripgrep(worktree: string): Promise<string> {
  const { stdout } = await new Deno.Command(RIPGREP, {
    args: ["--no-config", "--line-number", NEEDLE, "."],
    cwd: worktree,
    stdin: "null",
  }).output();
  return new TextDecoder().decode(stdout).trimEnd();
}

async function timed(search: () => Promise<string>): Promise<number> {
  const start = performance.now();
  const lines = (await search()).split("\n");
  const ms = performance.now() - start;
  if (lines.length !== MATCHES) throw new Error(`${lines.length} of ${MATCHES} matches found`);
  return ms;
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}
