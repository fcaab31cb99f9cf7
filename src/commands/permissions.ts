import { command, option } from "@optique/core/primitives";
import { object } from "@optique/core/constructs";
import { withDefault } from "@optique/core/modifiers";
import { choice } from "@optique/core/valueparser";
import { oneLine, stripControl } from "../platform/terminal.ts";
import { report } from "../policy/deno_permissions.ts";
import { policySettings } from "../policy/settings.ts";
import { defineCommand, text, textOption } from "./command.ts";
import { toJson } from "./io.ts";
import { pathOption } from "./command.ts";
import { openWorkspace } from "./workspace.ts";
import { nameOf } from "./names.ts";

/** `svc permissions`: the policy's categories and the Deno permissions behind them. */
export const permissions = defineCommand({
  parser: command(
    "permissions",
    object({
      mode: textOption(
        "--mode",
        nameOf("modes", "MODE"),
        "Show another mode than the configured one.",
      ),
      output: withDefault(
        option("--output", choice(["table", "json"]), { description: text("Default: table.") }),
        "table",
      ),
      path: pathOption,
    }),
    {
      description: text(
        "Show each tool category, what the policy answers, which Deno permission stands behind it, " +
          "and whether this process holds that permission.",
      ),
    },
  ),
  examples: ["svc permissions", "svc permissions --mode plan --output json"],
  async run({ mode, output, path }, io) {
    const workspace = openWorkspace(path, io, mode === undefined ? {} : { mode });
    await workspace.load({ tools: "all" });
    const rows = report(
      policySettings(workspace.config, workspace.config.get("mode")),
      workspace.tools.list(),
    );
    const action = workspace.config.get("sandbox.mode");
    const state = await workspace.sandbox.kind() ?? "none";
    rows.push({ category: "(sandbox)", action, permission: "", state });
    const { openingsOf, openingsTable } = await import("./trust.ts");
    const openings = await openingsOf(workspace);
    if (output === "json") {
      rows.push(...openings.map(({ id, state, text }) => (
        { category: "(opening)", action: state, permission: "", state: "", entry: id, opens: text }
      )));
      io.out(toJson(rows, 2) + "\n");
      return 0;
    }
    const header = { category: "category", action: "action", permission: "deno", state: "state" };
    for (const row of [header, ...rows.filter(({ entry }) => entry === undefined)]) {
      const category = stripControl(row.category).replace(/\s+/g, " "); // comes from a file
      io.out(
        `${category.padEnd(12)}${row.action.padEnd(8)}${row.permission.padEnd(12)}${row.state}\n`,
      );
    }
    const wide = rows.filter(({ opens = "" }) => opens !== "");
    if (wide.length > 0) io.out("\nEntries of bash_allow that open more than they name:\n");
    for (const { entry = "", opens } of wide) io.out(`  ${oneLine(entry)}: ${opens}\n`);
    if (openings.length > 0) {
      io.out(`\nopenings of this worktree (svc trust):\n${openingsTable(openings)}`);
    }
    return 0;
  },
});
