import { join } from "node:path";
import type { Workspace } from "../engine/workspace.ts";
import { exists } from "../platform/files.ts";
import { usageError } from "../platform/error.ts";
import { oneLine } from "../platform/terminal.ts";
import { type Opening, pluginOpening } from "../policy/openings.ts";
import { defineCommand, outputOption, pathOption } from "./command.ts";
import { listText, printLists } from "./format.ts";
import { type Io, toJson } from "./io.ts";
import { openWorkspace } from "./workspace.ts";
import { argument, command, multiple, option, string } from "./options.ts";

const show = command(
  "show",
  {
    action: "show",
    accept: option(
      "--accept",
      "Trust the named openings as they are now; without a name, all of them.",
    ),
    folder: option("--folder", "Trust whatever comes in this worktree, for projects of your own."),
    revoke: option("--revoke", "Trust the named openings no longer; without a name, nothing here."),
    ids: multiple(
      argument(string("ID"), "Openings, such as plugin:word-tools or setting:serve.hosts."),
    ),
    output: outputOption,
    path: pathOption,
  },
  "Show what the worktree's .svc would open, without running any of it; on a terminal, ask " +
    "whether to trust it (the default).",
);

const list = command(
  "list",
  { action: "list", output: outputOption, path: pathOption },
  "List the worktrees in which something is trusted.",
);

/** `svc trust`: the openings of a worktree, and which of them are accepted. */
export const trust = defineCommand({
  parser: command("trust", [show, list], "Show and accept what a worktree's own files would open."),
  bare: "show",
  examples: [
    "svc trust",
    "svc trust --accept",
    "svc trust --accept plugin:word-tools setting:tool_permission.bash",
    "svc trust --folder",
    "svc trust --revoke",
    "svc trust list --output json",
  ],
  async run(values, io) {
    const workspace = openWorkspace(values.path, io);
    const { trust } = workspace;
    if (values.action === "list") {
      const worktrees = [...trust.worktrees()].map(([path, { folder = false, accepted = {} }]) => ({
        path,
        folder,
        accepted: Object.keys(accepted),
      }));
      const rows = worktrees.map(({ path, folder, accepted }) => [
        path,
        folder ? "everything" : accepted.join(", "),
      ]);
      if (values.output === "json") io.out(toJson(worktrees, 2) + "\n");
      else printLists(io, listText(io, ["WORKTREE", "TRUSTED"], rows));
      return 0;
    }
    const { accept, folder, revoke, ids } = values;
    if ([accept, folder, revoke].filter(Boolean).length > 1) {
      throw usageError("usage", "--accept, --folder and --revoke exclude each other.");
    }
    const before = await openingsOf(workspace);
    const chosen = ids.length === 0 ? before : ids.map((id) => {
      const found = before.find((opening) => opening.id === id);
      if (found !== undefined || revoke) return found ?? { id };
      throw usageError(
        "unknown_opening",
        `This worktree has no opening ${JSON.stringify(id)}.`,
        "See them with: svc trust",
      );
    });
    if (revoke) await trust.revoke(ids);
    else if (folder) await trust.acceptFolder();
    else if (accept) await acceptAll(workspace, chosen as StatedOpening[], io);
    const openings = accept || folder || revoke ? await openingsOf(workspace) : before;
    if (values.output === "json") {
      const shown = openings.map(({ id, text, digest, state }) => ({
        id,
        kind: id.slice(0, id.indexOf(":")),
        state,
        digest: digest() ?? null,
        text,
      }));
      const { worktree } = workspace.paths;
      io.out(toJson({ worktree, folder: trust.everything, openings: shown }, 2) + "\n");
      return 0;
    }
    printLists(io, openingsTable(openings, io));
    if (trust.everything) io.note("Everything in this worktree is trusted.");
    else if (openings.length === 0) io.note("This worktree opens nothing.");
    if (!accept && !folder && !revoke && io.isTerminal("in")) {
      await askTrust(workspace, io, openings);
    }
    return 0;
  },
});

/** An opening, and whether the user has accepted it: `changed` since, or `new`. */
export type StatedOpening = Opening & { state: "accepted" | "changed" | "new" };

/** All openings of a worktree. None of its code is imported, except that of trusted plugins. */
export async function openingsOf(workspace: Workspace): Promise<StatedOpening[]> {
  const { trust, paths: { state } } = workspace;
  const has = (name: string) => exists(join(state, name));
  const found: Opening[] = [];
  if (has("plugins")) {
    const { discoverPlugins } = await import("../plugins/discovery.ts");
    const all = { ...workspace.discovery, enabled: [], trusts: () => true };
    const plugins = await discoverPlugins(all);
    const local = plugins.filter(({ origin, status }) => origin === "local" && status === "loaded");
    found.push(...local.map(pluginOpening));
  }
  found.push(...trust.settings());
  if (has("roles.json") || has("teams.json")) {
    await workspace.load({ roles: "all", teams: "all" }); // the lower layers of an entry
    found.push(...await workspace.entryOpenings());
  }
  if (has("jobs.json")) {
    const { jobContext, jobOpening } = await import("../jobs/context.ts");
    found.push(...jobContext(workspace).register.list().map(jobOpening));
  }
  if (has("fleet.json")) {
    const { agentOpening, Roster } = await import("../fleet/roster.ts");
    const agents = new Roster(state, trust, workspace.warn).read()?.agents ?? [];
    found.push(...agents.filter(({ command }) => command !== undefined).map(agentOpening));
  }
  if (has("eval")) {
    const { fixtureOpening, loadFixtures } = await import("../eval/fixture.ts");
    const accepts = () => true;
    const folders = [join(state, "eval")];
    const fixtures = loadFixtures({ plugins: [], folders, accepts, warn: () => {} });
    found.push(...fixtures.flatMap((each) => fixtureOpening(workspace.config, each) ?? []));
  }
  return found.map((opening) => ({ ...opening, state: trust.stateOf(opening) }));
}

/** One line for each opening: id, state, text. */
export function openingsTable(openings: StatedOpening[], io: Io): string {
  const rows = openings.map(({ id, state, text }) => [oneLine(id), state, oneLine(text)]);
  return listText(io, ["OPENING", "STATE", "OPENS"], rows);
}

/** Asks the operator whether to trust the openings that are not accepted; a refusal is remembered until they change. */
export async function askTrust(
  workspace: Workspace,
  io: Io,
  openings: StatedOpening[],
): Promise<void> {
  const left = openings.filter(({ state }) => state !== "accepted");
  if (left.length === 0) return;
  if (await io.confirm("Trust this from now on?")) await acceptAll(workspace, left, io);
  else await workspace.trust.decline(left);
}

/**
 * Before the first prompt of a terminal session: shows the openings that are new, and asks once.
 *
 * @returns the openings that are not trusted
 */
export async function askAtStart(workspace: Workspace, io: Io): Promise<string[]> {
  const openings = (await openingsOf(workspace)).filter(({ state }) => state !== "accepted");
  const left = () =>
    openings.filter((each) => workspace.trust.stateOf(each) !== "accepted").map(({ id }) => id);
  if (openings.length === 0 || workspace.trust.declined(openings)) return left();
  io.note(`${workspace.paths.state} would open this, and it is not trusted:`);
  printLists(io, openingsTable(openings, io));
  io.note("Without trust it is left out, and everything else counts. /trust shows it again.");
  await askTrust(workspace, io, openings);
  return left();
}

async function acceptAll(workspace: Workspace, openings: StatedOpening[], io: Io): Promise<void> {
  await workspace.trust.accept(openings);
  for (const { id, digest } of openings) {
    if (!workspace.trust.everything && digest() === undefined) {
      io.note(
        `${id} is too large or has links that lead out of it; trust it with: svc trust --folder`,
      );
    }
  }
  workspace.config.reload();
  (await workspace.catalog()).reload();
}
