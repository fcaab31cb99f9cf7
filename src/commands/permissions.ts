import { oneLine } from "../platform/terminal.ts";
import { report } from "../policy/deno_permissions.ts";
import { type PolicySettings, policySettings } from "../policy/settings.ts";
import type { Workspace } from "../engine/workspace.ts";
import { defineCommand, textOption } from "./command.ts";
import { listText, printLists } from "./format.ts";
import { toJson } from "./io.ts";
import { pathOption } from "./command.ts";
import { openWorkspace } from "./workspace.ts";
import { nameOf } from "./names.ts";
import { choice, command, option, withDefault } from "./options.ts";

/** What the policy says in addition to the categories. */
function lists(
  { bash_allow, allow, deny }: PolicySettings,
  config: Workspace["config"],
): [title: string, entries: string[]][] {
  const network = config.get("sandbox.network") ? [] : ["none"];
  return [
    ["commands that run unasked (bash_allow)", bash_allow],
    ["only these tools (tools.allow)", allow],
    ["never these tools (tools.deny)", deny],
    [
      "who answers questions (ask_policy)",
      Object.entries(config.get("ask_policy"))
        .map(([kind, policy]) => `${kind} ${policy}`),
    ],
    ["network of commands (sandbox.network)", network],
    ["also written by commands (sandbox.write)", config.get("sandbox.write")],
    ["variables of commands (sandbox.env)", config.get("sandbox.env")],
    ["private hosts of web tools (web.allow_private)", config.get("web.allow_private")],
  ];
}

/** `svc permissions`: the policy's categories and the Deno permissions behind them. */
export const permissions = defineCommand({
  parser: command(
    "permissions",
    {
      mode: textOption(
        "--mode",
        nameOf("modes", "MODE"),
        "Show another mode than the configured one.",
      ),
      output: withDefault(
        option("--output", choice(["table", "json"]), "Default: table."),
        "table",
      ),
      path: pathOption,
    },
    "Show each tool category, what the policy answers, which Deno permission stands behind it, " +
      "and whether this process holds that permission.",
  ),
  examples: ["svc permissions", "svc permissions --mode plan --output json"],
  async run({ mode, output, path }, io) {
    const workspace = openWorkspace(path, io, mode === undefined ? {} : { mode });
    await workspace.load({ tools: "all" });
    const { config, tools, sandbox } = workspace;
    const settings = policySettings(config, config.get("mode"));
    const rows = report(settings, tools.list());
    const action = config.get("sandbox.mode");
    const state = await sandbox.kind() ?? "none";
    rows.push({ category: "(sandbox)", action, permission: "", state });
    for (const action of ["allow", "deny"] as const) {
      const row = { category: `(tools.${action})`, action, permission: "", state: "" };
      rows.push(...settings[action].map((entry) => ({ ...row, entry, opens: "" })));
    }
    const { openingsOf, openingsTable } = await import("./trust.ts");
    const openings = await openingsOf(workspace);
    if (output === "json") {
      rows.push(...openings.map(({ id, state, text }) => (
        { category: "(opening)", action: state, permission: "", state: "", entry: id, opens: text }
      )));
      io.out(toJson(rows, 2) + "\n");
      return 0;
    }
    const shown = rows.filter(({ entry }) => entry === undefined).map((row) => [
      oneLine(row.category), // comes from a file
      row.action,
      row.permission,
      row.state,
    ]);
    const head = ["CATEGORY", "ACTION", "DENO", "STATE"];
    printLists(io, listText(io, head, shown, { always: true }));
    io.out(`\nmode: ${oneLine(settings.mode)}\n`);
    for (const [title, list] of lists(settings, config)) {
      if (list.length > 0) io.out(`${title}: ${list.map(oneLine).join(", ")}\n`);
    }
    const approvals = io.approvals?.() ?? [];
    if (approvals.length > 0) io.out("\nYou allowed until this session ends:\n");
    for (const each of approvals) io.out(`  ${oneLine(each)}\n`);
    const wide = rows.filter(({ opens = "" }) => opens !== "");
    if (wide.length > 0) io.out("\nEntries of bash_allow that open more than they name:\n");
    for (const { entry = "", opens } of wide) io.out(`  ${oneLine(entry)}: ${opens}\n`);
    if (openings.length > 0) {
      io.out(`\nopenings of this worktree (${io.program}trust):\n${openingsTable(openings, io)}`);
    }
    return 0;
  },
});
