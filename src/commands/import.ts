import { basename, join, resolve } from "node:path";
import type { Scope } from "../catalog/files.ts";
import { usageError } from "../platform/error.ts";
import { exists, lstatIfExists } from "../platform/files.ts";
import { oneLine } from "../platform/terminal.ts";
import { defineCommand, outputOption, pathOption } from "./command.ts";
import { table } from "./format.ts";
import { importPolyglav, type ImportReport } from "./import_polyglav.ts";
import type { Item } from "./import_source.ts";
import { type Io, toJson } from "./io.ts";
import { pathOf } from "./names.ts";
import { openWorkspace } from "./workspace.ts";
import { command, option, optional } from "./options.ts";

const polyglav = command(
  "polyglav",
  {
    action: "polyglav",
    from: optional(
      option(
        "--from",
        pathOf("DIR"),
        "The worktree that has the folder .polyglav; default: the worktree.",
      ),
    ),
    apply: option("--apply", "Import; without it, only show what would be imported."),
    output: outputOption,
    path: pathOption,
  },
  "Import what polyglav has in a worktree and in ~/.config/polyglav: sessions, jobs, questions, roles, " +
    "teams, skills, memory, agents, settings, and connections without keys. What svc has stays as it is.",
);

/** `svc import`: the files of other programs. */
export const importFiles = defineCommand({
  parser: command("import", [polyglav], "Import the files of another program."),
  bare: "polyglav",
  examples: [
    "svc import polyglav",
    "svc import polyglav --apply",
    "svc import polyglav --from ~/old-project --output json",
  ],
  async run({ from, apply, output, path }, io) {
    const workspace = openWorkspace(path, io);
    const source = sourceOf(from, workspace.paths.worktree, io);
    const report = await importPolyglav(workspace, source, apply);
    if (output === "json") io.out(toJson({ applied: apply, ...report }, 2) + "\n");
    else print(report, apply, workspace.trust.everything, io);
    return report.items.some(({ state }) => FAULTS.includes(state)) ? 1 : 0;
  },
});

const FAULTS: Item["state"][] = ["unreadable", "failed"];

/** @throws SvcError `nothing_to_import` (exit 2) */
function sourceOf(
  from: string | undefined,
  worktree: string,
  { environment }: Io,
): Partial<Record<Scope, string>> {
  const folder = resolve(environment.cwd, from ?? worktree);
  const local = basename(folder) === ".polyglav" ? folder : join(folder, ".polyglav");
  const global = join(environment.home, ".config", "polyglav");
  const [own, user] = [local, global].map((path) => lstatIfExists(path)?.isDirectory === true);
  if (own || from === undefined && user) {
    return { ...own && { local }, ...user && { global } };
  }
  throw usageError(
    "nothing_to_import",
    exists(local)
      ? `${local} is no folder; links are not followed.`
      : `There is no folder ${local}.`,
    "Name the worktree that has it with --from DIR.",
  );
}

function print({ items, openings }: ImportReport, apply: boolean, trusted: boolean, io: Io): void {
  const rows = (states: Item["state"][]) =>
    items.filter(({ state }) => states.includes(state)).map(({ kind, name, scope, state, note }) =>
      [kind, name, scope, state.replace("_", " "), note].map(oneLine)
    );
  const width = io.columns?.() ?? Infinity;
  const sections: [title: string, rows: string[][]][] = [
    ["", rows(["new", "imported", "exists"])],
    ["Not imported:", rows(["left_out", "incompatible", "unreadable", "failed"])],
    ["Opens:", openings.map(({ id, scope, text }) => [id, scope, text].map(oneLine))],
  ];
  for (const [title, found] of sections.filter(([, found]) => found.length > 0)) {
    io.out((title === "" ? "" : `\n${title}\n\n`) + table(found, width));
  }
  const count = (...states: Item["state"][]) => rows(states).length;
  const kept = `${count("exists")} exist, ${
    items.length - count("new", "imported", "exists")
  } cannot be imported`;
  io.note(
    apply
      ? `${count("imported")} imported, ${kept}.`
      : `${count("new")} can be imported, ${kept}. Nothing is written yet; import with --apply.`,
  );
  const local = openings.some(({ scope }) => scope === "local");
  if (openings.some(({ scope }) => scope === "global")) {
    io.note("What your own settings (global) open has effect at once.");
  }
  if (local && trusted) {
    io.note("This worktree is trusted as a whole: what it opens has effect at once.");
  } else if (local) {
    io.note("What the worktree (local) opens is left out until you trust it: svc trust");
  }
}
