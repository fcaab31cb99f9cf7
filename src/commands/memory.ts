import { type Memory, SCOPES } from "../memory/memory.ts";
import { nearest, type SvcError, usageError } from "../platform/error.ts";
import { stripControl } from "../platform/terminal.ts";
import { defineCommand, outputOption, pathOption } from "./command.ts";
import { listText, printLists } from "./format.ts";
import { type Io, toJson } from "./io.ts";
import { openShared } from "./workspace.ts";
import { argument, choice, command, string } from "./options.ts";

const whose = {
  scope: argument(choice(SCOPES, "SCOPE"), "role, team or job."),
  name: argument(string("NAME")),
  path: pathOption,
};

/** `svc memory` (specification 2.12): what roles, teams and jobs remember from run to run. */
export const memory = defineCommand({
  parser: command("memory", [
    command(
      "list",
      { action: "list", output: outputOption, path: pathOption },
      "List the memories and their times.",
    ),
    command(
      "show",
      { action: "show", ...whose, output: outputOption },
      "Show what a role, team or job remembers.",
    ),
    command("clear", { action: "clear", ...whose }, "Delete the memory of a role, team or job."),
  ], "Show and clear what roles, teams and jobs remember from run to run."),
  bare: "list",
  examples: ["svc memory", "svc memory show role programmer", "svc memory clear job nightly"],
  async run(values, io) {
    const { memory, config } = await openShared(values.path, io);
    if (values.action === "list") {
      const all = memory.list();
      if (values.output === "json") io.out(toJson(all, 2) + "\n");
      else printLists(io, memories(all, io));
      if (all.length === 0 && values.output !== "json") {
        io.note("Nothing is remembered in this worktree.");
      }
      if (!config.get("memory_enabled")) {
        io.note("Memory is switched off (setting memory_enabled).");
      }
      return 0;
    }
    const { scope, name } = values;
    if (values.action === "clear") {
      if (!await memory.clear(scope, name)) throw nothing(values, memory.list());
      io.note(`The ${scope} ${name} has forgotten what it knew of earlier runs.`);
      return 0;
    }
    memory.path(scope, name); // rejects invalid names and links out of the folder
    const found = memory.list().find((each) => each.scope === scope && each.name === name);
    if (found === undefined) throw nothing(values, memory.list());
    print(found, values.output, io);
    return 0;
  },
});

function print(found: Memory, output: "text" | "json", io: Io): void {
  io.out(output === "json" ? toJson(found, 2) + "\n" : stripControl(found.text) + "\n");
}

function nothing(
  { scope, name }: { scope: string; name: string },
  known: readonly Memory[],
): SvcError {
  const names = known.filter((each) => each.scope === scope).map((each) => each.name);
  const guess = nearest(name, names);
  return usageError(
    "no_memory",
    `The ${scope} ${JSON.stringify(name)} remembers nothing.`,
    guess === undefined
      ? "See what is remembered with: svc memory list"
      : `Did you mean "${guess}"?`,
  );
}

/** One line each: scope, name, when, and the first line. */
function memories(all: readonly Memory[], io: Io): string {
  const rows = all.map(({ scope, name, updated_at, text }) => {
    const line = text.split("\n", 1)[0]!.slice(0, 100).toWellFormed();
    return [scope, name, updated_at, stripControl(line)];
  });
  return listText(io, ["SCOPE", "NAME", "WRITTEN", "BEGINS"], rows);
}
