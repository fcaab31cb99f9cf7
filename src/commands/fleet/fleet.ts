import { isAbsolute, relative, resolve } from "node:path";
import { agentCommand } from "../../fleet/command.ts";
import { composeFile, systemdUnit } from "../../fleet/export.ts";
import { followLog, tailLog } from "../../fleet/logs.ts";
import { FleetPlaces } from "../../fleet/places.ts";
import { type Definition, isAgentName, NAME_OF_AGENT, Roster } from "../../fleet/roster.ts";
import { nameFor, scanForAgents } from "../../fleet/scan.ts";
import { SnapshotFile } from "../../fleet/snapshot.ts";
import { systemClock } from "../../platform/clock.ts";
import { userDirectory } from "../../platform/environment.ts";
import { SvcError, usageError } from "../../platform/error.ts";
import { ownCommand } from "../../platform/executable.ts";
import { writeFileAtomic } from "../../platform/files.ts";
import { openPaths } from "../../platform/paths.ts";
import { stripControl } from "../../platform/terminal.ts";
import { defineCommand } from "../command.ts";
import { chatWithAgent } from "./chat.ts";
import { configureAgent } from "./config.ts";
import { fleetParser } from "./options.ts";
import { fleetDown, fleetUp } from "./up.ts";
import { fleetStatus, watchStatus } from "./view.ts";
import { toJson } from "../io.ts";
import type { FleetContext } from "./context.ts";

/** `svc fleet` (specification 2.8, 3.4, 4.6): many agents under one supervisor. */
export const fleet = defineCommand({
  parser: fleetParser,
  bare: "status",
  examples: [
    "svc fleet init",
    "svc fleet add notes --dir agents/notes --port 8785",
    "svc fleet config notes --role researcher --tool-permission web=allow",
    "svc fleet up --detach",
    "svc fleet status --watch",
    'svc fleet chat notes "what changed today?"',
    "svc fleet logs notes -f",
    "svc fleet export systemd > ~/.config/systemd/user/svc-fleet.service",
  ],
  async run(values, io) {
    const paths = openPaths(values.path || io.environment.cwd, userDirectory(io.environment));
    const warn = (message: string) => io.note(`warning: ${message}`);
    const roster = new Roster(paths.state, warn);
    const places = new FleetPlaces(paths.state);
    const context: FleetContext = { paths, places, roster, io, warn };
    const print = (value: unknown, text: string) => {
      const json = "output" in values && values.output === "json";
      io.out(json ? toJson(value, 2) + "\n" : stripControl(text));
    };
    switch (values.action) {
      case "init": {
        const added = await addFound(context);
        print({ added }, added.map(({ name, dir }) => `Added ${name}: ${dir}\n`).join(""));
        if (added.length === 0) io.note("There is no folder with .svc/config.json to be added.");
        return 0;
      }
      case "add": {
        const agent = definitionOf(values, context);
        await roster.add([agent]);
        print(agent, `Added ${values.name}: ${agent.dir}\n`);
        return 0;
      }
      case "remove":
        await roster.remove(values.name);
        print({ removed: values.name }, `Removed ${values.name}; its folder stays.\n`);
        return 0;
      case "enable":
      case "disable": {
        const enabled = values.action === "enable";
        await roster.enable(values.name, enabled);
        if (enabled && isCrashed(context, values.name)) askForRestart(context, values.name);
        print({ name: values.name, enabled }, `${values.name} is ${values.action}d.\n`);
        return 0;
      }
      case "config": {
        const written = await configureAgent(context, values);
        print(written, `Wrote ${Object.keys(written.set).join(", ")} into ${written.file}\n`);
        io.note(`An agent that runs takes it up with: svc fleet restart ${values.name}`);
        return 0;
      }
      case "up":
        return await fleetUp(context, values);
      case "down":
        return await fleetDown(context);
      case "status":
        if (values.watch) await watchStatus(context, print);
        else print(...await fleetStatus(context));
        return 0;
      case "restart": {
        const names = values.name === "all"
          ? (roster.read()?.agents ?? []).map(({ name }) => name)
          : [roster.need(values.name).name];
        for (const name of names) askForRestart(context, name);
        io.out(`Told to restart: ${names.join(", ") || "none"}.\n`);
        return 0;
      }
      case "logs":
        return await showLog(context, values);
      case "chat":
        return await chatWithAgent(context, values);
      case "export": {
        const { worktree } = paths;
        const agents = (roster.read()?.agents ?? []).filter(({ enabled }) => enabled);
        const { home } = io.environment;
        const svc = ownCommand(io.environment);
        io.out(
          values.format === "compose"
            ? composeFile(agents, worktree)
            : systemdUnit({ svc, worktree, home, user: values.user }),
        );
        return 0;
      }
    }
  },
});

/** Adds the folders that `fleet init` finds and no agent has yet. */
async function addFound({ paths, roster }: FleetContext): Promise<{ name: string; dir: string }[]> {
  const listing = roster.read();
  if (listing === undefined) throw brokenRoster(roster);
  const { worktree } = paths;
  const taken = new Set([...listing.agents.map(({ name }) => name), ...listing.broken]);
  const dirs = new Set(listing.agents.map(({ dir }) => resolve(worktree, dir)));
  const added: { name: string; dir: string }[] = [];
  for (const dir of scanForAgents(worktree)) {
    const name = dirs.has(resolve(worktree, dir)) ? undefined : nameFor(dir, taken);
    if (name === undefined || !isAgentName(name)) continue;
    taken.add(name);
    added.push({ name, dir });
  }
  await roster.add(added);
  return added;
}

/** The entry that `fleet add` writes: only what was passed. */
function definitionOf(
  { name, dir, port, max_restarts, command }: {
    name: string;
    dir: string;
    port?: number;
    max_restarts?: number;
    command?: string;
  },
  { paths, io }: FleetContext,
): Partial<Definition> {
  if (!isAgentName(name)) {
    throw usageError(
      "agent_name",
      `${JSON.stringify(name)} is no name of an agent.`,
      NAME_OF_AGENT,
    );
  }
  if (command !== undefined) agentCommand({ name, command }, { svc: [], port: 0, dir: "" });
  const place = openPaths(resolve(io.environment.cwd, dir), paths.user).worktree;
  const inside = relative(paths.worktree, place);
  const outside = inside === "" || inside.startsWith("..") || isAbsolute(inside);
  return {
    name,
    dir: outside ? place : inside,
    ...(port !== undefined && { prefer_port: port }),
    ...(max_restarts !== undefined && { max_restarts }),
    ...(command !== undefined && { command }),
  };
}

function brokenRoster({ path }: Roster): SvcError {
  return usageError("roster", `${path} cannot be read.`, "Put it right; nothing was changed.");
}

function isCrashed({ places, warn }: FleetContext, name: string): boolean {
  const { agents } = new SnapshotFile(places.snapshot, systemClock, warn).read();
  return agents.some((agent) => agent.name === name && agent.state === "crashed");
}

/** The supervisor finds it with its next sweep, or the next supervisor with its first. */
function askForRestart({ places }: FleetContext, name: string): void {
  writeFileAtomic(places.requestOf(name), "");
}

async function showLog(
  { roster, places, io }: FleetContext,
  { name, count, follow }: { name: string; count: number; follow: boolean },
): Promise<number> {
  const log = places.logOf(roster.need(name).name);
  const show = (text: string) => io.out(stripControl(text));
  const interrupt = io.onInterrupt();
  try {
    const following = follow ? followLog(log, show, systemClock, interrupt.signal) : undefined;
    const lines = tailLog(log, count);
    show(lines.map((line) => `${line}\n`).join(""));
    if (lines.length === 0 && !follow) io.note(`The log of ${name} is empty.`);
    await following;
    return 0;
  } finally {
    interrupt.release();
  }
}
